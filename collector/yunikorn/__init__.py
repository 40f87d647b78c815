"""What the YuniKorn scheduler reads from pods; it has no kinds of its own."""
