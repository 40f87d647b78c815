"""
Seeded clusters, written in the recording format: what `gpuledger demo` shows.

`python -m sample_data.generate` makes the small one; `small/` holds the committed one. The larger one
is `sample_data.fortnight`. The generators know nothing of how the product computes, so that their
ground truth can be held against the answers.
"""

from enum import StrEnum
from pathlib import Path


class Sample(StrEnum):
    """The samples: two weeks of 32 nodes, and two hours of seven."""

    FORTNIGHT = "fortnight"
    SMALL = "small"


SMALL = Path(__file__).parent / "small"
"""The committed recording of the small one."""

SETTINGS = Path(__file__).parent / "small.yaml"
"""Settings that fit the small one: who the teams and users are."""
