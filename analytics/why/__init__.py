"""Why a workload waits: what schedulers say, and what a search for places and quota finds."""
