"""Of the recording `kueue`, whose queues give out CPUs and memory with GPUs: shares against the ledger's."""

import pytest

from api.answers import Question
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from service.books import books_of
from tests.recordings.comparing import imported

pytestmark = [pytest.mark.recordings, pytest.mark.long]


def test_where_cpus_are_plenty_the_dominant_shares_are_those_of_gpus_alone() -> None:
    store = imported("kueue")
    [row] = store.rows("select max(at_ms) as last_ms from transition")
    last_ms = int(str(row["last_ms"]))
    clock = FixedClock(last_ms)
    books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock).refresh()
    answers = Answers(store, Tenancy(), Policy(), clock)
    compared = 0
    # Before, a node is missing: quotas promise more than there is.
    for at_ms in (last_ms - 72_000, last_ms - 108_000):
        found = {
            name: {
                (row.labels["pool"].rpartition("/")[2], row.labels["queue"]): row.value
                for row in answers.metric(name, Question(as_of_ms=at_ms, by=("pool", "queue"))).rows
                if row.labels["queue"] != "cq-team-speech"
            }
            for name in ("dominant_entitled_gpus", "entitled_gpus")
        }
        assert found["dominant_entitled_gpus"] == found["entitled_gpus"]
        compared += sum(bool(value) for value in found["entitled_gpus"].values())
    [asked] = store.rows("select count(*) as n from quota_use where queue = '' and resources like '%memory%'")
    assert (compared, asked["n"]) == (8, 112)
