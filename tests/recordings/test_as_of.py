"""An answer about a past instant stays as it is when the cluster's story goes on."""

from typing import Any

import pytest

from analytics.metrics import REGISTRY
from api.answers import ListQuestion, Question
from collector.intake import Intake
from collector.recording import deliver, readings
from domain.policy import Policy
from domain.window import FixedClock
from service.answers import Answers
from service.refresh import Refresher
from store.embedded import Store
from tests.recordings.comparing import TENANCY
from tests.shared import shared

pytestmark = [pytest.mark.recordings, pytest.mark.timeout(300)]

# Stamps are whole seconds and lie up to a second before we see them; a slow server's even more.
BEHIND_MS = 3_000


def everything(store: Store, as_of_ms: int) -> dict[str, Any]:
    """Every metric by each of its dimensions, and every workload, as of an instant."""
    answers = Answers(store, TENANCY, Policy(), FixedClock(as_of_ms))
    found: dict[str, Any] = {}
    for name, metric in REGISTRY.items():
        for dimension in metric.dimensions:
            answer = answers.metric(name, Question(as_of_ms=as_of_ms, by=(dimension,)))
            found[f"{name} by {dimension}"] = sorted(map(repr, answer.rows))
            found[f"coverage of {name}"] = answer.coverage
    listing = answers.workloads(ListQuestion(as_of_ms=as_of_ms, page_size=1000))
    for row in listing.rows:
        uid = str(row["uid"])
        found[f"row of {uid}"] = row
        found[uid] = answers.workload(uid, as_of_ms)
    return found


@pytest.mark.long
@pytest.mark.parametrize("part", [0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", ["native", "kueue", "volcano"])
def test_what_was_true_then_stays_true(name: str, part: float) -> None:
    store = Store.open(None)
    refresher = Refresher(store=store, tenancy=TENANCY)
    intake = Intake(name, store, store.known(name))
    lines = list(readings(shared(f"data/recorded/{name}")))
    cut = int(len(lines) * part)
    for reading in lines[:cut]:
        deliver(intake, reading)
    intake.flush()
    refresher.refresh()
    as_of_ms = lines[cut - 1].observed_ms - BEHIND_MS
    before = everything(store, as_of_ms)
    for reading in lines[cut:]:
        deliver(intake, reading)
    intake.flush()
    refresher.refresh()
    after = everything(store, as_of_ms)
    changed = {key: (before.get(key), after[key]) for key in after if before.get(key) != after[key]}
    assert not changed
