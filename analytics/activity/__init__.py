"""Utilisation and how much of it was seen: pure functions of GPU-time."""
