"""What was read and not understood, until it is committed."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

from typing_extensions import override

from collector.decoding import Payload, sample_of
from domain.facts import SetAside


class Aside:
    """Counts by source and reason, with the first sample of each."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], SetAside] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(
        self, source: str, because: str, sample: Payload | str, *, observed_ms: int, count: int = 1
    ) -> None:
        """Count something that was set aside."""
        earlier = self._found.get((source, because))
        self._found[source, because] = SetAside(
            source=source,
            because=because,
            sample=earlier.sample if earlier else sample_of(sample),
            observed_ms=earlier.observed_ms if earlier else observed_ms,
            count=count + (earlier.count if earlier else 0),
        )

    def taken(self) -> list[SetAside]:
        """All that was counted; from here on it is counted anew."""
        found, self._found = list(self._found.values()), {}
        return found


class AsideOnce(Aside):
    """
    The same of a recording, which may be read again: what is kept of it already is not kept twice.

    A thing is known by what it is, why it was set aside and when it was received; so each has a row of its
    own. `seen` counts all of it by source and reason, what was known among it.
    """

    def __init__(self, known: Iterable[SetAside]) -> None:
        super().__init__()
        self.seen: Counter[tuple[str, str]] = Counter()
        self._known: Counter[tuple[str, str, str, int]] = Counter()
        for one in known:
            self._known[_place(one)] += one.count
        self._now: Counter[tuple[str, str, str, int]] = Counter()
        self._fresh: list[SetAside] = []

    @override
    def __len__(self) -> int:
        return len(self._fresh)

    @override
    def add(
        self, source: str, because: str, sample: Payload | str, *, observed_ms: int, count: int = 1
    ) -> None:
        self.seen[source, because] += count
        one = SetAside(
            source=source, because=because, sample=sample_of(sample), observed_ms=observed_ms, count=count
        )
        place = _place(one)
        self._now[place] += count
        more = self._now[place] - self._known[place]
        if more > 0:
            self._known[place] += more
            self._fresh.append(replace(one, count=more))

    @override
    def taken(self) -> list[SetAside]:
        found, self._fresh = self._fresh, []
        return found


def _place(one: SetAside) -> tuple[str, str, str, int]:
    return one.source, one.because, one.sample, one.observed_ms
