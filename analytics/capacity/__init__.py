"""Capacity: whether to buy, or what to tune first."""
