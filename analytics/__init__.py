"""Facts in, figures out. Pure: no file, no socket, no clock."""
