"""Refused pods, from the Events of a cluster to the page of the job that waits without them."""

from collections.abc import Iterator
from typing import Any

import pytest

from api.answers import Question
from collector.intake import Intake
from collector.translator import find
from domain.policy import Policy
from domain.tenant import Rule, Tenancy
from domain.window import FixedClock, format_instant, parse_instant
from service.answers import Answers
from service.books import books_of
from store.embedded import Store

NOON = parse_instant("2026-05-04T12:00:00Z")
GPU = "requests.nvidia.com/gpu"
QUOTA = (
    'Error creating: pods "{name}-x" is forbidden: exceeded quota: gpus, '
    f"requested: {GPU}=8, used: {GPU}=4, limited: {GPU}=8"
)
TENANCY = Tenancy(teams=(Rule(from_namespace_label="team"),))


def job(name: str, *, gpus: int = 8) -> dict[str, Any]:
    resources = {"limits": {"nvidia.com/gpu": str(gpus)}} if gpus else {}
    return {
        "metadata": {
            "uid": f"uid-{name}", "name": name, "namespace": "red-1", "resourceVersion": "7",
            "creationTimestamp": format_instant(NOON),
        },
        "spec": {"template": {"spec": {"containers": [{"name": "main", "resources": resources}]}}},
    }  # fmt: skip


def refused(name: str, count: int, minute: int, *, kind: str = "Job", note: str = QUOTA) -> dict[str, Any]:
    """The Event of a controller, as the old recorder writes it: it counts in place."""
    return {
        "metadata": {"uid": f"event-{name}", "namespace": "red-1", "resourceVersion": str(100 + count)},
        "involvedObject": {"kind": kind, "namespace": "red-1", "name": name, "uid": f"uid-{name}"},
        "type": "Warning", "reason": "FailedCreate", "message": note.format(name=name), "count": count,
        "firstTimestamp": format_instant(NOON), "lastTimestamp": format_instant(NOON + 60_000 * minute),
    }  # fmt: skip


NAMESPACE = {
    "metadata": {
        "uid": "ns", "name": "red-1", "resourceVersion": "1", "labels": {"team": "red"},
        "creationTimestamp": "2026-05-01T00:00:00Z",
    }
}  # fmt: skip


@pytest.fixture
def store() -> Iterator[Store]:
    made = Store.open(None)
    yield made
    made.close()


def read(
    store: Store, *objects: tuple[tuple[str, str], dict[str, Any]], observed_ms: int = NOON + 3_600_000
) -> None:
    intake = Intake("c", store, store.known("c"))
    for number, (kind, written) in enumerate(objects):
        translator = find(*kind)
        assert translator is not None
        intake.see(translator, "MODIFIED", written, observed_ms + number)
    intake.flush()
    books_of(store, tenancy=TENANCY, policy=Policy(), clock=FixedClock(NOON + 7_200_000)).refresh()


def answers(store: Store) -> Answers:
    return Answers(store, TENANCY, Policy(), FixedClock(NOON + 7_200_000))


def counted(store: Store, as_of_ms: int | None = None) -> dict[tuple[str, str], float | None]:
    rows = answers(store).metric("pod_denials_total", Question(as_of_ms=as_of_ms)).rows
    return {(row.labels["team"], row.labels["cause"]): row.value for row in rows if row.labels}


JOB, EVENT, SPACE = ("batch", "Job"), ("", "Event"), ("", "Namespace")
# Where no pod was ever read, admission stands for placement.
OTHER_POD = (
    ("", "Pod"),
    {"metadata": NAMESPACE["metadata"] | {"uid": "p", "name": "p", "namespace": "red-1"}},
)


def test_a_job_whose_pods_a_quota_refuses_waits_and_says_why(store: Store) -> None:
    known = ((SPACE, NAMESPACE), OTHER_POD, (JOB, job("a")), (EVENT, refused("a", 1, 0)))
    read(store, *known, observed_ms=NOON)
    read(store, (EVENT, refused("a", 1, 0)), (EVENT, refused("a", 9, 30)))
    detail = answers(store).workload("uid-a")
    assert detail is not None
    assert (detail["state"], detail["attempts"]) == ("placing", [])
    assert detail["denials"] == [
        {
            "denied_by": "ResourceQuota", "rule": "gpus", "count": 9,
            "text": f"exceeded quota: gpus, requested: {GPU}=8, used: {GPU}=4, limited: {GPU}=8",
            "requested": f"{GPU}=8", "used": f"{GPU}=4", "limited": f"{GPU}=8",
            "first_at": "2026-05-04T12:00:00.000Z", "last_at": "2026-05-04T12:30:00.000Z",
        }
    ]  # fmt: skip
    assert counted(store) == {("red", "ResourceQuota"): 9.0}
    assert counted(store, NOON + 60_000) == {("red", "ResourceQuota"): 1.0}
    # What is of an instant is not before it.
    as_it_was_refused = answers(store).workload("uid-a", NOON + 60_000 * 30)
    assert as_it_was_refused is not None
    assert [denial["count"] for denial in as_it_was_refused["denials"]] == [1]


def test_an_owner_that_is_no_workload_counts_for_its_namespace_and_a_job_without_gpus_not(
    store: Store,
) -> None:
    webhook = (
        'Error creating: admission webhook "validation.gatekeeper.sh" denied the request: [needs-team] no'
    )
    read(store, (SPACE, NAMESPACE), (JOB, job("cpu", gpus=0)), (EVENT, refused("cpu", 3, 1)))
    read(store, (EVENT, refused("rs", 2, 5, kind="ReplicaSet", note=webhook)))
    assert counted(store) == {("red", "Gatekeeper"): 2.0}


def test_an_event_of_something_else_is_no_refusal(store: Store) -> None:
    timeout = "Error creating: Timeout: request did not complete within requested timeout"
    read(store, (SPACE, NAMESPACE), (JOB, job("a")), (EVENT, refused("a", 4, 1, note=timeout)))
    assert counted(store) == {}
    detail = answers(store).workload("uid-a")
    assert detail is not None
    assert detail["denials"] == []
