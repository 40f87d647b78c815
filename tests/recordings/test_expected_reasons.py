"""
At every change of state, and half-way to the next, the reason is the arranged one, or the table says why not.

The three short recordings are checked where they are imported: `test_small_recordings.py`.
"""

from collections import defaultdict
from collections.abc import Iterator

import pytest

from analytics.why.situation import explain
from service import why_facts
from service.why_search import Search
from store.embedded import Store
from tests.recordings.comparing import ground_truth, rows, show
from tests.recordings.expected import IDLE, SETTLES_SECONDS, expected, texts

# Whoever asks first for the store of `city` imports it, and whoever asks meanwhile waits.
pytestmark = [pytest.mark.recordings, pytest.mark.timeout(600)]

RECORDINGS = ("native", "kueue", "volcano", "city")
STRETCHES = """
select
    workload.name,
    workload.workload_uid as uid,
    span.state,
    (span.start_ms - $first_ms) / 1000 as start,
    (least(coalesce(span.end_ms, $end_ms), $end_ms) - $first_ms) / 1000 as until
from span
inner join workload on span.cluster = workload.cluster and span.workload_uid = workload.workload_uid
where span.state in (select unnest($states)) and span.start_ms < $end_ms
order by start, workload.name
"""


@pytest.mark.parametrize("recording", RECORDINGS)
def test_every_text_of_the_truth_stands_in_the_table(recording: str) -> None:
    table = expected(recording)
    told = set(texts(recording).values())
    assert {row["expect"] for row in table.rows} == told
    assert [row for row in table.rows if ("reason" in row) == ("no_cause" in row)] == []
    assert [row for row in table.disagreements if not row["because"]] == []


def compared(store: Store, recording: str, every: int = 1) -> tuple[list[str], list[str]]:
    """What was compared, and what is found instead and not explained; of many instants every so many-th."""
    table, truth = expected(recording), ground_truth(recording)
    first_ms, end_ms = round(truth["epoch_start"] * 1000), round(truth["epoch_end"] * 1000)
    asked: dict[float, dict[str, tuple[str, str]]] = defaultdict(dict)
    for row in rows(store, STRETCHES, first_ms=first_ms, end_ms=end_ms, states=list(IDLE)):
        for seconds in _instants(row["start"], row["until"]):
            reason = table.reason(row["name"], seconds, row["state"])
            if reason:
                asked[seconds][row["uid"]] = (row["name"], reason)
    agreed: list[str] = []
    wrong: list[str] = []
    for seconds in sorted(asked)[::every]:
        at_ms = first_ms + round(seconds * 1000)
        search = Search.of(store, recording, at_ms)
        for uid, known in why_facts.read(store, recording, list(asked[seconds]), at_ms).items():
            answer = explain(known.situation(search.site, search.found(known)))
            found = str(answer.primary.reason) if answer else ""
            name, reason = asked[seconds][uid]
            line = f"{name} at {seconds:.1f} s: {found}, expected {reason}"
            is_known = table.explained(name, seconds, found)
            (agreed if found == reason or is_known else wrong).append(line)
    return agreed, wrong


def _instants(start: float, until: float) -> Iterator[float]:
    """Once the change has been told, and half-way to the next; of a shorter stretch nothing can be told."""
    if until - start > SETTLES_SECONDS:
        yield start + SETTLES_SECONDS
        yield (start + until) / 2


def check(store: Store, recording: str, *, every: int, least: int) -> None:
    agreed, wrong = compared(store, recording, every)
    show(f"{recording}: {len(agreed)} reasons compared, {len(wrong)} others found", *wrong, sep="\n  ")
    assert wrong == []
    assert len(agreed) >= least


@pytest.mark.long
def test_all_reasons_of_city_are_the_arranged_ones(city_store: Store) -> None:
    check(city_store, "city", every=1, least=30)
