"""The three short recordings of a real control plane, value by value against their ground truth."""

from typing import Any

import pytest

from store.embedded import Store
from tests.recordings.comparing import Comparison, by, ground_truth, imported, rows, show, stamps_agree
from tests.recordings.test_expected_reasons import check

pytestmark = pytest.mark.recordings

# The table at the end of the recordings' README: how many values there are to compare.
TABLE = {
    "native": {
        "pods": 125, "submitted": 112, "bound": 120, "with a run": 119, "finished": 114,
        "crashes": 16, "gpu_seconds": 16_075.5, "jobs": 9,
    },
    "kueue": {
        "pods": 104, "submitted": 3, "bound": 104, "with a run": 92, "finished": 61,
        "crashes": 0, "gpu_seconds": 15_647.2, "jobs": 51,
    },
    "volcano": {
        "pods": 71, "submitted": 0, "bound": 51, "with a run": 51, "finished": 47,
        "crashes": 0, "gpu_seconds": 10_009.2, "jobs": 0,
    },
}  # fmt: skip

HOLDINGS = """
select holding.*, holding.bound_ms / 1000 as bound, holding.released_ms / 1000 as released from holding
"""
RUNS = """
select
    run.pod_uid,
    min(run.start_ms) / 1000 as first_start,
    coalesce(sum(holding.micro_gpus / 1e6 * (run.end_ms - run.start_ms) / 1000), 0) as gpu_seconds,
    count(*) filter (where run.exit_code <> 0 and run.end_ms < coalesce(asked.at_ms, run.end_ms + 1)
        and (holding.phase <> 'Failed' or run.end_ms < holding.released_ms)) as crashes
from run
inner join holding on run.pod_uid = holding.pod_uid
left join transition as asked on run.pod_uid = asked.uid and asked.moment = 'delete_requested'
group by run.pod_uid
"""


# How many reasons can be compared at least.
REASONS = {"native": 40, "kueue": 15, "volcano": 10}


@pytest.fixture(scope="module", params=["native", "kueue", "volcano"])
def recording(request: pytest.FixtureRequest) -> tuple[str, Store, dict[str, Any]]:
    """Each short recording, imported, with its truth."""
    return request.param, imported(request.param), ground_truth(request.param)


def test_pods_agree_with_the_truth(recording: tuple[str, Store, dict[str, Any]]) -> None:
    name, store, truth = recording
    holdings = by(rows(store, HOLDINGS), "pod_uid")
    runs = by(rows(store, RUNS), "pod_uid")
    created = by(rows(store, "select uid, at_ms from transition where moment = 'created'"), "uid")
    submitted, bound, start = Comparison("submitted"), Comparison("bound"), Comparison("first start")
    finished, gpu_seconds = Comparison("finished"), Comparison("GPU-seconds running")
    restarts, crashes = Comparison("restarts"), Comparison("crashes")
    for pod in truth["pods"]:
        uid, whose = pod["uid"], pod["name"]
        assert uid in created, whose
        holding, run = holdings.get(uid), runs.get(uid)
        if pod["submitted"] is not None:
            submitted.compare(created[uid]["at_ms"] / 1000, pod["submitted"], whose)
        if pod["bound"] is not None:
            bound.compare(holding and holding["bound"], pod["bound"], whose)
        if pod["runs"]:
            start.compare(run and run["first_start"], pod["runs"][0]["start"], whose)
            gpu_seconds.compare(run and run["gpu_seconds"], pod["gpu_seconds_running"], whose)
            # This recording's kubelets count a restart when a container crashes, not when it starts anew.
            restarts.compare(holding and holding["restarts"], pod["crashes"], whose)
            crashes.compare(run and run["crashes"], pod["crashes"], whose)
        if pod["finished"] is not None:
            finished.compare(holding and holding["released"], pod["finished"], whose)
    found = (submitted, bound, start, finished, gpu_seconds, restarts, crashes)
    show(f"\n{name}", *found, sep="\n")
    expected = TABLE[name]
    assert len(truth["pods"]) == expected["pods"]
    assert [submitted.count, bound.count, start.count, finished.count] == [
        expected["submitted"], expected["bound"], expected["with a run"], expected["finished"],
    ]  # fmt: skip
    assert sum(pod["crashes"] for pod in truth["pods"]) == expected["crashes"]
    assert sum(pod["gpu_seconds_running"] or 0 for pod in truth["pods"]) == pytest.approx(
        expected["gpu_seconds"], abs=0.1
    )
    for comparison in (submitted, bound, start, finished):
        assert stamps_agree(comparison), comparison.outside(-0.15, 1.15)
    assert not restarts.outside(0, 0)
    assert not crashes.outside(0, 0)
    # Each end of a run may be cut off by a second, and each counts for all GPUs of the pod.
    bounds = {pod["name"]: 1.15 * (pod["gpus"] or 1) * (len(pod["runs"]) + 1) for pod in truth["pods"]}
    far = [(d, whose) for d, whose in gpu_seconds.differences if abs(d) > bounds[whose]]
    assert not far
    total = sum(run["gpu_seconds"] for run in runs.values())
    assert total == pytest.approx(expected["gpu_seconds"], rel=0.005)


def test_gpu_seconds_by_namespace_agree_with_the_truth(recording: tuple[str, Store, dict[str, Any]]) -> None:
    """Of containers that ended, as the truth counts them; without a mapping the team is the namespace."""
    _, store, truth = recording
    sql = f"""
    select namespace, sum(gpu_seconds) as gpu_seconds
    from ({RUNS}) as pod_run inner join (
        select distinct pod_uid, namespace from holding inner join workload using (cluster, workload_uid)
    ) using (pod_uid)
    group by namespace
    """  # noqa: S608
    ours = {row["namespace"]: float(row["gpu_seconds"]) for row in rows(store, sql)}
    assert ours == pytest.approx(truth["gpu_seconds_by_namespace"], rel=0.01)


def test_jobs_agree_with_the_truth(recording: tuple[str, Store, dict[str, Any]]) -> None:
    name, store, truth = recording
    ours = by(
        rows(store, "select workload.*, submitted_ms / 1000 as submitted from workload"), "namespace", "name"
    )
    submitted = Comparison("job submitted")
    for job in truth["jobs"]:
        if job["http"] == 201:
            found = ours.get((job["ns"], job["name"]))
            submitted.compare(found and found["submitted"], job["t"], f"{job['ns']}/{job['name']}")
    show(f"\n{name}", submitted, sep="\n")
    assert submitted.count == TABLE[name]["jobs"]
    assert stamps_agree(submitted), submitted.outside(-0.15, 1.15)


def test_pods_that_were_never_bound_hold_nothing(recording: tuple[str, Store, dict[str, Any]]) -> None:
    _, store, truth = recording
    holding = {row["pod_uid"] for row in rows(store, HOLDINGS)}
    unbound = [pod["uid"] for pod in truth["pods"] if pod["bound"] is None]
    assert not holding & set(unbound)


def test_preemptions_and_evictions_agree_with_the_truth(
    recording: tuple[str, Store, dict[str, Any]],
) -> None:
    name, store, truth = recording
    counts = truth["counts"]
    ours = rows(store, "select mechanism, preempted, missed from eviction")
    by_scheduler = [row for row in ours if row["mechanism"] in ("kube_scheduler", "volcano")]
    by_taint = [row for row in ours if row["mechanism"] == "taint"]
    show(f"\n{name} preempted by a scheduler {len(by_scheduler)}, evicted by a taint {len(by_taint)}")
    assert len(by_scheduler) == counts["preempted"]
    assert len(by_taint) == counts.get("evicted_by_taint_while_running", 0)
    if name == "volcano":
        assert {row["mechanism"] for row in by_scheduler} == {"volcano"}


def test_kueues_evictions_agree_with_its_own_counts_or_are_shown_as_missed() -> None:
    store, truth = imported("kueue"), ground_truth("kueue")
    ours = rows(
        store,
        """
        select workload.name, eviction.reason, count(*) as seen, sum(eviction.missed) as missed
        from eviction inner join workload using (cluster, workload_uid) group by all
        """,
    )
    found = {(row["name"], row["reason"]): int(row["seen"] + row["missed"]) for row in ours}
    expected = {
        (workload["owner"][0], reason): count
        for workload in truth["kueue"]["workloads"]
        for reason, _, count in workload["evictions"]
    }
    seen, missed = sum(row["seen"] for row in ours), sum(row["missed"] for row in ours)
    show(f"\nKueue evictions: seen {seen}, missed {missed}, Kueue's own count {sum(expected.values())}")
    assert found == expected


def test_arranged_workloads_wait_for_their_arranged_cause_at_every_change_of_state(
    recording: tuple[str, Store, dict[str, Any]],
) -> None:
    name, store, _ = recording
    check(store, name, every=1, least=REASONS[name])
