"""A recording that is read in pieces, with stops and repeated lines, gives the same lives."""

import random
from functools import cache
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from collector.intake import Intake
from collector.recording import Reading, deliver, import_recording, readings
from service.refresh import Refresher
from store.embedded import Store
from tests.recordings.comparing import TENANCY, imported, rows
from tests.shared import shared

pytestmark = pytest.mark.recordings

DERIVED = {
    "workload": "select * from workload",
    "span": "select * from span",
    "attempt": "select * from attempt",
    "holding": "select * from holding",
    "run": "select * from run",
    "eviction": "select * from eviction",
    "member_wait": "select * from member_wait",
    "reservation": "select * from reservation",
    "member": "select * from member",
    "node_span": "select * from node_span",
    "queue_span": "select * from queue_span",
}
CUTS_EACH = 50


def derived(store: Store) -> dict[str, list[str]]:
    """All that was derived, in a fixed order."""
    return {name: sorted(map(repr, rows(store, select))) for name, select in DERIVED.items()}


def facts(store: Store) -> dict[str, int]:
    """How many facts there are."""
    return {
        "transitions": rows(store, "select count(*) as n from transition")[0]["n"],
        "descriptions": rows(store, "select count(*) as n from description")[0]["n"],
        "events": rows(store, "select count(*) as n from event_sighting")[0]["n"],
    }


@pytest.mark.parametrize("name", ["native", "kueue", "volcano"])
def test_importing_twice_changes_nothing(name: str) -> None:
    store = imported(name)
    before = derived(store), facts(store)
    import_recording(shared(f"data/recorded/{name}"), cluster=name, sink=store)
    Refresher(store=store, tenancy=TENANCY).refresh()
    assert (derived(store), facts(store)) == before


@cache
def uncut() -> tuple[list[Reading], dict[str, list[str]], dict[str, int]]:
    """The readings of the Kueue recording, and what comes of them without any stop."""
    store = imported("kueue")
    return list(readings(shared("data/recorded/kueue"))), derived(store), facts(store)


@pytest.mark.long
@pytest.mark.timeout(600)
@settings(max_examples=7, deadline=None, phases=[Phase.generate])  # a seed cannot be shrunk
@given(seed=st.integers(0, 2**32))
def test_a_stream_cut_anywhere_and_resumed_gives_the_same_lives(seed: int) -> None:
    """
    50 cuts. At each the process stops: half of the time in the middle of a batch, which is lost; the next
    one reads again from some line before what was committed.
    """
    lines, lives, counts = uncut()
    chance = random.Random(seed)
    store = Store.open(None)
    refresher: Any = Refresher(store=store, tenancy=TENANCY)
    committed = begin = 0
    for cut in [*sorted(chance.sample(range(1, len(lines)), CUTS_EACH)), len(lines)]:
        intake = Intake("kueue", store, store.known("kueue"))
        middle = max(begin, cut - chance.randrange(60))
        for number, reading in enumerate(lines[begin:cut], start=begin):
            if number == middle and chance.random() < 0.5:
                intake.flush()
                committed = max(committed, number)
            deliver(intake, reading)
        if chance.random() < 0.5 or cut == len(lines):
            intake.flush()
            committed = cut
        if chance.random() < 0.3:
            refresher.refresh()
        if chance.random() < 0.3:
            refresher = Refresher(store=store, tenancy=TENANCY)
        begin = max(committed - chance.randrange(200), 0)
    refresher.refresh()
    assert facts(store) == counts
    assert derived(store) == lives
