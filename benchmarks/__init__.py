"""Benchmarks: the product beside a peer in one run, and the physical limit beside both."""
