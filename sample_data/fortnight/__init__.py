"""
A seeded fortnight of a cluster of 32 nodes, in the recording format, with GPU metrics and its truth.

`python -m sample_data.fortnight.generate` makes it; `recorded/` holds the committed one, which
`gpuledger demo` shows. Like the small sample it knows nothing of how the product computes.
"""

from pathlib import Path

FORTNIGHT = Path(__file__).parent / "recorded"
"""The committed recording, its GPU metrics and its truth."""

SAMPLES = "gpu_samples.parquet"
"""What its folder calls the GPU metrics."""

EXPORTERS = "dcgm"
"""The folder in it with the last hour of them as exporters answered it, for `gpuledger import dcgm`."""

END = "2026-11-02T10:00:00Z"
"""The instant at which it ends: most of it lies in October, the rest in November."""

SETTINGS = Path(__file__).parent.parent / "fortnight.yaml"
"""Settings that fit it: teams, classes, prices."""
