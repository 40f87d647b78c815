"""Takes in what a cluster says: objects become facts, by one translator per kind."""
