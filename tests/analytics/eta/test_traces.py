"""
How good estimates of starts are: on public traces and a generated year, judged on their later halves.

Each estimate knows only what lies before it. Voices, half-lives and steps were chosen on the
earlier halves. docs/adr/0036 has the figures, and which goals are not reached.
"""

import pytest

from tests.analytics.eta.histories import HISTORIES
from tests.analytics.eta.judging import judged
from tests.traces.taking_in import tell

pytestmark = [pytest.mark.recordings, pytest.mark.long, pytest.mark.timeout(1200)]

# A cell with fewer intervals says little: with 60 a share of 80 % is known within 10 %.
_FEWEST = 60


@pytest.mark.parametrize(("name", "cells", "most"), [("dlrm", 5, 0.95), ("generated year", 7, 0.9)])
def test_intervals_hold_in_each_band_and_class(name: str, cells: int, most: float) -> None:
    found = judged(HISTORIES[name]())
    tell(found.text())
    held = {name: share for name, (number, share) in found.coverage().items() if number >= _FEWEST}
    assert len(held) == cells
    assert {name: share for name, share in held.items() if not 0.7 <= share <= 0.9} == {}
    ours, plain, _ = found.losses()
    assert ours < most * plain


@pytest.mark.parametrize(("name", "most"), [("xdmod", 0.75), ("metacentrum", 1.0)])
def test_what_is_told_of_batch_jobs_is_better_than_the_limits_ahead(name: str, most: float) -> None:
    """The goal of 70 to 90 % in each cell is not reached on these two: see the decision."""
    found = judged(HISTORIES[name]())
    tell(found.text())
    ours, plain, limits = found.losses()
    assert limits is not None
    assert ours < limits / 5
    assert ours < most * plain
    _, _, left, told = found.columns()
    assert ((told[:, 0] <= left) & (left <= told[:, 2])).mean() > 0.55
