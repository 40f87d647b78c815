"""Where GPU-time went: every GPU-second held has exactly one cause."""
