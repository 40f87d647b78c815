"""What is left of a wait: by hand, by laws, and when it cannot be told."""

import math
from collections.abc import Sequence
from dataclasses import fields, replace
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.censored import Stay, survival_quantiles
from analytics.eta.estimate import (
    AGAIN,
    CLASS,
    EVERYBODY,
    LINE,
    NEAR,
    RUNG_WORDS,
    UNCALIBRATED,
    Estimate,
    Margins,
    Masses,
    NoEstimate,
    Past,
    Rung,
    ended,
    quantiles,
)
from analytics.eta.waits import FOREVER_MS, MARKS_MS, Ask, Moments, Waits
from domain.window import MS_PER_HOUR as HOUR

MINUTE = 60_000
DAY = 24 * HOUR
# A Monday noon, on a full minute.
NOON = 20_454 * DAY + 12 * HOUR


def waits(minutes: Sequence[int | None], *, apart: int = 60, **codes: int) -> Waits:
    """
    Waits of so many minutes (None: it goes on), the last of which began an hour before noon.

    Each begins `apart` minutes after the one before.
    """
    number = len(minutes)
    submitted = NOON - MINUTE * apart * np.arange(number, 0, -1, dtype=np.int64)
    ends = [FOREVER_MS if wait is None else wait * MINUTE for wait in minutes]
    until = np.minimum(submitted + np.array(ends, np.int64), FOREVER_MS)
    names = ("queue", "service_class", "line", "size")
    columns = {name: np.full(number, codes.get(name, 0)) for name in names}
    again = np.zeros(number, np.bool_)
    return Waits(submitted_ms=submitted, until_ms=until, placed=until < FOREVER_MS, again=again, **columns)


def ask(*, submitted_ms: int = NOON - 1, line: int = 0, size: int = 0, queue: int = 0, of: int = 0) -> Ask:
    return Ask(submitted_ms=submitted_ms, queue=queue, service_class=of, line=line, size=size)


def told(past: Waits, asked: Ask, as_of_ms: int = NOON) -> Estimate:
    found = Past.of(past, as_of_ms).estimate(asked, as_of_ms)
    assert isinstance(found, Estimate)
    return found


def test_a_curve_by_hand_counts_those_that_still_wait() -> None:
    # Of four one ends at 1, one is still there at 2, one ends at 3, one is still there at 4:
    # a quarter, then half of the three quarters that are left.
    found = ended(np.array([1.0, 2, 3, 4]), np.array([True, False, True, False]), np.ones(4))
    assert found.left_ms.tolist() == [1, 2, 3, 4, 6]
    assert found.mass.tolist() == [0.25, 0, 0.375, 0, 0.375]


ENDS = st.lists(st.tuples(st.integers(1, 50), st.booleans()), min_size=1, max_size=40)


@given(ENDS)
def test_without_weights_it_is_the_curve_of_the_waits(ends: list[tuple[int, bool]]) -> None:
    lengths, is_end = (np.array(column) for column in zip(*ends, strict=True))
    curve = ended(lengths.astype(np.float64), is_end, np.ones(len(ends)))
    theirs = survival_quantiles([Stay(0, int(at), bool(over)) for at, over in ends], [0.1, 0.5, 0.9])
    assert theirs is not None
    for level, other in zip((0.1, 0.5, 0.9), theirs, strict=True):
        if not other.lower_bound:
            assert quantiles([curve], [level]) == [pytest.approx(other.value_ms)]


@given(ENDS, st.floats(0.5, 20), st.randoms(use_true_random=False))
def test_longer_waits_are_told_longer_and_their_order_says_nothing(
    ends: list[tuple[int, bool]], factor: float, random: Random
) -> None:
    def at(given: list[tuple[int, bool]], times: float = 1.0) -> list[float]:
        lengths, is_end = (np.array(column) for column in zip(*given, strict=True))
        curve = ended(lengths * times, is_end, np.ones(len(given)))
        assert curve.mass.sum() == pytest.approx(1)
        return quantiles([curve], [0.1, 0.5, 0.9])

    usual = at(ends)
    assert usual == sorted(usual)
    assert at(ends, factor) == pytest.approx([one * factor for one in usual])
    shuffled = list(ends)
    random.shuffle(shuffled)
    assert at(shuffled) == pytest.approx(usual)


def test_what_is_told_lies_about_the_waits_of_like_work_and_rests_on_the_nearest() -> None:
    found = told(waits([30] * 10 + [40] * 10 + [50] * 10), ask())
    assert (found.rung, found.started) == (NEAR, 30)
    assert 25 * MINUTE <= found.low_ms <= found.median_ms <= found.high_ms <= 55 * MINUTE
    assert 30 * MINUTE < found.median_ms <= 49 * MINUTE


@given(st.integers(0, 90))
def test_of_what_waited_longer_only_longer_waits_are_asked(age: int) -> None:
    """Half wait 30 minutes, half 120: after 30 minutes only the others tell, of what they had left."""
    asked = ask(submitted_ms=NOON - age * MINUTE, line=-1)
    found = told(waits([30, 120] * 30, apart=300), asked)
    assert 0 <= found.low_ms <= found.median_ms <= found.high_ms
    if age > 30:
        left = (120 - age) * MINUTE
        assert found.low_ms == pytest.approx(left, abs=2 * MINUTE)
        assert found.high_ms == pytest.approx(left, abs=2 * MINUTE)


def test_where_few_are_alike_the_others_still_answer() -> None:
    past = Past.of(waits([30] * 40), NOON)

    def rungs(asked: Ask) -> list[Rung]:
        return [heard.rung for heard, _ in past.voices(asked, NOON)]

    assert rungs(ask()) == [EVERYBODY, CLASS, LINE, CLASS, NEAR]
    assert rungs(ask(line=-1, queue=-1)) == [EVERYBODY, CLASS, NEAR]
    assert rungs(ask(line=-1, queue=-1, of=-1)) == [EVERYBODY, NEAR]


def mixed(first: Sequence[int], again: Sequence[int]) -> Waits:
    """First waits of so many minutes, and waits of work that was placed before."""
    number = len(first)
    past = waits([*first, *again])
    past.again[number:] = True
    return past


def test_what_waits_again_is_told_by_what_waited_again_and_the_others_by_the_others() -> None:
    past = Past.of(mixed([120] * 30, [20] * 30), NOON)
    rungs = {}
    for again, minutes in ((False, 120), (True, 20)):
        asked = replace(ask(), again=again)
        found = past.estimate(asked, NOON)
        assert isinstance(found, Estimate)
        assert found.median_ms == pytest.approx(minutes * MINUTE, rel=0.2)
        rungs[again] = [heard.rung for heard, _ in past.voices(asked, NOON)]
    assert rungs[True] == [(*AGAIN, *rung) for rung in rungs[False]]
    assert all(rung in RUNG_WORDS for rung in rungs[True])


def test_where_few_waited_again_first_waits_answer_for_them() -> None:
    past = Past.of(mixed([120] * 30, [20] * 9), NOON)
    found = past.estimate(replace(ask(), again=True), NOON)
    assert isinstance(found, Estimate)
    assert found.rung == NEAR
    assert found.median_ms == pytest.approx(120 * MINUTE, rel=0.2)


def test_answers_are_averaged_by_their_quantiles() -> None:
    """Of a minute and of 15, plus one minute each, it is the geometric mean."""
    short, long = (Masses(np.array([float(at * MINUTE)]), np.ones(1)) for at in (1, 15))
    assert quantiles([short, long], [0.1, 0.9]) == pytest.approx([(32**0.5 - 1) * MINUTE] * 2)


def test_an_answer_counts_as_much_as_it_says() -> None:
    """Of a minute, three times, and of 15, plus one minute each: 2 * 2 * 2 * 16 is 128."""
    short, long = (Masses(np.array([float(at * MINUTE)]), np.ones(1)) for at in (1, 15))
    assert quantiles([short, long], [0.5], [3.0, 1.0]) == pytest.approx([(128**0.25 - 1) * MINUTE])


def test_whoever_is_everybody_is_heard_as_much_as_three() -> None:
    heard = Past.of(waits([30] * 40), NOON).voices(ask(), NOON)
    assert [one.says for one, _ in heard] == [3, 1, 1, 1, 1]


def heard(past: Waits, number: int, asked: Ask | None = None) -> float:
    """The median that one voice answers, in minutes."""
    _, masses = Past.of(past, NOON).voices(asked or ask(), NOON)[number]
    return quantiles([masses], [0.5])[0] / MINUTE


def test_a_burst_weighs_as_the_root_of_its_number() -> None:
    """Thirty of an hour, one by one, and a hundred at once of ten minutes: these weigh as ten."""
    past = waits([60] * 30 + [10] * 100)
    past.submitted_ms[30:] = NOON - 2 * DAY
    past.until_ms[30:] = NOON - 2 * DAY + 10 * MINUTE
    assert heard(past, 0) == pytest.approx(60, abs=1.5)


def test_what_its_class_did_a_hundred_days_ago_hardly_counts() -> None:
    """Forty were placed after an hour then, twenty after ten minutes of late; everybody forgets nothing."""
    past = waits([60] * 40 + [10] * 20)
    past.submitted_ms[:40] -= 100 * DAY
    past.until_ms[:40] -= 100 * DAY
    assert heard(past, 0) == pytest.approx(60, abs=1.5)
    assert heard(past, 1) == pytest.approx(10, abs=1.5)


def of_two_classes(times: int) -> Waits:
    """Two of five are of its class and waited ten minutes, the others an hour; then it comes itself."""
    past = waits([*[10, 60, 60, 10, 60] * times, None], apart=600)
    past.submitted_ms[-1] = NOON - MINUTE
    past.service_class[:-1] = (past.until_ms - past.submitted_ms > 10 * MINUTE)[:-1]
    return past


def test_of_those_that_met_the_same_queue_its_own_class_counts_most() -> None:
    past = of_two_classes(12)
    assert heard(past, -1, ask(submitted_ms=NOON - MINUTE)) == pytest.approx(10, abs=1.5)
    assert heard(past, 0) == pytest.approx(60, abs=1.5)


def test_a_hundred_that_are_near_are_enough() -> None:
    known = Past.of(of_two_classes(60), NOON)
    [*_, (near, _)] = known.voices(ask(submitted_ms=NOON - MINUTE), NOON)
    assert set(known.waits.service_class[known.moments.of[near.places]]) == {0}


def test_of_its_user_the_last_five_hundred_are_asked() -> None:
    past = waits([60] * 1500 + [10] * 500, apart=1)
    assert heard(past, 2) == pytest.approx(10, abs=1.5)
    assert heard(past, 0) == pytest.approx(60, abs=1.5)


def test_a_line_that_does_not_move_is_told_at_most_three_times_the_longest_wait() -> None:
    past = waits([30] * 40 + [None] * 200, apart=1)
    past.submitted_ms[:40] -= 2 * DAY
    past.until_ms[:40] -= 2 * DAY
    # The first of those that wait was looked at 199 minutes ago.
    assert heard(past, 3) == pytest.approx(3 * 199, abs=0.1)


def test_margins_move_the_ends_to_other_levels_and_leave_the_median_where_it_is() -> None:
    """Waits of 31 to 130 minutes: told of nobody in particular, the level is the quantile."""
    past = Past.of(waits([31 + number * 37 % 100 for number in range(200)], apart=200), NOON)
    asked = ask(line=-1, queue=-1)
    plain, wide, none = (
        past.estimate(asked, NOON, margins)
        for margins in (UNCALIBRATED, Margins(math.log(2), math.log(5)), Margins(-5.0, -5.0))
    )
    assert isinstance(plain, Estimate)
    assert isinstance(wide, Estimate)
    assert isinstance(none, Estimate)
    assert plain.low_ms - wide.low_ms == pytest.approx(5 * MINUTE, abs=2 * MINUTE)
    assert wide.high_ms - plain.high_ms == pytest.approx(8 * MINUTE, abs=2 * MINUTE)
    assert none.low_ms == none.median_ms == none.high_ms == plain.median_ms == wide.median_ms


def test_without_starts_nothing_is_told_and_it_is_said_why() -> None:
    for past in (waits([]), waits([30] * 9), waits([None] * 50)):
        found = Past.of(past, NOON).estimate(ask(), NOON)
        assert found == NoEstimate(because="fewer than 10 workloads that waited as long have started")


def test_nothing_that_comes_later_changes_what_is_told() -> None:
    past = waits([30, 45, 60] * 20)
    as_of_ms = NOON - 20 * HOUR
    known = past.at(past.submitted_ms < as_of_ms)
    cut = Waits(
        submitted_ms=known.submitted_ms,
        until_ms=np.where(known.until_ms < as_of_ms, known.until_ms, FOREVER_MS),
        placed=known.placed & (known.until_ms < as_of_ms),
        queue=known.queue, service_class=known.service_class, line=known.line, size=known.size,
        again=known.again,
    )  # fmt: skip
    asked = ask(submitted_ms=as_of_ms - 5 * MINUTE)
    assert Past.of(past, NOON).estimate(asked, as_of_ms) == Past.of(cut, as_of_ms).estimate(asked, as_of_ms)


def test_newer_waits_weigh_more() -> None:
    worse, better = waits([10] * 40 + [100] * 40, apart=600), waits([100] * 40 + [10] * 40, apart=600)
    assert told(worse, ask()).median_ms > told(better, ask()).median_ms


def test_when_the_queue_is_full_the_times_when_it_was_full_are_nearest() -> None:
    """On one day one comes alone and waits 90 seconds; on the next nine come together, and wait an hour."""

    def left_ms(now: int) -> float:
        noons = [(NOON - day * DAY, (day + now // 9) % 2) for day in range(260, 0, -1)]
        rows = [
            (noon, noon + (HOUR if many else 90_000)) for noon, many in noons for _ in range(1 + 8 * many)
        ]
        submitted, until = np.array(rows + [(NOON - 1, FOREVER_MS)] * now).T
        zeros = np.zeros(len(until), np.int64)
        columns = dict.fromkeys(("queue", "service_class", "line", "size"), zeros)
        placed, again = until < FOREVER_MS, zeros > 0
        past = Waits(submitted_ms=submitted, until_ms=until, placed=placed, again=again, **columns)
        heard, _ = Past.of(past, NOON).voices(ask(), NOON)[-1]
        assert heard.rung == NEAR
        return float(np.median(heard.left_ms))

    assert left_ms(now=9) == pytest.approx(HOUR, abs=MINUTE)
    assert left_ms(now=1) < MINUTE


def test_a_wait_is_looked_at_at_each_mark_that_it_comes_to() -> None:
    moments = Moments.of_waits(waits([5, 30, 3 * 60], apart=1000))
    assert moments.mark.tolist() == [0, 0, 1, 0, 1, 2]
    assert (np.diff(moments.at_ms) >= 0).all()
    ages = moments.at_ms - waits([5, 30, 180], apart=1000).submitted_ms[moments.of]
    over = ages - np.array(MARKS_MS)[moments.mark]
    assert (over > 0).all()
    assert (over <= MINUTE).all()


def test_rungs_are_cells_of_their_own() -> None:
    """Two lines in one queue: one of short waits, one of long; each is told of its own."""
    short, long = waits([10] * 30, line=0), waits([200] * 30, line=1)
    both = Waits(**{
        name: np.concatenate((getattr(short, name), getattr(long, name)))
        for name in (one.name for one in fields(Waits))
    })  # fmt: skip
    assert told(both, ask(line=1)).median_ms > told(both, ask(line=0)).median_ms
