"""
How good estimates of starts are: on public traces and a generated year, judged on their later halves.

Each estimate knows only what lies before it, and the constants are the same for all four. docs/adr/0053 has
the figures, how they were chosen, and which goals are not reached. A band or class is judged from 30
intervals on that are worth ten bursts: what one user submits within an hour is held or missed together.
"""

from typing import Final

import pytest

from tests.analytics.eta.histories import HISTORIES
from tests.analytics.eta.judging import judged
from tests.traces.taking_in import tell

pytestmark = [pytest.mark.recordings, pytest.mark.long, pytest.mark.timeout(1200)]

# How many cells have enough to be judged. Left out: on dlrm what waits longer than an hour (78 intervals), on
# metacentrum all classes (1 to 9.7 bursts each), on xdmod the class of the others (13 intervals).
JUDGED: Final = {"xdmod": 6, "metacentrum": 4, "dlrm": 4, "generated year": 7}
# Of those, what does not hold 70 to 90 % yet: 0.92 of 132 intervals, which is too wide.
NOT_YET: Final = {"xdmod": {"apple"}}


@pytest.mark.parametrize("name", list(HISTORIES))
def test_intervals_hold_what_they_should_and_lose_less_than_simpler_answers(name: str) -> None:
    found = judged(HISTORIES[name]())
    tell(found.text())
    held = {cell: one.held for cell, one in found.coverage().items() if one.is_judged}
    assert len(held) == JUDGED[name]
    outside = {cell for cell, share in held.items() if not 0.7 <= round(share, 2) <= 0.9}
    assert outside <= NOT_YET.get(name, set())
    ours, plain, limits = found.losses()
    assert ours < 0.9 * plain
    assert limits is None or ours < limits / 5
