"""What one sees of a queue at an instant, by hand and against counting."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.eta.line import Line, Lines
from analytics.eta.waits import FOREVER_MS, Waits
from domain.window import MS_PER_HOUR as HOUR
from tests.analytics.eta.test_estimate import MINUTE, NOON, waits

ZERO, NOW = np.array([0]), np.array([NOON])


def test_a_line_needs_as_long_as_those_before_one_at_its_pace() -> None:
    # One of the line was placed in each hour until three hours ago, and three wait: they come first.
    past = waits([30] * 6 + [None] * 3, apart=60)
    seconds = Line(past, past.line).seconds(ZERO, NOW, NOW)
    # Of the last six hours three saw one placed, 5.5 to 3.5 hours ago: none in one hour and three in six.
    assert seconds.tolist() == [pytest.approx((3 + 0.5) / ((0 + 3) / 7) * 3600)]


def test_what_is_seen_of_a_line_by_hand() -> None:
    past = waits([30] * 6 + [None] * 3, apart=60)
    # Asked by the second of the three that wait: one is before it.
    seen = Line(past, past.line).state(ZERO, NOW - 2 * HOUR, NOW)[:, 0]
    hours = 3600
    assert np.exp(seen[:4]) - 1 == pytest.approx([1, 3, 0, 3])
    assert np.exp(seen[4:]) - 60 == pytest.approx([3.5 * hours, 0.5 * hours, 3 * hours])


def test_the_last_eight_that_were_placed_are_averaged() -> None:
    past = waits([90] * 4 + [30] * 4 + [10] * 4, apart=120)
    seen = Line(past, past.line).state(ZERO, NOW, NOW)[5, 0]
    assert seen == pytest.approx((math.log(31 * 60) + math.log(11 * 60)) / 2)


def test_of_a_group_that_nobody_was_in_nothing_is_seen() -> None:
    past = waits([30] * 6 + [None] * 3, apart=60)
    line = Line(past, past.line)
    for code in (-1, 1):
        seen = line.state(np.array([code]), NOW, NOW)[:, 0]
        assert seen.tolist() == pytest.approx(
            [0, 0, 0, 0, math.log(60 + 3 * 86_400), math.log(60 + 1800), math.log(60)]
        )


WAITS = st.lists(
    st.tuples(st.integers(0, 600), st.one_of(st.none(), st.integers(1, 600)), st.integers(0, 2)), max_size=30
)


@given(WAITS, st.integers(0, 1200), st.integers(-1, 3))
def test_it_is_what_counting_says(rows: list[tuple[int, int | None, int]], minute: int, code: int) -> None:
    at_ms = NOON + minute * MINUTE
    begins = np.array([NOON + row[0] * MINUTE for row in rows], np.int64)
    lengths = [FOREVER_MS if row[1] is None else row[1] * MINUTE for row in rows]
    ends = np.minimum(begins + np.array(lengths, np.int64), FOREVER_MS)
    codes = np.array([row[2] for row in rows], np.int64)
    past = Waits(
        submitted_ms=begins, until_ms=ends, placed=ends < FOREVER_MS,
        queue=codes, service_class=codes, line=codes, size=codes, again=codes > 1,
    )  # fmt: skip
    seen = Line(past, codes).state(np.array([code]), np.array([at_ms]), np.array([at_ms]))[:, 0]
    own = codes == code
    there = own & (begins < at_ms) & (ends >= at_ms)
    moved = [own & (ends < at_ms) & (ends >= at_ms - hours * HOUR) for hours in (1, 6)]
    assert np.exp(seen[:4]) - 1 == pytest.approx([there.sum(), there.sum(), *(one.sum() for one in moved)])
    oldest = (at_ms - begins[there].min()) / 1000 if there.any() else 0
    assert math.exp(seen[6]) - 60 == pytest.approx(oldest, abs=1e-6)


def test_a_workload_sees_its_cluster_its_queue_and_its_line() -> None:
    """Three wait, two of them in its queue, one of them of its user: each hour one was submitted."""
    past = waits([None, None, None])
    past.queue[:], past.line[:] = [0, 0, 1], [0, 1, 2]
    [seen] = Lines(past).state(ZERO, ZERO, np.array([3]), NOW, NOW)
    assert len(seen) == 3 * 7 + 1
    assert np.exp(seen[[1, 8, 15]]) - 1 == pytest.approx([3, 2, 1])
    assert seen[21] == 3
