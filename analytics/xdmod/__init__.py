"""What Open XDMoD calls a job, and books by its rules; for comparison with it."""
