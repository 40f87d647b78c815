"""Which Workload is a copy of which: by name, the job, and what was made first."""

from analytics.copies import ORIGIN, Copies, Place
from analytics.identity import Known
from domain.facts import ObjectKind
from domain.objects import Workload

MINUTE = 60_000


def known(
    uid: str, minute: float, *, name: str = "w", job: str = "job", origin: str = "", worker: str = ""
) -> Known:
    body = Workload(
        owners=(),
        job_uid=job,
        labels={ORIGIN: origin} if origin else {},
        local_queue="lq",
        cluster_queue="",
        active=True,
        priority=0,
        priority_class="",
        pod_sets=(),
        reserved={},
        checks={},
        evictions={},
        dispatched_to=worker,
    )
    return Known(
        uid=uid,
        kind=ObjectKind.WORKLOAD,
        namespace="red",
        name=name,
        created_ms=round(minute * MINUTE),
        body=body,
    )


def index(**of_clusters: list[Known]) -> Copies:
    copies = Copies()
    for cluster, found in of_clusters.items():
        for one in found:
            copies.add(cluster, one)
    return copies


def original(copies: Copies, cluster: str, uid: str) -> str | None:
    found = copies.original_of(Place(cluster, uid))
    return None if found is None else f"{found.cluster}/{found.uid}"


def test_a_copy_is_of_the_workload_of_its_name_in_another_cluster() -> None:
    copies = index(
        hub=[known("w", 0), known("other", 0, name="x")],
        east=[known("e", 5, origin="multikueue")],
        west=[known("v", 5, origin="multikueue"), known("own", 0, job="own")],
    )
    assert original(copies, "east", "e") == "hub/w"
    assert original(copies, "west", "v") == "hub/w"
    # One without the label is a user's own, and the original is nobody's copy.
    assert original(copies, "west", "own") is None
    assert original(copies, "hub", "w") is None
    assert copies.copies_of(Place("hub", "w")) == [Place("east", "e"), Place("west", "v")]
    assert copies.copies_of(Place("east", "e")) == copies.copies_of(Place("hub", "other")) == []


def test_a_name_that_is_used_again_is_another_workload() -> None:
    copies = index(
        hub=[known("w1", 0, job=""), known("w2", 40, job="")],
        east=[known("e1", 5, job="", origin="m"), known("e2", 41, job="", origin="m")],
    )
    assert [original(copies, "east", uid) for uid in ("e1", "e2")] == ["hub/w1", "hub/w2"]


def test_of_two_managers_the_one_of_the_same_job_made_it() -> None:
    copies = index(
        hub=[known("w", 0, job="job-1")],
        rim=[known("r", 1, job="job-2")],
        east=[known("e", 5, job="job-1", origin="m"), known("f", 5, job="remote", origin="m")],
    )
    assert original(copies, "east", "e") == "hub/w"
    # A worker may write its own job there: then the newest counts.
    assert original(copies, "east", "f") == "rim/r"


def test_where_no_job_tells_the_one_that_was_dispatched_counts() -> None:
    copies = index(
        hub=[known("w", 0, job="", worker="worker-1")],
        west=[known("own", 1, job="")],
        east=[known("e", 5, job="remote", origin="m")],
    )
    assert original(copies, "east", "e") == "hub/w"


def test_a_copy_is_not_older_than_its_original_by_more_than_clocks_differ() -> None:
    copies = index(hub=[known("w", 10)], east=[known("e", 9.5, origin="m"), known("f", 5, origin="m")])
    assert original(copies, "east", "e") == "hub/w"
    assert original(copies, "east", "f") is None


def test_whichever_has_news_the_others_are_linked_to_it() -> None:
    copies = index(hub=[known("w", 0)], east=[known("e", 5, origin="m")])
    assert list(copies.linked([Place("hub", "w")])) == [Place("east", "e")]
    assert list(copies.linked([Place("east", "e")])) == [Place("hub", "w")]
    assert list(copies.linked([Place("hub", "nobody")])) == []
