"""Quota reserved on `city`, against what Kueue said of itself each half minute."""

import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from analytics.kueue_check import RESERVED, Figure, Key, theirs_of
from domain.quantity import MICRO_PER_GPU
from domain.window import MS_PER_SECOND
from service.kueue_checks import ours_of, series_in
from store.embedded import Store
from tests.shared import shared

# Whoever asks first for the store of `city` imports it, and whoever asks meanwhile waits.
pytestmark = [pytest.mark.recordings, pytest.mark.timeout(600)]

# Kueue counts what its cache holds, which follows the objects with a delay of its own. Of the figures that
# differ at the very instant, more than half are equal within half a second.
APART_MS = 2 * MS_PER_SECOND
# A job failed at 1767.5 s. Kueue had seen it by 1774.7 s, when it took its finalizer away, and still counted
# its 8 GPUs at 1770.6 s.
SEEN_LATE = {(1_770_581, "robotics", "a100", 32.0)}
STRETCHES = """
select workload.queue, reservation.flavor, reservation.start_ms, reservation.end_ms, reservation.micro_gpus
from reservation
inner join workload
    on reservation.cluster = workload.cluster and reservation.workload_uid = workload.workload_uid
"""


def scrapes() -> Iterator[tuple[int, str]]:
    """The instant of each scrape, and its lines on reservations."""
    data = lzma.decompress(shared("data/recorded/city/kueue.metrics.txt.xz").read_bytes()).decode()
    for part in data.split("#scrape ")[1:]:
        head, _, text = part.partition("\n")
        lines = [line for line in text.splitlines() if line.startswith(RESERVED)]
        yield round(json.loads(head)["t"] * MS_PER_SECOND), "\n".join([*lines, ""])


@dataclass(frozen=True, slots=True)
class Stretch:
    """From when to when how many GPUs are reserved; `end_ms` None: they still are."""

    start_ms: int
    end_ms: int | None
    gpus: float

    def holds(self, at_ms: int) -> bool:
        """Whether just before an instant."""
        return self.start_ms < at_ms and (self.end_ms is None or self.end_ms >= at_ms)


def reserved(stretches: list[Stretch], at_ms: int) -> float:
    return sum(one.gpus for one in stretches if one.holds(at_ms))


def some_time_near(stretches: list[Stretch], at_ms: int, gpus: float) -> bool:
    """Whether so many are reserved at some instant that is not further away than `APART_MS`."""
    ends = [end for one in stretches for end in (one.start_ms, one.end_ms) if end is not None]
    near = [end for end in ends if abs(end - at_ms) <= APART_MS]
    return any(reserved(stretches, instant) == gpus for end in near for instant in (end, end + 1))


def test_reserved_gpus_are_those_of_kueue_within_two_seconds(city_store: Store) -> None:
    told = list(scrapes())
    stretches: dict[Key, list[Stretch]] = defaultdict(list)
    for row in city_store.rows(STRETCHES):
        stretch = Stretch(row["start_ms"], row["end_ms"], row["micro_gpus"] / MICRO_PER_GPU)  # type: ignore[arg-type,operator]
        stretches[str(row["queue"]), str(row["flavor"])].append(stretch)
    counts: Counter[str] = Counter()
    seen_late = set()
    for number, (at_ms, text) in enumerate(told):
        for key, theirs in theirs_of(series_in(text))[Figure.RESERVED].items():
            ours = reserved(stretches[key], at_ms)
            if number % 20 == 0:  # what the service compares is the same
                assert ours == ours_of(city_store, "city", at_ms)[Figure.RESERVED].get(key, 0.0)
            if ours == theirs:
                counts["at once"] += 1
            elif some_time_near(stretches[key], at_ms, theirs):
                counts["soon"] += 1
            else:
                seen_late.add((at_ms - told[0][0], *key, theirs))
    assert seen_late == SEEN_LATE
    # 89 scrapes of 6 queues with 2 flavors of whole cards.
    assert counts == {"at once": 979, "soon": 88}
