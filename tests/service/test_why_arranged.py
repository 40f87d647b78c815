"""Clusters as sites have them, from objects of an API server to the answer: what it says and advises."""

from functools import partial
from typing import Any

import pytest

from domain.policy import Policy
from domain.window import parse_instant
from service import positions, why
from store.embedded import Store
from tests.cases.replay import CREATED, Json, asking, replay, truths, written

GPU, NOON = "nvidia.com/gpu", "2026-05-04T12:00:00Z"
KUEUE, VOLCANO = "kueue.x-k8s.io/v1beta2", "scheduling.volcano.sh/v1beta1"
LATER = "2026-05-04T07:00:00Z"
made = partial(written, apiVersion=KUEUE)


def site(*read: Json) -> Store:
    return replay([("ADDED", one, one["metadata"]["creationTimestamp"]) for one in read])


def node(name: str, **labels: str) -> Json:
    """A node of 8 GPUs."""
    sizes = {GPU: "8", "cpu": "128", "memory": "1Ti", "pods": "110"}
    status = {"capacity": sizes, "allocatable": sizes, "conditions": truths({"Ready": "True"}, CREATED)}
    return written("Node", name, metadata={"labels": labels}, spec={}, status=status)


def groups(**amounts: str) -> list[Json]:
    """The quota of one flavor: its amounts as the API names them."""
    resource = {"name": GPU, **amounts}
    return [{"coveredResources": [GPU], "flavors": [{"name": "a100", "resources": [resource]}]}]


def queue(name: str, gpus: int, *, cohort: str = "", strict: bool = False, **amounts: str) -> list[Json]:
    """A ClusterQueue, and a door of the same name."""
    spec: Json = {"resourceGroups": groups(nominalQuota=str(gpus), **amounts), "namespaceSelector": {}}
    spec |= {"cohortName": cohort} if cohort else {}
    spec |= {"queueingStrategy": "StrictFIFO"} if strict else {}
    return [made("ClusterQueue", name, spec=spec), door(name, name)]


def door(name: str, to: str, **spec: str) -> Json:
    return made("LocalQueue", f"door-{name}", metadata={"name": name}, spec={"clusterQueue": to, **spec})


def cohort(name: str, gpus: int, *, parent: str = "", **amounts: str) -> Json:
    spec: Json = {"resourceGroups": groups(nominalQuota=str(gpus), **amounts)}
    return made("Cohort", name, spec=spec | ({"parentName": parent} if parent else {}))


def workload(
    uid: str,
    gpus: int,
    through: str,
    *,
    reserved: bool = False,
    said: str = "",
    at: str = CREATED,
    cpus: int = 0,
    **status: Any,
) -> Json:
    spec: Json = asking(gpus)
    if cpus:
        spec["containers"][0]["resources"]["requests"] = {"cpu": cpus}
    pods = {"name": "main", "count": 1, "template": {"spec": spec}}
    conditions = truths({"QuotaReserved": str(reserved)}, at)
    conditions[0] |= {"reason": "Pending", "message": said}
    told: Json = {"conditions": conditions, **status}
    if reserved:
        usage = {"name": "main", "flavors": {GPU: "a100"}, "resourceUsage": {GPU: gpus}}
        told["admission"] = {"clusterQueue": through, "podSetAssignments": [usage]}
    return made(
        "Workload",
        uid,
        created=at,
        spec={"queueName": through, "podSets": [pods], "active": True},
        status=told,
    )


FLAVOR = made("ResourceFlavor", "a100", spec={})


def asked(store: Store, uid: str) -> Json:
    found = why.document(store, uid, parse_instant(NOON), Policy())
    assert found is not None
    assert found["primary"] is not None
    return dict(found)


def told(store: Store, uid: str) -> tuple[str, str]:
    found = asked(store, uid)
    return found["primary"]["reason"], found["verdict"]


def ways(store: Store, uid: str) -> list[str]:
    return [one["what"] for one in asked(store, uid)["eta"]["sooner"]]


def test_the_borrowing_limit_of_a_cohort_is_told_as_the_cohorts() -> None:
    """`mid` has 8 of its own and 4 of each queue, and may borrow 4: 12 are used, 8 more are 4 too many."""
    store = site(
        FLAVOR, node("n1"), node("n2"), node("n3"), node("n4"),
        cohort("root", 16), cohort("mid", 8, parent="root", borrowingLimit="4"),
        *queue("one", 4, cohort="mid"), *queue("two", 4, cohort="mid"),
        workload("held-1", 8, "one", reserved=True), workload("held-2", 8, "two", reserved=True),
        workload("waits", 8, "one"),
    )  # fmt: skip
    found = asked(store, "waits")
    assert found["primary"]["reason"] == "BORROWING_LIMIT"
    assert found["verdict"] == (
        "Cohort mid, to which its queue belongs, may borrow 4 GPUs of flavor a100 beyond its 16, uses 16,"
        " and it needs 8."
    )
    assert "in that cohort" in found["primary"]["remedy"]
    # Whose end would help: everybody's below the cohort.
    assert [one["uid"] for one in found["holders"]] == ["held-1", "held-2"]


def test_numbers_of_one_resource_are_not_told_of_another() -> None:
    """Of quota CPUs are too few, of nodes GPUs: the answer is about one of them."""
    both = [{"name": name, "nominalQuota": amount} for name, amount in ((GPU, "16"), ("cpu", "64"))]
    flavors = [{"name": "a100", "resources": both}]
    spec = {"resourceGroups": [{"coveredResources": [GPU, "cpu"], "flavors": flavors}]}
    store = site(
        FLAVOR, node("n1"), made("ClusterQueue", "q", spec=spec), door("q", "q"),
        workload("never", 16, "q", cpus=65),
    )  # fmt: skip
    found = asked(store, "never")
    assert found["verdict"] == (
        "It can never start: it asks 16 GPUs on one node, and the largest node where it may run has 8."
    )
    assert "at_most" not in found["primary"]["evidence"]


def test_who_comes_first_in_another_queue_is_not_looked_for_in_its_own() -> None:
    """`own` has no quota and would borrow the 8 that `lends` is about to use itself."""
    store = site(
        FLAVOR, node("n1"), node("n2"), *queue("own", 0, cohort="all"), *queue("lends", 8, cohort="all"),
        workload("first", 8, "lends"), workload("waits", 8, "own"),
    )  # fmt: skip
    assert told(store, "waits") == (
        "BEHIND_IN_QUEUE",
        "There is quota for it, but work of other queues of its cohort comes first.",
    )


def test_what_came_through_a_stopped_door_is_before_nobody() -> None:
    store = site(
        FLAVOR, node("n1"), *queue("q", 4, strict=True), door("shut", "q", stopPolicy="Hold"),
        workload("shut-out", 4, "shut"), workload("waits", 4, "q", at=LATER),
        workload("next", 4, "q", at="2026-05-04T08:00:00Z"),
    )  # fmt: skip
    assert told(store, "shut-out") == ("HELD_BY_OWNER", "Somebody stopped its queue shut.")
    assert asked(store, "shut-out")["eta"]["sentence"] == ("When it starts cannot be told: it is held back.")
    place = {uid: asked(store, uid)["queue_position"] for uid in ("shut-out", "waits", "next")}
    assert {uid: one and one["ahead_by_our_order"] for uid, one in place.items()} == {
        "shut-out": None, "waits": 0, "next": 1
    }  # fmt: skip
    # The list of who waits says the same.
    order = positions.Order(store, parse_instant(NOON))
    assert {uid for uid in place if uid in order.uids()} == {"waits", "next"}
    assert told(store, "next")[1].startswith("1 workload comes before it in queue q, whose first")


DEACTIVATED = {
    "type": "Evicted", "status": "True", "reason": "DeactivatedDueToRequeuingLimitExceeded",
    "lastTransitionTime": CREATED,
}  # fmt: skip


def test_who_was_deactivated_is_not_said_to_be_kept_back_by_its_owner() -> None:
    given_up = workload("given-up", 4, "q")
    given_up["spec"]["active"] = False
    given_up["status"]["conditions"].append(DEACTIVATED)
    store = site(FLAVOR, node("n1"), *queue("q", 4), given_up)
    assert told(store, "given-up") == (
        "HELD_BY_OWNER",
        "It is deactivated: it waits for nothing until somebody activates it again.",
    )


@pytest.mark.parametrize(
    ("said", "reason", "verdict"),
    [
        ("Workload namespace doesn't match ClusterQueue selector", "MISCONFIGURED",
         "Its queue does not take work of its namespace."),
        ("resources didn't satisfy LimitRange constraints: x", "MISCONFIGURED",
         "Its pods ask what a LimitRange of its namespace does not allow."),
        ("The LocalQueue is stopped", "HELD_BY_OWNER", "Somebody stopped its queue."),
        ("couldn't assign flavors to pod set main: Flavor \"a100\" does not support TopologyAwareScheduling",
         "CONSTRAINT", "Flavor a100 of its queue does not support TopologyAwareScheduling."),
    ],
)  # fmt: skip
def test_what_kueue_refuses_before_it_looks_at_quota_is_the_reason(
    said: str, reason: str, verdict: str
) -> None:
    store = site(FLAVOR, node("n1"), *queue("q", 4), workload("waits", 4, "q", said=said))
    assert told(store, "waits") == (reason, verdict)


def test_a_check_that_refused_it_is_not_one_that_it_waits_for() -> None:
    checks = [{"name": "budget", "state": "Rejected", "message": "", "lastTransitionTime": CREATED}]
    refused = workload("refused", 4, "q", reserved=True, admissionChecks=checks)
    store = site(FLAVOR, node("n1"), *queue("q", 8), refused)
    assert told(store, "refused") == ("ADMISSION_CHECK", "The admission check budget refused it.")
    # Room and quota it has: less of them, or others, is no way past the check.
    assert ways(store, "refused") == []


def test_behind_a_head_that_lets_nobody_pass_to_ask_for_less_is_no_way() -> None:
    read = [
        FLAVOR, node("n1"), *queue("strict", 8, strict=True), *queue("other", 8),
        workload("runs", 4, "strict", reserved=True), workload("head", 8, "strict", at=LATER),
        workload("waits", 8, "strict", at="2026-05-04T08:00:00Z"),
    ]  # fmt: skip
    store = site(*read)
    assert ways(store, "waits") == ["Submit it to local queue other"]
    # The head itself would still be the first.
    assert "Ask for 4 GPUs instead of 8" not in ways(store, "head"), "it would come after `waits`"
    assert "Ask for 4 GPUs instead of 8" in ways(site(*read[:-1]), "head")


def pod_group(uid: str, members: int, through: str, phase: str) -> Json:
    spec = {"minMember": members, "queue": through}
    return written("PodGroup", uid, spec=spec, status={"phase": phase}, apiVersion=VOLCANO)


def volcano_pod(uid: str, group: str, gpus: int, on: str = "") -> Json:
    spec = asking(gpus) | ({"nodeName": on} if on else {})
    status = {
        "phase": "Running" if on else "Pending",
        "conditions": truths({"PodScheduled": "True" if on else "False"}, CREATED),
    }
    named = {"annotations": {"scheduling.k8s.io/group-name": group}}
    return written("Pod", uid, metadata=named, spec=spec, status=status)


def volcano_queue(name: str, **spec: Any) -> Json:
    return written("Queue", name, spec={"weight": 1, **spec}, apiVersion=VOLCANO)


def test_less_is_advised_only_as_far_as_the_limits_above_a_queue_of_volcano_let_it() -> None:
    """12 of `org` for both queues below it, of which 8 are held."""
    store = site(
        *map(node, ("n1", "n2", "n3")),
        volcano_queue("org", capability={GPU: "12"}),
        volcano_queue("a", parent="org", capability={GPU: "8"}), volcano_queue("b", parent="org"),
        pod_group("runs", 1, "b", "Running"), volcano_pod("runs-0", "runs", 8, on="n1"),
        pod_group("never", 1, "a", "Pending"), volcano_pod("never-0", "never", 16),
        pod_group("fits", 1, "a", "Pending"), volcano_pod("fits-0", "fits", 4),
    )  # fmt: skip
    assert told(store, "never")[1] == "It can never start: it asks 16 GPUs, and queue a can have 8 at most."
    assert ways(store, "never") == ["Ask for 4 GPUs instead of 16"]
    # Nobody says why, and there is room for all of it: to ask for less is no answer.
    assert (told(store, "fits")[0], ways(store, "fits")) == ("UNKNOWN", [])


def test_less_is_advised_only_as_far_as_the_quota_of_the_namespace_lets_it() -> None:
    """2 of the 4 that the namespace may ask are asked."""
    hard = {"requests.nvidia.com/gpu": "4"}
    template = {"parallelism": 1, "completions": 1, "template": {"spec": asking(8)}}
    pod = volcano_pod("runs", "", 2, on="n1")
    store = site(
        node("n1"), node("n2"), pod,
        written("ResourceQuota", "gpus", spec={"hard": hard}),
        written("Job", "waits", spec=template, status={}),
    )  # fmt: skip
    assert ways(store, "waits") == ["Ask for 2 GPUs instead of 8"]


def test_a_job_whose_pod_was_never_made_is_not_told_of_a_gang() -> None:
    template = {"parallelism": 1, "completions": 1, "template": {"spec": asking(1)}}
    pod = volcano_pod("runs", "", 2, on="n1")
    store = site(node("n1"), pod, written("Job", "waits", spec=template, status={}))
    assert told(store, "waits") == ("GANG_INCOMPLETE", "Its pod does not exist yet.")
    assert ways(store, "waits") == []
