"""
The same breaches on `kueue` by Kueue's histogram of admission waits, and by waits as we see them.

The promise is 40 s, an edge of Kueue's buckets, to each queue and priority class. Beside what `city` shows
(test_city_breaches.py) a ClusterQueue is stopped here, and starts again.
"""

import gzip
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import pytest

from store.embedded import Store
from tests.recordings.comparing import imported
from tests.recordings.test_city_breaches import Line, starving, told_by
from tests.shared import shared

pytestmark = pytest.mark.recordings

PROMISE_S: Final = 40
# One row per workload and instant at which it got quota, with when it was submitted, first lost its quota,
# and when its condition `Requeued` changed last before. Where pods are done and give GPUs back, one
# reservation goes on as another one.
ADMISSIONS: Final = """
with changed as (
    select
        uid,
        at_ms,
        state is distinct from lag(state) over (partition by uid order by at_ms, seq) as changes
    from transition
    where kind = 'Workload' and moment = 'condition' and subject = 'Requeued'
)

select
    workload.queue,
    workload.priority_class,
    workload.name,
    workload.submitted_ms,
    reservation.start_ms as at_ms,
    max(changed.at_ms) as requeued_ms,
    min(eviction.at_ms) as evicted_ms
from reservation
inner join workload
    on reservation.cluster = workload.cluster and reservation.workload_uid = workload.workload_uid
left join changed
    on
        reservation.workload_uid = changed.uid
        and changed.changes
        and changed.at_ms <= reservation.start_ms
left join eviction
    on
        reservation.workload_uid = eviction.workload_uid
        and eviction.at_ms <= reservation.start_ms
where not exists (
    select 1
    from reservation as before
    where before.workload_uid = reservation.workload_uid and before.end_ms = reservation.start_ms
)
group by all
"""
Rows = Sequence[Mapping[str, Any]]


@pytest.fixture(scope="module")
def store() -> Store:
    return imported("kueue")


@pytest.fixture(scope="module")
def admissions(store: Store) -> Rows:
    return store.rows(ADMISSIONS)


@pytest.fixture(scope="module")
def told() -> tuple[Counter[Line], Counter[Line]]:
    """What Kueue told at the end: admissions, and those of them after more than the promise."""
    text = gzip.decompress(shared("data/recorded/kueue/kueue.metrics.gz").read_bytes()).decode()
    return told_by(text, PROMISE_S)


def late(rows: Rows, *clock: str) -> Counter[Line]:
    """Admissions later than the promise by the first of these clocks that there is, or since submission."""
    return Counter(
        line(row)
        for row in rows
        if row["at_ms"] - next((row[name] for name in clock if row[name] is not None), row["submitted_ms"])
        > PROMISE_S * 1000
    )


def line(row: Mapping[str, Any]) -> Line:
    return str(row["queue"]), str(row["priority_class"])


def test_kueue_counts_the_admissions_that_we_see(
    admissions: Rows, told: tuple[Counter[Line], Counter[Line]]
) -> None:
    assert Counter(map(line, admissions)) == told[0]
    assert (len(told[0]), told[0].total()) == (11, 108)


def test_kueue_counts_from_the_last_change_of_the_condition_requeued(
    admissions: Rows, told: tuple[Counter[Line], Counter[Line]]
) -> None:
    assert late(admissions, "requeued_ms") == told[1]
    assert told[1].total() == 14


def test_the_clock_is_set_again_where_a_queue_starts_again_and_not_by_an_eviction(
    admissions: Rows, told: tuple[Counter[Line], Counter[Line]]
) -> None:
    """Two stood still for half a minute with their queue, long after they were first evicted."""
    stopped = [row for row in admissions if line(row) == ("cq-team-robotics", "batch")]
    last = {row["name"]: row for row in sorted(stopped, key=lambda row: row["at_ms"])}
    clocks = ("submitted_ms", "evicted_ms", "requeued_ms")
    waited = {
        name: [(row["at_ms"] - row[clock]) // 1000 for clock in clocks]
        for name, row in last.items()
        if name in {"kr-0", "kr-1"}
    }
    assert waited == {"kr-0": [85, 75, 0], "kr-1": [84, 80, 0]}
    # Who counts from the first eviction finds both late, and Kueue none.
    assert late(stopped, "evicted_ms").total() == 2
    assert told[1]["cq-team-robotics", "batch"] == 0


def test_of_the_breaches_that_kueue_tells_few_are_waits_of_new_work_and_these_our_index_tells_at_once(
    store: Store, admissions: Rows, told: tuple[Counter[Line], Counter[Line]]
) -> None:
    first = [row for row in admissions if row["evicted_ms"] is None]
    assert late(first) == {("cq-team-speech", "batch"): 1, ("cq-team-speech", "training"): 2}
    assert late(first) <= told[1]
    for row in first:
        broken_ms = row["submitted_ms"] + PROMISE_S * 1000 + 1
        if row["at_ms"] > broken_ms:
            assert starving(store, broken_ms)[line(row)] > PROMISE_S


def test_who_is_never_admitted_is_in_no_histogram(
    store: Store, told: tuple[Counter[Line], Counter[Line]]
) -> None:
    [row] = store.rows("select max(observed_ms) as at_ms from transition")
    index = starving(store, int(str(row["at_ms"])))
    # Of the first two there is no such queue.
    unseen = {("cq-gone", "training"), ("nope", "training"), ("cq-team-vision", "training")}
    assert {name for name, wait in index.items() if wait > PROMISE_S} == unseen
    assert [told[1][name] for name in unseen] == [0, 0, 0]
