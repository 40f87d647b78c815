"""The life of a workload, example by example."""

from dataclasses import replace

from msgspec import structs

from analytics.history import Catalog, NodeStretch
from analytics.lifecycle import live
from analytics.requests import requested_micro_gpus
from domain import objects
from domain.workload import Life, Mechanism, Outcome, State
from tests.lives import condition, described, job_history, kueue, kueue_body, pod, pod_body, workload_facts


def course(life: Life) -> list[tuple[str, float, float | None]]:
    """Spans as (state, start, end) in seconds."""
    return [
        (span.state.value, span.start_ms / 1000, None if span.end_ms is None else span.end_ms / 1000)
        for span in life.spans
    ]


def test_a_pod_waits_starts_runs_and_ends() -> None:
    life = live(workload_facts(pod("p", 0, bound_s=10, runs=[(12, 30, 0)], ended=(30, "Succeeded"))))
    assert course(life) == [
        ("placing", 0, 10),
        ("starting", 10, 12),
        ("running", 12, 30),
        ("ended", 30, None),
    ]
    assert (life.first_placed_ms, life.first_running_ms, life.ended_ms) == (10_000, 12_000, 30_000)
    assert [a.outcome for a in life.attempts] == [Outcome.SUCCEEDED]
    assert life.outcome is Outcome.SUCCEEDED


def test_a_pod_that_was_never_bound_waits_until_it_is_deleted() -> None:
    life = live(workload_facts(pod("p", 0, gone_s=50)))
    assert course(life) == [("placing", 0, 50), ("ended", 50, None)]
    assert life.outcome is Outcome.CANCELLED
    assert life.attempts == ()


def test_a_gate_of_the_owner_is_held_time_and_no_wait() -> None:
    gated = pod(
        "p",
        0,
        bound_s=42,
        descriptions=[described(pod_body(gates=("example.com/hold",)), 0), described(pod_body(), 30)],
    )
    assert course(live(workload_facts(gated))) == [
        ("held", 0, 30),
        ("placing", 30, 42),
        ("starting", 42, None),
    ]


def test_a_gate_of_the_queue_is_no_held_time() -> None:
    gated = pod("p", 0, descriptions=[described(pod_body(gates=("kueue.x-k8s.io/admission",)), 0)])
    assert course(live(workload_facts(gated))) == [("placing", 0, None)]


def test_a_crash_loop_holds_its_gpus_through_the_pauses() -> None:
    life = live(workload_facts(pod("p", 0, bound_s=0, runs=[(1, 5, 1), (15, 20, 1), (40, None, None)])))
    assert course(life) == [
        ("starting", 0, 1),
        ("running", 1, 5),
        ("backoff", 5, 15),
        ("running", 15, 20),
        ("backoff", 20, 40),
        ("running", 40, None),
    ]
    assert len(life.attempts) == 1


def preempted_and_back() -> Life:
    """A Kueue Workload that is preempted by another one and admitted again."""
    queueing = kueue(
        0,
        condition("w", 20, "QuotaReserved", "True"),
        condition("w", 25, "Admitted", "True"),
        condition(
            "w",
            100,
            "Evicted",
            "True",
            reason="Preempted",
            amount=1,
            detail="Preempted to accommodate a workload (UID: w-high, JobUID: j)"
            " due to Fair Sharing within the cohort",
        ),
        condition("w", 110, "QuotaReserved", "False", reason="Pending"),
        condition("w", 110, "Admitted", "False"),
        condition("w", 110, "Requeued", "True"),
        condition("w", 150, "QuotaReserved", "True"),
        condition("w", 150, "Admitted", "True"),
    )
    first = pod("a", 25, bound_s=27, runs=[(30, 108, 143)], deleted_s=101, gone_s=109)
    second = pod("b", 150, bound_s=151, runs=[(155, None, None)])
    return live(workload_facts(queueing, first, second))


def test_a_preempted_workload_drains_queues_again_and_has_two_attempts() -> None:
    life = preempted_and_back()
    assert course(life) == [
        ("queued", 0, 20),
        ("checking", 20, 25),
        ("placing", 25, 27),
        ("starting", 27, 30),
        ("running", 30, 100),
        ("draining", 100, 110),
        ("queued", 110, 150),
        ("placing", 150, 151),
        ("starting", 151, 155),
        ("running", 155, None),
    ]
    assert [(a.start_ms, a.end_ms, a.outcome, a.preempted_by) for a in life.attempts] == [
        (27_000, 109_000, Outcome.PREEMPTED, "w-high"),
        (151_000, None, Outcome.OPEN, ""),
    ]
    (eviction,) = life.evictions
    assert (eviction.mechanism, eviction.attempt) == (Mechanism.KUEUE_FAIR_SHARING, 1)


def test_only_waiting_before_the_first_placement_is_the_queue_wait() -> None:
    waits = [(s.state, s.first_wait) for s in preempted_and_back().spans if s.state.waits]
    assert waits == [
        (State.QUEUED, True),
        (State.CHECKING, True),
        (State.PLACING, True),
        (State.QUEUED, False),
        (State.PLACING, False),
    ]


def test_a_gang_is_placed_when_its_last_needed_member_is_bound() -> None:
    queueing = kueue(
        0,
        condition("w", 5, "QuotaReserved", "True"),
        condition("w", 5, "Admitted", "True"),
        body=kueue_body(count=2),
    )
    life = live(
        workload_facts(
            queueing,
            pod("a", 5, bound_s=6, runs=[(8, None, None)]),
            pod("b", 5, bound_s=60, runs=[(62, None, None)]),
        )
    )
    assert course(life) == [
        ("queued", 0, 5),
        ("placing", 5, 60),
        ("starting", 60, 62),
        ("running", 62, None),
    ]
    assert life.first_running_ms == 62_000


def test_evictions_that_only_the_counter_tells_of_are_missed_and_not_invented() -> None:
    queueing = kueue(
        0,
        condition("w", 5, "QuotaReserved", "True"),
        condition("w", 5, "Admitted", "True"),
        condition("w", 50, "Evicted", "True", reason="Preempted", amount=6),
    )
    counted = kueue_body(evictions={"Preempted": 3, "PodsReadyTimeout": 3})
    queueing = replace(queueing, descriptions=(*queueing.descriptions, described(counted, 50)))
    life = live(workload_facts(queueing, pod("a", 5, bound_s=6)))
    assert [(e.at_ms, e.reason, e.preempted, 1 + e.missed) for e in life.evictions] == [
        (50_000, "Preempted", True, 1),
        (50_000, "Preempted", True, 2),
        (50_000, "PodsReadyTimeout", False, 3),
    ]
    assert len(life.attempts) == 1


def test_one_act_of_the_scheduler_on_two_pods_is_one_preemption() -> None:
    life = live(
        workload_facts(
            kueue(
                0,
                condition("w", 1, "QuotaReserved", "True"),
                condition("w", 1, "Admitted", "True"),
                body=kueue_body(count=2),
            ),
            pod("a", 1, bound_s=2, disrupted=(50, "PreemptionByScheduler"), gone_s=55),
            pod("b", 1, bound_s=2, disrupted=(50, "PreemptionByScheduler"), gone_s=56),
        )
    )
    assert [(e.mechanism, e.preempted) for e in life.evictions] == [(Mechanism.KUBE_SCHEDULER, True)]
    assert [a.outcome for a in life.attempts] == [Outcome.PREEMPTED]


def test_an_eviction_of_a_pod_that_had_already_ended_does_not_count() -> None:
    ended = pod(
        "p", 0, bound_s=1, ended=(10, "Succeeded"), disrupted=(20, "DeletionByTaintManager"), gone_s=21
    )
    assert live(workload_facts(ended)).evictions == ()


def test_where_nobody_reads_pods_admission_stands_for_placement() -> None:
    queueing = kueue(0, condition("w", 20, "QuotaReserved", "True"), condition("w", 20, "Admitted", "True"))
    life = live(workload_facts(queueing, pods_observed=False))
    assert course(life) == [("queued", 0, 20), ("running", 20, None)]
    assert life.first_placed_ms == 20_000
    assert [(a.start_ms, a.end_ms, a.source) for a in life.attempts] == [(20_000, None, "admission")]
    assert [(h.micro_gpus, h.bound_ms, h.bound_source) for h in life.holdings] == [
        (1_000_000, 20_000, "admission")
    ]


def test_where_nobody_reads_pods_an_eviction_ends_the_holding() -> None:
    queueing = kueue(
        0,
        condition("w", 20, "QuotaReserved", "True"),
        condition("w", 20, "Admitted", "True"),
        condition("w", 90, "Evicted", "True", reason="Preempted"),
        condition("w", 90, "QuotaReserved", "False"),
        condition("w", 90, "Admitted", "False"),
    )
    life = live(workload_facts(queueing, pods_observed=False))
    assert [(a.start_ms, a.end_ms, a.outcome) for a in life.attempts] == [(20_000, 90_000, Outcome.PREEMPTED)]
    assert [(h.bound_ms, h.released_ms) for h in life.holdings] == [(20_000, 90_000)]


def test_a_stamp_far_before_the_submission_sets_the_workload_aside_by_name() -> None:
    life = live(workload_facts(pod("p", 100, bound_s=10)))
    assert life.skewed == ("pod bound 90 s before the submission",)


def test_a_stamp_a_little_before_the_submission_counts_as_the_submission() -> None:
    life = live(workload_facts(pod("p", 100, bound_s=99)))
    assert (life.first_placed_ms, life.skewed) == (100_000, ())


def test_a_replacement_pod_waits_as_a_member_while_the_others_go_on() -> None:
    queueing = kueue(
        0,
        condition("w", 1, "QuotaReserved", "True"),
        condition("w", 1, "Admitted", "True"),
        body=kueue_body(count=2),
    )
    life = live(
        workload_facts(
            queueing,
            pod("a", 1, bound_s=2, runs=[(3, None, None)]),
            pod("b", 1, bound_s=2, runs=[(3, 50, 1)], ended=(50, "Failed")),
            pod("c", 51, bound_s=80),
        )
    )
    assert [(w.pod_uid, w.start_ms, w.end_ms) for w in life.member_waits] == [("c", 51_000, 80_000)]
    assert course(life)[-1] == ("running", 3, None)
    assert len(life.attempts) == 1


def test_a_clock_that_lies_behind_does_not_keep_a_pod_from_running() -> None:
    life = live(workload_facts(pod("p", 0, bound_s=10, runs=[(8, 30, 0)], ended=(30, "Succeeded"))))
    assert course(life) == [("placing", 0, 10), ("running", 10, 30), ("ended", 30, None)]
    assert life.first_running_ms == 10_000


def test_pods_of_a_job_without_a_gang_that_are_still_unbound_wait_as_members() -> None:
    job = job_history("j", parallelism=2)
    life = live(workload_facts(job, pod("a", 0, bound_s=5), pod("b", 0, bound_s=95), uid="j"))
    assert course(life)[0] == ("placing", 0, 5)
    assert [(w.pod_uid, w.start_ms, w.end_ms) for w in life.member_waits] == [("b", 5_000, 95_000)]


def made_by(job: str) -> objects.Pod:
    return pod_body(owner=objects.Owner(api_group="batch", kind="Job", name=job, uid=job))


def test_a_job_set_needs_all_its_members_and_ends_with_its_last_job() -> None:
    above = objects.Owner(api_group="jobset.x-k8s.io", kind="JobSet", name="s", uid="s")
    leader = job_history("leader", parallelism=1, gpus=0, owner=above, complete_s=20)
    workers = job_history("workers", parallelism=2, gpus=8, owner=above)
    facts = workload_facts(
        leader,
        workers,
        pod("l", 0, bound_s=1, runs=[(2, 20, 0)], ended=(20, "Succeeded"), body=made_by("leader")),
        pod("a", 0, bound_s=5, runs=[(6, None, None)], body=made_by("workers")),
        pod("b", 0, bound_s=9, runs=[(10, None, None)], body=made_by("workers")),
        uid="s",
    )
    life = live(facts)
    assert course(life) == [("placing", 0, 9), ("starting", 9, 10), ("running", 10, None)]
    assert requested_micro_gpus(facts) == 16_000_000


def test_a_pod_whose_node_went_away_backs_off_and_does_not_wait() -> None:
    catalog = Catalog(nodes={"n1": [NodeStretch(from_ms=0, gone_ms=40_000, model="A100", replicas=1)]})
    job = job_history("j")
    lost = pod("a", 0, bound_s=5, runs=[(6, None, None)])
    life = live(workload_facts(job, lost, uid="j", catalog=catalog))
    assert course(life)[-1] == ("backoff", 40, None)
    assert [a.outcome for a in life.attempts] == [Outcome.INFRA_FAILED]


def test_an_end_that_nobody_saw_gives_the_span_its_bounds() -> None:
    gone = structs.replace(pod("p", 0, gone_s=50).transitions[-1], earliest_ms=30_000)
    seen = pod("p", 0)
    life = live(workload_facts(replace(seen, transitions=(*seen.transitions, gone))))
    assert [(s.state, s.start_ms, s.start_earliest_ms) for s in life.spans] == [
        (State.PLACING, 0, None),
        (State.ENDED, 50_000, 30_000),
    ]


def test_a_successor_that_is_bound_in_the_second_of_the_failure_is_another_attempt() -> None:
    failed = pod("a", 0, bound_s=1, runs=[(2, 10, 1)], ended=(10, "Failed"))
    life = live(workload_facts(job_history("j"), failed, pod("b", 10, bound_s=10), uid="j"))
    assert [(a.number, a.outcome) for a in life.attempts] == [(1, Outcome.FAILED), (2, Outcome.OPEN)]


def test_a_workload_that_is_admitted_again_is_placing_until_its_pods_come() -> None:
    queueing = kueue(
        0,
        condition("w", 1, "QuotaReserved", "True"),
        condition("w", 1, "Admitted", "True"),
        condition("w", 20, "Evicted", "True", reason="Preempted"),
        condition("w", 22, "QuotaReserved", "False"),
        condition("w", 22, "Admitted", "False"),
        condition("w", 22, "Requeued", "True"),
        condition("w", 40, "QuotaReserved", "True"),
        condition("w", 40, "Admitted", "True"),
    )
    life = live(workload_facts(queueing, pod("a", 1, bound_s=2, deleted_s=20, gone_s=22)))
    assert course(life)[-2:] == [("queued", 22, 40), ("placing", 40, None)]


def test_a_member_that_is_preempted_while_the_others_go_on_does_not_end_the_attempt() -> None:
    members = [pod(name, 0, bound_s=2, runs=[(3, 500, 0)], ended=(500, "Succeeded")) for name in "ab"]
    victim = pod(
        "c", 0, bound_s=2, disrupted=(100, "PreemptionByScheduler"), gone_s=110, runs=[(3, 110, 143)]
    )
    anew = pod("d", 112, bound_s=150, runs=[(151, 500, 0)], ended=(500, "Succeeded"))
    life = live(workload_facts(kueue(0, body=kueue_body(count=3)), *members, victim, anew))
    assert [(a.number, a.start_ms, a.end_ms, a.outcome) for a in life.attempts] == [
        (1, 2_000, 500_000, Outcome.SUCCEEDED)
    ]
    assert [(e.at_ms, e.preempted) for e in life.evictions] == [(100_000, True)]
    cuts = {holding.pod_uid: (holding.cut, holding.cut_known_ms) for holding in life.holdings}
    assert cuts == {"a": ("", None), "b": ("", None), "c": ("preempted", 130_000), "d": ("", None)}


def test_a_gang_that_ends_with_its_preempted_member_was_preempted() -> None:
    others = [pod(name, 0, bound_s=2, runs=[(3, 105, 1)], ended=(105, "Failed")) for name in "ab"]
    victim = pod("c", 0, bound_s=2, disrupted=(100, "PreemptionByScheduler"), gone_s=110)
    life = live(workload_facts(kueue(0, body=kueue_body(count=3)), *others, victim))
    assert [attempt.outcome for attempt in life.attempts] == [Outcome.PREEMPTED]
    assert {holding.cut for holding in life.holdings} == {""}


def test_a_node_lost_under_one_member_is_that_members_loss_alone() -> None:
    catalog = Catalog(nodes={"n9": [NodeStretch(from_ms=0, gone_ms=100_000, model="A100", replicas=1)]})
    kept = pod("a", 0, bound_s=2, runs=[(3, 500, 0)], ended=(500, "Succeeded"))
    lost = pod("b", 0, bound_s=2, runs=[(3, None, None)], node="n9")
    anew = pod("c", 120, bound_s=130, runs=[(131, 500, 0)], ended=(500, "Succeeded"))
    life = live(workload_facts(kueue(0, body=kueue_body(count=2)), kept, lost, anew, catalog=catalog))
    assert [attempt.outcome for attempt in life.attempts] == [Outcome.SUCCEEDED]
    assert {h.pod_uid: h.cut for h in life.holdings if h.cut} == {"b": "infra_failed"}
