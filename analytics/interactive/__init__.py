"""The promises to interactive work: room that is kept for it, and no user who takes it all."""
