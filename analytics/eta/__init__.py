"""When waiting work will start: what is left of its wait, from the waits of like work."""
