"""One file per page: layout only."""
