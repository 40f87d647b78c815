"""Fragmentation: free GPUs that nothing which waits can use."""
