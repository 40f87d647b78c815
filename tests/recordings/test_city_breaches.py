"""
The same breaches on `city` by Kueue's histogram of admission waits, and by the starvation index.

The promise is 320 s, an edge of Kueue's buckets, to each queue and priority class.
"""

import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import pytest

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask
from domain.window import MS_PER_SECOND, Window
from store.embedded import Store
from tests.shared import shared

# Whoever asks first for the store of `city` imports it, and whoever asks meanwhile waits.
pytestmark = [pytest.mark.recordings, pytest.mark.timeout(600)]

PROMISE_S = 320
_SERIES = re.compile(
    r'kueue_admission_wait_time_seconds_(?P<what>bucket|count)\{cluster_queue="(?P<queue>[^"]+)",'
    r'priority_class="(?P<priority>[^"]*)",replica_role="standalone"(?:,le="(?P<edge>[^"]+)")?\}'
    r" (?P<value>\S+)"
)
# One row per workload and instant at which it got quota, with when it was submitted and when it was
# evicted first before that.
ADMISSIONS = """
select
    workload.queue,
    workload.priority_class,
    reservation.workload_uid,
    reservation.start_ms as at_ms,
    workload.submitted_ms,
    min(eviction.at_ms) as first_evicted_ms
from reservation
inner join workload
    on reservation.cluster = workload.cluster and reservation.workload_uid = workload.workload_uid
left join eviction
    on
        reservation.cluster = eviction.cluster
        and reservation.workload_uid = eviction.workload_uid
        and eviction.at_ms <= reservation.start_ms
where reservation.start_ms <= $until_ms
group by
    workload.queue,
    workload.priority_class,
    reservation.workload_uid,
    reservation.start_ms,
    workload.submitted_ms
"""
# The longest wait on end of work in a queue and priority class.
LONGEST = """
select coalesce(max(wait_ms), 0) as wait_ms
from (
    select sum(coalesce(end_ms, $until_ms) - start_ms) as wait_ms
    from waiting_span
    where queue = $queue and priority_class = $priority_class and start_ms < $until_ms
    group by workload_uid, episode
) as waited
"""
# A queue and a priority class.
Line: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Told:
    """What Kueue told in a scrape: admissions by then, and those of them after more than the promise."""

    at_ms: int
    admissions: Counter[Line]
    too_late: Counter[Line]


@dataclass(frozen=True, slots=True)
class Admission:
    """An admission as we saw it; `evicted_ms` is when the workload first lost its quota, if it did."""

    line: Line
    at_ms: int
    submitted_ms: int
    evicted_ms: int | None

    @property
    def by_kueues_clock_ms(self) -> int:
        """Since the submission, or since the first requeueing: no later eviction sets that clock again."""
        return self.at_ms - (self.submitted_ms if self.evicted_ms is None else self.evicted_ms)


def scrapes() -> Iterator[Told]:
    data = lzma.decompress(shared("data/recorded/city/kueue.metrics.txt.xz").read_bytes()).decode()
    for part in data.split("#scrape ")[1:]:
        head, _, text = part.partition("\n")
        at_ms = round(json.loads(head)["t"] * MS_PER_SECOND)
        yield Told(at_ms, *told_by(text, PROMISE_S))


def told_by(text: str, promise_s: int) -> tuple[Counter[Line], Counter[Line]]:
    """Admissions by a scrape, and those of them after more than the promise, an edge of the buckets."""
    admissions: Counter[Line] = Counter()
    in_time: Counter[Line] = Counter()
    for found in _SERIES.finditer(text):
        line = found["queue"], found["priority"]
        if found["what"] == "count":
            admissions[line] = round(float(found["value"]))
        elif found["edge"] == str(promise_s):
            in_time[line] = round(float(found["value"]))
    return admissions, admissions - in_time


@pytest.fixture(scope="module")
def told() -> list[Told]:
    return list(scrapes())


@pytest.fixture(scope="module")
def admissions(city_store: Store, told: list[Told]) -> list[Admission]:
    return [
        Admission(
            (str(row["queue"]), str(row["priority_class"])),
            *(row[name] for name in ("at_ms", "submitted_ms", "first_evicted_ms")),  # type: ignore[arg-type]
        )
        for row in city_store.rows(ADMISSIONS, {"until_ms": told[-1].at_ms})
    ]


@pytest.fixture(scope="module")
def alike(told: list[Told], admissions: list[Admission]) -> set[Line]:
    """Lines of which every reservation was admitted: elsewhere some wait for a check, or are withdrawn."""
    ours = Counter(each.line for each in admissions)
    return {line for line, count in told[-1].admissions.items() if ours[line] == count}


def test_kueue_counts_the_admissions_that_we_see(alike: set[Line], told: list[Told]) -> None:
    assert len(told[-1].admissions) == 18
    assert sum(told[-1].admissions[line] for line in alike) == 970
    assert len(alike) == 10


def test_kueue_counts_from_the_first_requeueing_on_running_time_included(
    alike: set[Line], told: list[Told], admissions: list[Admission]
) -> None:
    by_its_clock = Counter(
        each.line for each in admissions if each.by_kueues_clock_ms > PROMISE_S * MS_PER_SECOND
    )
    theirs = told[-1].too_late
    # Stamps are whole seconds: one wait of 320 s is on the other side.
    apart = {line: theirs[line] - by_its_clock[line] for line in alike if theirs[line] != by_its_clock[line]}
    assert apart == {("ads", "batch-low"): 1}
    assert sum(theirs[line] for line in alike) == 356
    # Of these only so few had waited that long when they were admitted for the first time.
    first = [each for each in admissions if each.evicted_ms is None and each.line in alike]
    assert sum(each.by_kueues_clock_ms > PROMISE_S * MS_PER_SECOND for each in first) == 13


def test_kueue_tells_breaches_where_nobody_waited_so_long(city_store: Store, told: list[Told]) -> None:
    line = queue, priority_class = "robotics", "batch-low"
    asked = {"queue": queue, "priority_class": priority_class, "until_ms": told[-1].at_ms}
    (longest,) = city_store.rows(LONGEST, asked)
    assert told[-1].too_late[line] == 32
    assert 0 < longest["wait_ms"] < PROMISE_S * MS_PER_SECOND  # type: ignore[operator]


def test_a_breach_that_kueue_can_see_was_told_by_us_before(
    city_store: Store, alike: set[Line], told: list[Told], admissions: list[Admission]
) -> None:
    late = [
        each
        for each in admissions
        if each.line in alike
        and each.evicted_ms is None
        and each.by_kueues_clock_ms > PROMISE_S * MS_PER_SECOND
    ]
    earlier = []
    for each in late:
        # The scrape before the admission: Kueue's histogram cannot know of it yet.
        before = max((one for one in told if one.at_ms < each.at_ms), key=lambda one: one.at_ms)
        after = min((one for one in told if one.at_ms >= each.at_ms), key=lambda one: one.at_ms)
        assert after.too_late[each.line] > before.too_late[each.line]
        broken_ms = each.submitted_ms + PROMISE_S * MS_PER_SECOND
        earlier.append((after.at_ms - broken_ms) / MS_PER_SECOND)
        assert starving(city_store, each.at_ms)[each.line] > PROMISE_S
    # By so many seconds our index passes the promise before a scrape of Kueue shows it.
    assert (len(earlier), round(min(earlier)), round(max(earlier))) == (13, 91, 440)


def starving(store: Store, as_of_ms: int) -> dict[Line, float]:
    """The starvation index by queue and priority class."""
    metric = REGISTRY["starvation_index_seconds"]
    ask = Ask(window=Window(start_ms=as_of_ms - 1, end_ms=as_of_ms), by=("queue", "priority_class"))
    samples = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
    return {
        (each.labels["queue"], each.labels["priority_class"]): each.value
        for each in samples
        if each.value is not None
    }


def test_who_is_never_admitted_is_in_no_histogram(city_store: Store, told: list[Told]) -> None:
    index = starving(city_store, told[-1].at_ms)
    unseen = {line for line, wait in index.items() if wait > PROMISE_S and not told[-1].too_late[line]}
    # Who waits there still was never admitted. Kueue has no histogram of queues that there are not.
    assert unseen == {
        ("climate", "batch-low"),
        ("vision", "training"),
        ("vision-2024", "training"),
        ("", "batch-low"),
        ("", "training"),
    }
