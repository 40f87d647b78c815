"""
What others counted in queues, as its metrics ask for it: the queues of a question taken together.

Such counts are measurements of somebody else, and mix with no figure of our own workloads.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Final

from analytics.evaluate import grouped, whole
from domain.metric import Ask, Compute, Row, Sample
from domain.policy import Policy
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_HOUR, MS_PER_SECOND

DIMENSIONS: Final = ("cluster", "queue")
QUEUE_STATES: Final = """\
-- One row per stretch of a queue in [$window_start_ms, $as_of_ms) in which its counts stayed the same.
select
    cluster,
    queue,
    greatest(start_ms, $window_start_ms) as start_ms,
    least(end_ms, $as_of_ms) as end_ms,
    waiting_workloads,
    waiting_micro_gpus,
    held_micro_gpus,
    idle_micro_gpus,
    total_micro_gpus
from queue_state
where start_ms < $as_of_ms and end_ms > $window_start_ms
"""
NOTHING_COUNTED: Final = "nobody's counts of a queue were taken in for the window"
# 1 is the greatest.
QUANTILES: Final = ("0.5", "0.99", "1")
_WORDS: Final = {
    "waiting_workloads": "waiting jobs",
    "waiting_micro_gpus": "GPUs waited for",
    "held_micro_gpus": "GPUs held",
    "idle_micro_gpus": "idle GPUs",
    "total_micro_gpus": "GPUs in all",
}
_SHARE_OF: Final = frozenset({"held_micro_gpus", "total_micro_gpus"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Stood:
    """
    How some queues together stood for a while; None: no queue tells that.

    `partial`: one of them tells nothing meanwhile, or not all of it, though it does before and after.
    """

    start_ms: int
    end_ms: int
    counts: dict[str, int | None]
    partial: frozenset[str] = frozenset()

    @property
    def length_ms(self) -> int:
        """How long."""
        return self.end_ms - self.start_ms

    def is_more(self, column: str, than: int = 0) -> bool:
        """Whether it is known that there were more than so many."""
        count = self.counts[column]
        return count is not None and count > than


@dataclass(slots=True)
class _Sums:
    """Running sums over queues."""

    known: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_WORDS, 0))
    tell: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_WORDS, 0))

    def add(self, row: Row, sign: int) -> None:
        for column in _WORDS:
            if row[column] is not None:
                self.known[column] += sign * whole(row, column)
                self.tell[column] += sign

    def stood(self, start_ms: int, end_ms: int, *, open_queues: int) -> Stood:
        return Stood(
            start_ms=start_ms,
            end_ms=end_ms,
            counts={column: self.known[column] if self.tell[column] else None for column in _WORDS},
            partial=frozenset(column for column in _WORDS if self.tell[column] < open_queues),
        )


def together(rows: Sequence[Row]) -> Iterator[Stood]:
    """
    The queues of some rows taken together, from the first instant that is told to the last.

    A queue counts from the first row of it on to the end of its last one.
    """
    edges: dict[int, list[tuple[Row, int]]] = defaultdict(list)
    lives: dict[tuple[object, object], tuple[int, int]] = {}
    for row in rows:
        start_ms, end_ms = whole(row, "start_ms"), whole(row, "end_ms")
        edges[start_ms].append((row, 1))
        edges[end_ms].append((row, -1))
        first_ms, last_ms = lives.get((row["cluster"], row["queue"]), (start_ms, end_ms))
        lives[row["cluster"], row["queue"]] = min(first_ms, start_ms), max(last_ms, end_ms)
    begins_and_ends: dict[int, int] = defaultdict(int)
    for first_ms, last_ms in lives.values():
        begins_and_ends[first_ms] += 1
        begins_and_ends[last_ms] -= 1
    sums, open_queues, before_ms = _Sums(), 0, None
    for at_ms in sorted(edges):
        if before_ms is not None and open_queues:
            yield sums.stood(before_ms, at_ms, open_queues=open_queues)
        for row, sign in edges[at_ms]:
            sums.add(row, sign)
        open_queues += begins_and_ends[at_ms]
        before_ms = at_ms


def quantiles(column: str, *, unit: int) -> Compute:
    """A `compute` of what `column` did not exceed for these shares of the time in which it is told."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            told, partial = _told(members, column)
            if not told:
                samples.append(Sample.undefined(labels, f"no queue tells its {_WORDS[column]}"))
                continue
            ordered = sorted(told.items())
            samples += [
                Sample(
                    labels={**labels, "quantile": quantile},
                    value=_not_exceeded(ordered, Fraction(quantile)) / unit,
                    lower_bound=partial,
                )
                for quantile in QUANTILES
            ]
        return samples or [Sample.undefined({}, NOTHING_COUNTED)]

    return compute


def mean(column: str, *, unit: int) -> Compute:
    """A `compute` of the mean of `column` over the time in which it is told."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = []
        for labels, members in grouped(rows, ask.by):
            told, partial = _told(members, column)
            if not told:
                samples.append(Sample.undefined(labels, f"no queue tells its {_WORDS[column]}"))
                continue
            summed = sum(count * length_ms for count, length_ms in told.items())
            value = float(Fraction(summed, sum(told.values()) * unit))
            samples.append(Sample(labels=labels, value=value, lower_bound=partial))
        return samples or [Sample.undefined({}, NOTHING_COUNTED)]

    return compute


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """
    Something that holds for a while, and what is needed to tell.

    `amount` is the column that is summed in hours while it holds.
    """

    needs: tuple[str, ...]
    holds: Callable[[Stood, Policy], bool]
    amount: str = ""


def _waits(stood: Stood, _: Policy) -> bool:
    return stood.is_more("waiting_workloads")


def _idles_while_waiting(stood: Stood, _: Policy) -> bool:
    return stood.is_more("waiting_micro_gpus") and stood.is_more("idle_micro_gpus")


def _full_while_waiting(stood: Stood, policy: Policy) -> bool:
    held, total = stood.counts["held_micro_gpus"], stood.counts["total_micro_gpus"]
    return (
        _waits(stood, policy)
        and not stood.partial & _SHARE_OF
        and held is not None
        and bool(total)
        and Fraction(held, total or 1) > Fraction(str(policy.buy_held_ratio))
    )


def _always(_stood: Stood, _policy: Policy) -> bool:
    return True


_LONGEST: Final = "longest_waiting"
LENGTHS: Final = {
    "told": Condition(needs=(), holds=_always),
    "waiting": Condition(needs=("waiting_workloads",), holds=_waits),
    "idle_while_waiting": Condition(
        needs=("waiting_micro_gpus", "idle_micro_gpus"), holds=_idles_while_waiting
    ),
    "full_while_waiting": Condition(
        needs=("waiting_workloads", "held_micro_gpus", "total_micro_gpus"), holds=_full_while_waiting
    ),
    _LONGEST: Condition(needs=("waiting_workloads",), holds=_waits),
}
AMOUNTS: Final = {
    "total": Condition(needs=(), holds=_always, amount="total_micro_gpus"),
    "held": Condition(needs=(), holds=_always, amount="held_micro_gpus"),
    "idle": Condition(needs=(), holds=_always, amount="idle_micro_gpus"),
    "waiting": Condition(needs=(), holds=_always, amount="waiting_micro_gpus"),
    "idle_while_waiting": Condition(
        needs=("waiting_micro_gpus",), holds=_idles_while_waiting, amount="idle_micro_gpus"
    ),
}


def seconds(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """For how long each condition held; of `longest_waiting` the longest stretch without a break."""

    def value(name: str, condition: Condition, stood: Sequence[Stood]) -> float:
        lengths = list(_stretches(stood, condition, ask.policy))
        return (max(lengths, default=0) if name == _LONGEST else sum(lengths)) / MS_PER_SECOND

    return _by_condition(rows, ask, LENGTHS, value)


def gpu_hours(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-hours of each kind."""

    def value(_: str, condition: Condition, stood: Sequence[Stood]) -> float:
        return float(Fraction(_gpu_time(stood, condition, ask.policy), MICRO_PER_GPU * MS_PER_HOUR))

    return _by_condition(rows, ask, AMOUNTS, value)


def held_ratio(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """GPU-time held over the GPU-time there was, while both are told."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        both = [each for each in together(members) if not each.partial & _SHARE_OF]
        total = _gpu_time(both, AMOUNTS["total"], ask.policy)
        if not total:
            because = "no queue tells both the GPUs held and the GPUs in all"
            samples.append(Sample.undefined(labels, because))
            continue
        held = _gpu_time(both, AMOUNTS["held"], ask.policy)
        samples.append(Sample(labels=labels, value=float(Fraction(held, total))))
    return samples or [Sample.undefined({}, NOTHING_COUNTED)]


def _by_condition(
    rows: Sequence[Row],
    ask: Ask,
    conditions: dict[str, Condition],
    value: Callable[[str, Condition, Sequence[Stood]], float],
) -> list[Sample]:
    samples = []
    for labels, members in grouped(rows, ask.by):
        stood = list(together(members))
        for name, condition in conditions.items():
            named = {**labels, "condition": name}
            needs = [*condition.needs, *([condition.amount] if condition.amount else [])]
            missing = [need for need in needs if all(each.counts[need] is None for each in stood)]
            if missing:
                samples.append(Sample.undefined(named, f"no queue tells its {_WORDS[missing[0]]}"))
                continue
            partial = any(each.partial & set(needs) for each in stood)
            samples.append(Sample(labels=named, value=value(name, condition, stood), lower_bound=partial))
    return samples or [Sample.undefined({}, NOTHING_COUNTED)]


def _stretches(stood: Iterable[Stood], condition: Condition, policy: Policy) -> Iterator[int]:
    """The lengths of the stretches in which a condition holds without a break."""
    length_ms = 0
    for each in stood:
        # A gap is no time of which the condition is known.
        if any(each.counts[need] is None for need in condition.needs) or not condition.holds(each, policy):
            if length_ms:
                yield length_ms
            length_ms = 0
        elif not _is_silent(each):
            length_ms += each.length_ms
    if length_ms:
        yield length_ms


def _gpu_time(stood: Iterable[Stood], condition: Condition, policy: Policy) -> int:
    """Micro-GPU times milliseconds."""
    return sum(
        (each.counts[condition.amount] or 0) * each.length_ms
        for each in stood
        if condition.holds(each, policy)
    )


def _is_silent(stood: Stood) -> bool:
    return all(count is None for count in stood.counts.values())


def _told(rows: Sequence[Row], column: str) -> tuple[dict[int, int], bool]:
    """For how long each value was told; and whether some queue did not tell while others did."""
    told: dict[int, int] = defaultdict(int)
    partial = False
    for each in together(rows):
        count = each.counts[column]
        if count is not None:
            told[count] += each.length_ms
            partial = partial or column in each.partial
    return told, partial


def _not_exceeded(ordered: Sequence[tuple[int, int]], share: Fraction) -> int:
    """The smallest value that was not exceeded for at least this share of the time."""
    total = sum(length_ms for _, length_ms in ordered)
    reached = 0
    for value, length_ms in ordered:
        reached += length_ms
        if reached >= share * total:
            return value
    return ordered[-1][0]
