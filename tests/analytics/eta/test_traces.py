"""
How good estimates of starts are: on public traces and a generated year, judged on their later halves.

Each estimate knows only what lies before it, and the constants are the same for all. docs/adr/0053 and 0058
have the figures, how they were chosen, and which goals are not reached. Every band and class is printed and
judged: what one user submits within an hour is held or missed together, so a class of few such bursts may lie
outside of 70 to 90 % by chance. Each that does is named here, whichever side it is on.
"""

from typing import Final

import pytest

from tests.analytics.eta.histories import HISTORIES, evicting
from tests.analytics.eta.judging import judged
from tests.traces.taking_in import tell

pytestmark = [pytest.mark.recordings, pytest.mark.long, pytest.mark.timeout(1200)]

# What does not hold 70 to 90 %, and of which bursts.
OUTSIDE: Final = {
    # 0.92 of 132 intervals in 23 bursts, and 0.15 of 13.
    "xdmod": {"apple", "others"},
    # 0.60 to 0.69 of the first three, 0.94 to 0.97 of the others; 1 to 9.7 bursts each.
    "metacentrum": {"q_1d", "q_1w", "q_4d", "q_2h", "q_2w", "q_4h"},
    # One of four.
    "dlrm": {"over 6 h"},
}


@pytest.mark.parametrize("name", list(HISTORIES))
def test_intervals_hold_what_they_should_and_lose_less_than_simpler_answers(name: str) -> None:
    found = judged(HISTORIES[name]())
    tell(found.text())
    cells = found.coverage()
    outside = {cell for cell, one in cells.items() if not one.is_meant}
    assert outside == OUTSIDE.get(name, set())
    assert all(cells[cell].may_be_meant for cell in outside)
    ours, plain, limits = found.losses()
    assert ours < 0.9 * plain
    assert limits is None or ours < limits / 5


def test_work_that_lost_its_place_is_told_of_by_such_waits() -> None:
    """Beside the quantiles of such waits; told as if it came for the first time it loses 1.28 of these."""
    found = judged(evicting(), again=True)
    tell(found.text())
    assert all(one.is_meant for one in found.coverage().values())
    ours, plain, _ = found.losses()
    assert ours < 0.95 * plain
