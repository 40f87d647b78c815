"""
A small seeded cluster, written in the recording format: what `gpuledger demo` shows.

`python -m sample_data.generate` makes it; `small/` holds the committed one. The generator knows
nothing of how the product computes, so that its ground truth can be held against the answers.
"""

from pathlib import Path

SMALL = Path(__file__).parent / "small"
"""The committed recording."""

SETTINGS = Path(__file__).parent / "small.yaml"
"""Settings that fit it: who the teams and users are."""
