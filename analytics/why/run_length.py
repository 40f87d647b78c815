"""How long runs last, by what like ones lasted: when somebody who holds GPUs may be expected to end."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# On fewer runs nothing is said.
FEWEST: Final = 8
_LOW, _MEDIAN, _HIGH = 0.1, 0.5, 0.9


class Kind(NamedTuple):
    """Which runs are alike; the milli-GPUs may be unknown."""

    team: str
    service_class: str
    micro_gpus: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """
    The remaining run of one that has lasted some time: median and 80 % interval, milliseconds.

    `like` names the runs that it rests on, of which `runs` lasted longer than it has by now.
    """

    low_ms: int
    median_ms: int
    high_ms: int
    runs: int
    like: str


@dataclass(slots=True)
class RunLengths:
    """
    Lengths of runs that ended by themselves, by what they were; ask it for many.

    Runs that were preempted or lost tell only that they would have been longer, and are left out by who
    reads them: of these lengths the long ones are too few where much is preempted.
    """

    _rungs: Mapping[str, dict[object, list[int]]] = field(
        default_factory=lambda: {"team and size": {}, "size": {}, "class": {}, "": {}}
    )

    @classmethod
    def of(cls, runs: Iterable[tuple[Kind, int]]) -> "RunLengths":
        """From runs with their lengths in milliseconds."""
        found = cls()
        for kind, length_ms in runs:
            for rung, key in _keys(kind):
                found._rungs[rung].setdefault(key, []).append(length_ms)
        for by_key in found._rungs.values():
            for lengths in by_key.values():
                lengths.sort()
        return found

    def expected(self, kind: Kind, age_ms: int) -> Expected | None:
        """
        What is left of a run of that age; None where too few like it lasted so long.

        The first of these that has `FEWEST` runs longer than the age: runs of its team, class and size; of
        its class and size; of its class; all. Given the age, a quantile of the remaining length is that of
        the lengths beyond the age, less the age.

        >>> lengths = RunLengths.of((Kind("nlp", "batch", 8), minutes) for minutes in range(1, 21))
        >>> one = lengths.expected(Kind("nlp", "batch", 8), 10)
        >>> one.low_ms, one.median_ms, one.high_ms, one.runs
        (1, 5, 9, 10)
        """
        for rung, key in _keys(kind):
            lengths = self._rungs[rung].get(key, [])
            first = bisect_right(lengths, age_ms)
            longer = len(lengths) - first
            if longer >= FEWEST:
                low, median, high = (_quantile(lengths, first, share) for share in (_LOW, _MEDIAN, _HIGH))
                return Expected(
                    low_ms=low - age_ms,
                    median_ms=median - age_ms,
                    high_ms=high - age_ms,
                    runs=longer,
                    like=_like(rung, kind),
                )
        return None


def _keys(kind: Kind) -> tuple[tuple[str, object], ...]:
    size = (kind.service_class, kind.micro_gpus)
    return (
        ("team and size", (kind.team, *size)),
        ("size", size),
        ("class", kind.service_class),
        ("", None),
    )


def _quantile(lengths: Sequence[int], first: int, share: float) -> int:
    """The smallest of the lengths from `first` on that this share of them does not exceed."""
    beyond = len(lengths) - first
    return lengths[first + max(-(-round(share * 1000) * beyond // 1000), 1) - 1]


def _like(rung: str, kind: Kind) -> str:
    size = "as many GPUs"
    return {
        "team and size": f"{kind.service_class} runs of team {kind.team} with {size}",
        "size": f"{kind.service_class} runs with {size}",
        "class": f"{kind.service_class} runs",
        "": "runs of any kind",
    }[rung]
