"""Bookings become figures by Open XDMoD's formulas: sums, means with their standard error, weighted means."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction
from math import sqrt
from typing import Final

from analytics.evaluate import grouped, shown, whole
from analytics.folding import OTHERS
from analytics.xdmod.rows import PARTS
from domain.metric import Ask, Compute, Row, Sample
from domain.window import MS_PER_HOUR

NO_JOB: Final = "no job had started by then"
NONE_STARTED: Final = "no job started in the window"
NONE_RAN: Final = "no job ran in the window"
NONE_ENDED: Final = "no job ended in the window"
FOREIGN: Final = "users of foreign work are not told apart"
NOBODY_TELLS: Final = "nobody tells how many {} these jobs had"
_WORDS: Final = {"cpu": "CPUs", "gpu": "GPUs", "node": "nodes"}
# A figure of one group of rows: its value, whether it is a lower bound; or why there is none.
_Told = tuple[float, bool] | str


def jobs(column: str) -> Compute:
    """The `compute` of a count of jobs; rows of `JOBS`."""

    def told(members: Sequence[Row]) -> _Told:
        return float(_sum(members, column)), False

    return _of_groups(told)


def submitted(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Jobs submitted, once for each `period` in which they must have run to count; rows of `JOBS`."""
    return _each(rows, ask, "period", {name: jobs(f"submitted_by_{name}") for name in ("day", "month")})


def wait_hours(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Hours waited by jobs that started; rows of `JOBS`."""
    return _of_groups(lambda members: (_sum(members, "wait_ms") / MS_PER_HOUR, False))(rows, ask)


def wait_per_job(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Mean and standard error of the hours waited by jobs that started; rows of `JOBS`."""

    def mean(members: Sequence[Row]) -> _Told:
        count = _sum(members, "started")
        return (_sum(members, "wait_ms") / count / MS_PER_HOUR, False) if count else NONE_STARTED

    def error(members: Sequence[Row]) -> _Told:
        count = _sum(members, "started")
        if not count:
            return NONE_STARTED
        total = Fraction(_sum(members, "wait_ms"))
        return _error(count, total, _sum(members, "squared_wait")) / MS_PER_HOUR, False

    return _each(rows, ask, "statistic", {"mean": _of_groups(mean), "standard_error": _of_groups(error)})


def used_hours(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Hours of each resource; rows of `USED`."""
    return _of_resources(_used)(rows, ask)


def used_per_job(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """Mean hours of jobs that ran, and the error of the mean of those that ended; rows of `USED`."""

    def mean(members: Sequence[Row]) -> _Told:
        used, count = _used(members), _sum(members, "running")
        if isinstance(used, str) or not count:
            return NONE_RAN if not count else str(used)
        return used[0] / count, used[1]

    def error(members: Sequence[Row]) -> _Told:
        used, count = _used(members), _sum(members, "ended")
        if isinstance(used, str) or not count:
            return NONE_ENDED if not count else str(used)
        if used[1]:
            return NOBODY_TELLS.format(_WORDS[_resource(members)])
        parts = PARTS[_resource(members)]
        coarse = min(parts, 1000)
        total = Fraction(_sum(members, "amount") * coarse, parts)
        return _error(count, total, _sum(members, "squared")) / coarse / MS_PER_HOUR, False

    both = {"mean": _of_resources(mean), "standard_error": _of_resources(error)}
    return _each(rows, ask, "statistic", both)


def weighted_size(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The mean CPUs of a job, each weighted by its hours of the resource; rows of `USED`."""

    def mean(members: Sequence[Row]) -> _Told:
        if _sum(members, "unknown") or _sum(members, "unsized"):
            return NOBODY_TELLS.format("CPUs" if _sum(members, "unsized") else _WORDS[_resource(members)])
        amount = _sum(members, "amount")
        if not amount:
            return "no such hour was used in the window"
        return _sum(members, "by_size") / amount / PARTS["cpu"], False

    return _of_resources(mean)(rows, ask)


def expansion_factor(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The mean expansion factor, each job that ended weighted by its node-hours; rows of `JOBS`."""

    def mean(members: Sequence[Row]) -> _Told:
        if _sum(members, "unweighted"):
            return NOBODY_TELLS.format("nodes")
        weight = _sum(members, "weight")
        return (_sum(members, "stretched") / weight, False) if weight else NONE_ENDED

    return _of_groups(mean)(rows, ask)


def active_users(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """
    How many users had jobs that ran; at least so many where jobs of nobody ran. Rows of `JOBS`.

    Users of foreign work are not told apart, so they are not counted.
    """

    def told(members: Sequence[Row]) -> _Told:
        names = {str(shown(row)["user_name"]) for row in members if whole(row, "running")}
        known = names - {"", OTHERS}
        return FOREIGN if names == {OTHERS} else (float(len(known)), names != known)

    return _of_groups(told)(rows, ask)


def _used(members: Sequence[Row]) -> _Told:
    unknown, resource = _sum(members, "unknown"), _resource(members)
    if unknown and unknown == _sum(members, "running"):
        return NOBODY_TELLS.format(_WORDS[resource])
    return _sum(members, "amount") / PARTS[resource] / MS_PER_HOUR, bool(unknown)


def _resource(members: Sequence[Row]) -> str:
    return str(members[0]["resource"])


def _error(count: int, total: Fraction, squared: int) -> float:
    """The standard error of a mean: the deviation of the population over the root of how many there are."""
    mean = total / count
    return sqrt(max(squared / Fraction(count) - mean * mean, Fraction(0)) / count)


def _of_groups(told: Callable[[Sequence[Row]], _Told]) -> Compute:
    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        found = list(_samples(grouped(rows, ask.by), told))
        return found or [Sample.undefined({}, NO_JOB)]

    return compute


def _of_resources(told: Callable[[Sequence[Row]], _Told]) -> Compute:
    """Hours of different resources are never added up: they stay apart, asked for or not."""

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        by = ask.by if "resource" in ask.by else (*ask.by, "resource")
        found = list(_samples(grouped(rows, by), told))
        return found or [Sample.undefined({}, NO_JOB)]

    return compute


def _samples(
    groups: Iterable[tuple[dict[str, str], list[Row]]], told: Callable[[Sequence[Row]], _Told]
) -> Iterator[Sample]:
    for labels, members in groups:
        found = told(members)
        if isinstance(found, str):
            yield Sample.undefined(labels, found)
        else:
            yield Sample(labels=labels, value=found[0], lower_bound=found[1])


def _each(rows: Sequence[Row], ask: Ask, label: str, computes: dict[str, Compute]) -> list[Sample]:
    """The samples of several computes, each with its name under a label more."""
    if not rows:
        return [Sample.undefined({}, NO_JOB)]
    return [
        Sample(
            labels={**sample.labels, label: name},
            value=sample.value,
            lower_bound=sample.lower_bound,
            undefined_because=sample.undefined_because,
        )
        for name, compute in computes.items()
        for sample in compute(rows, ask)
    ]


def _sum(members: Sequence[Row], column: str) -> int:
    return sum(whole(row, column) for row in members)
