"""Which of several true reasons comes first, and what stands beside it."""

from dataclasses import replace

import pytest

from analytics.why.reason import Blocker, BlockerKind, Finding, Reason, Source, explanation
from analytics.why.situation import About, Said, Situation, explain
from analytics.why.verdict import sentence
from domain.workload import State

NO_QUOTA = (
    "couldn't assign flavors to pod set main: "
    "insufficient unused quota for nvidia.com/gpu in flavor a, 8 more needed"
)
NO_GPU = "0/8 nodes are available: 8 Insufficient nvidia.com/gpu."
PLACING = Situation(state=State.PLACING, since_ms=1000)
QUEUED = Situation(state=State.QUEUED, since_ms=1000)


def finding(reason: str, source: Source = Source.PLACEMENT, **evidence: int | str) -> Finding:
    return Finding(reason=Reason(reason), source=source, evidence=evidence)


def said(text: str, at_ms: int = 2000, about: About = About.POD, reason: str = "") -> Said:
    return Said(about=about, text=text, at_ms=at_ms, reason=reason)


def reasons(situation: Situation) -> list[str]:
    answer = explain(situation)
    return [str(one.reason) for one in answer.findings] if answer else []


def test_a_search_makes_exact_what_a_message_cannot_tell_apart() -> None:
    told = replace(PLACING, said=(said(NO_GPU),))
    assert reasons(told) == ["GPU_SHORTAGE"]
    answer = explain(replace(told, found=(finding("FRAGMENTATION", free=8),)))
    assert answer is not None
    assert (answer.primary.reason, answer.primary.text, answer.further) == ("FRAGMENTATION", NO_GPU, ())


def test_an_exact_message_stands_beside_what_a_search_finds() -> None:
    text = '0/4 nodes are available: persistentvolumeclaim "data" not found.'
    told = replace(PLACING, said=(said(text),), found=(finding("GPU_SHORTAGE"),))
    assert reasons(told) == ["MISCONFIGURED", "GPU_SHORTAGE"]


def test_a_machine_readable_reason_wins_over_what_is_inferred() -> None:
    text = said("LocalQueue q is held", about=About.QUOTA, reason="TopologyPlacementFailed")
    never = finding("NEVER_FITS", Source.QUOTA)
    assert reasons(replace(QUEUED, said=(text,), found=(never,))) == ["NEVER_FITS"]  # it is coarse
    preempting = said("x", about=About.QUOTA, reason="WaitingForPreemptedWorkloads")
    assert reasons(replace(QUEUED, said=(preempting,), found=(never,))) == ["PREEMPTING", "NEVER_FITS"]
    # A message is not inferred: there the precedence decides.
    behind = said("Workload no longer fits after processing another workload", about=About.QUOTA)
    assert reasons(replace(QUEUED, said=(behind,), found=(never,))) == ["NEVER_FITS", "BEHIND_IN_QUEUE"]


def test_quota_that_is_short_is_told_by_arithmetic_where_it_can() -> None:
    told = replace(QUEUED, said=(said(NO_QUOTA, about=About.QUOTA),))
    assert reasons(told) == ["QUOTA_EXHAUSTED"]
    assert reasons(replace(told, found=(finding("COHORT_EXHAUSTED", Source.QUOTA),))) == ["COHORT_EXHAUSTED"]


def test_a_constraint_is_first_only_where_waiting_never_helps() -> None:
    for waiting, first in (("helps", "FRAGMENTATION"), ("never", "CONSTRAINT")):
        found = (finding("CONSTRAINT", waiting=waiting), finding("FRAGMENTATION"))
        assert reasons(replace(PLACING, found=found))[0] == first


@pytest.mark.parametrize(("passed", "first"), [(0, "QUOTA_EXHAUSTED"), (3, "BEHIND_IN_QUEUE")])
def test_behind_a_strict_head_it_waits_for_quota_until_others_were_let_in(passed: int, first: str) -> None:
    found = (
        finding("QUOTA_EXHAUSTED", Source.QUOTA),
        finding("BEHIND_IN_QUEUE", Source.ORDER, strict_head=1, passed=passed),
    )
    assert reasons(replace(QUEUED, found=found))[0] == first


def test_gates_of_a_queueing_system_are_no_gates_of_the_owner() -> None:
    held = Situation(
        state=State.HELD, since_ms=0, word="SchedulingGated", gates=("kueue.x-k8s.io/admission", "x/y")
    )
    answer = explain(held)
    assert answer is not None
    assert (answer.primary.reason, answer.primary.evidence["gates"]) == ("GATED", ("x/y",))
    assert reasons(replace(held, gates=())) == ["HELD_BY_OWNER"]


def test_what_waits_for_nothing_has_no_reason() -> None:
    for state in (State.RUNNING, State.DRAINING, State.ENDED):
        assert explain(Situation(state=state, since_ms=0, found=(finding("GPU_SHORTAGE"),))) is None


def test_a_stopped_queue_is_told_from_one_that_lacks_a_flavor() -> None:
    told = replace(
        QUEUED, said=(said("ClusterQueue q is inactive", about=About.QUOTA, reason="Inadmissible"),)
    )
    assert reasons(told) == ["MISCONFIGURED"]
    assert reasons(replace(told, stopped="q")) == ["HELD_BY_OWNER"]


def test_a_text_about_nodes_counts_only_while_it_is_placed() -> None:
    assert reasons(replace(QUEUED, said=(said(NO_GPU),))) == ["UNKNOWN"]
    assert reasons(Situation(state=State.STARTING, since_ms=0, said=(said(NO_GPU),))) == ["STARTING"]


def test_members_that_do_not_exist_keep_the_gang_from_its_place() -> None:
    gang = replace(PLACING, members=5, min_members=6, found=(finding("GPU_SHORTAGE"),))
    answer = explain(gang)
    assert answer is not None
    assert sentence(answer.primary) == "It starts with all members at once: 5 of 6 are there."
    assert reasons(gang) == ["GANG_INCOMPLETE", "GPU_SHORTAGE"]
    assert reasons(replace(gang, members=6)) == ["GPU_SHORTAGE"]


def test_since_when_goes_back_over_texts_of_one_family() -> None:
    texts = (said('0/8 nodes are available: persistentvolumeclaim "d" not found.', 1000), said(NO_GPU, 2000))
    answer = explain(replace(PLACING, said=(*texts, said(NO_GPU, 3000)), found=(finding("FRAGMENTATION"),)))
    assert answer is not None
    assert answer.primary.since_ms == 2000


def test_without_anything_known_the_text_is_kept() -> None:
    answer = explain(replace(PLACING, said=(said("odd words"),)))
    assert answer is not None
    assert (answer.primary.reason, answer.primary.text) == ("UNKNOWN", "odd words")
    assert sentence(answer.primary).endswith("odd words")


def test_findings_of_one_reason_are_one_with_the_numbers_of_all() -> None:
    blocker = Blocker(kind=BlockerKind.QUEUE, name="q")
    message = Finding(reason=Reason.NEVER_FITS, source=Source.MESSAGE, evidence={"asked": 8}, text="so said")
    ours = Finding(
        reason=Reason.NEVER_FITS, source=Source.QUOTA, evidence={"asked": 8, "used": 4}, blockers=(blocker,)
    )
    primary = explanation([ours, message]).primary
    assert (primary.source, primary.evidence, primary.text) == (
        Source.MESSAGE,
        {"asked": 8, "used": 4},
        "so said",
    )
    assert primary.blockers == (blocker,)


def test_every_reason_has_a_sentence_without_any_evidence() -> None:
    for reason in Reason:
        assert sentence(Finding(reason=reason, source=Source.STATED)).endswith(".")
