"""Tells: what Prometheus scrapes and the rules by which it alerts."""
