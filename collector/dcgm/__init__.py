"""GPU metrics: what dcgm-exporter tells, read from it or from a Prometheus."""
