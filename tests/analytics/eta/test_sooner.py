"""Which other ways to ask are told, and in which order."""

import pytest

from analytics.eta.estimate import CLASS, QUEUE, Estimate, Past
from analytics.eta.sentence import way
from analytics.eta.sooner import Option, Way, off_peak, sooner
from analytics.eta.waits import Ask
from domain.window import MS_PER_HOUR as HOUR
from tests.analytics.eta.test_estimate import DAY, MINUTE, NOON, waits


def option(what: str, *, minutes: int | None = None, fits: bool | None = None) -> Option:
    estimate = None
    if minutes is not None:
        left = minutes * MINUTE
        estimate = Estimate(
            low_ms=left / 2, median_ms=left, high_ms=left * 3, rung=CLASS, like=20, started=20
        )
    return Option(way=Way.QUEUE, what=what, assumes="nothing", fits_now=fits, estimate=estimate)


def told(*options: Option, now: int | None) -> list[str]:
    return [one.what for one in sooner(options, None if now is None else now * MINUTE)]


def test_only_what_is_clearly_better_is_told_and_what_fits_now_comes_first() -> None:
    options = option("a little", minutes=80), option("much", minutes=20), option("more", minutes=10)
    assert told(*options, option("fits", minutes=60, fits=True), now=100) == ["fits", "more", "much"]
    both = option("change little", minutes=60, fits=True), option("change much", minutes=1, fits=True)
    assert told(*both, now=100) == ["change little", "change much"]
    # 70 % of it at most, and five minutes at least.
    assert told(option("just", minutes=70), option("not", minutes=71), now=100) == ["just"]
    assert told(option("three minutes", minutes=1), now=4) == []


def test_where_it_never_starts_only_what_fits_now_is_known_to_be_better() -> None:
    assert told(option("fits", fits=True), option("some wait", minutes=1), now=None) == ["fits"]
    assert told(option("unknown"), option("does not", fits=False), now=100) == []


def test_a_way_is_told_with_what_comes_of_it_and_what_it_assumes() -> None:
    assert way(option("Ask for 4 GPUs", minutes=20, fits=True)) == (
        "Ask for 4 GPUs: there are room and quota for it now; such work waits about 20 min"
        " (80 %: 10 min to 1 h). Assumed: nothing."
    )


def test_the_quietest_hours_of_the_week_are_those_in_which_like_work_waited_least() -> None:
    # One an hour for seven weeks; who came on a Sunday from 3 to 6 waited 2 minutes, all others an hour.
    past = waits([60] * (7 * 7 * 24))
    days, hours = past.submitted_ms // DAY, past.submitted_ms // HOUR % 24
    quiet = (days % 7 == 3) & (hours >= 3) & (hours < 6)
    until = past.submitted_ms + HOUR
    until[quiet] = past.submitted_ms[quiet] + 2 * MINUTE
    past.until_ms[:] = until
    ask = Ask(submitted_ms=NOON, queue=0, service_class=0, line=0, size=0)
    found = off_peak(Past.of(past, NOON), ask, NOON)
    assert found is not None
    hours_of_week, estimate = found
    assert hours_of_week == "Sunday 03:00 to 06:00 UTC"
    assert (estimate.median_ms, estimate.like, estimate.rung) == (2 * MINUTE, 3 * 7, QUEUE)


def test_hours_in_which_work_was_thrown_out_are_no_hours_to_submit_in() -> None:
    past = waits([60] * (7 * 7 * 24))
    past.again[:] = past.submitted_ms // DAY % 7 != 3
    asked = Ask(submitted_ms=NOON, queue=0, service_class=0, line=0, size=0)
    found = off_peak(Past.of(past, NOON), asked, NOON)
    assert found is not None
    assert found[0].startswith("Sunday")


@pytest.mark.parametrize("queue", [0, -1])
def test_hours_in_which_few_came_do_not_count(queue: int) -> None:
    past = waits([60] * (5 * 24))
    assert (
        off_peak(
            Past.of(past, NOON), Ask(submitted_ms=NOON, queue=queue, service_class=0, line=0, size=0), NOON
        )
        is None
    )
