"""Laws of what texts are read as; the texts themselves are golden cases."""

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.why.messages import read
from analytics.why.messages.kueue import PENDING_WORDS
from analytics.why.reason import Reason

COUNTS = st.integers(min_value=1, max_value=10**6)
# One text for each way in which evidence counts nodes.
ITEMS = {
    "Insufficient nvidia.com/gpu": "nodes_short_of_nvidia.com/gpu",
    "Insufficient cpu": "nodes_short_of_cpu",
    "node(s) had untolerated taint {gpu: h100, or so}": "nodes_tainted",
    "node(s) didn't match Pod's node affinity/selector": "nodes_not_selected",
    "node(s) were unschedulable": "nodes_unavailable",
    "node(s) didn't match pod anti-affinity rules": "nodes_kept_apart",
    "node(s) didn't have free ports for the requested pod ports": "nodes_port_taken",
    "node(s) are out of sorts, 7 of them, or so": "nodes_other_reason",
}
ENDINGS = (
    "",
    ".",
    ". preemption: 0/9 nodes are available: 9 No preemption victims found for incoming pod..",
    ". no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never.",
)


@given(text=st.text() | st.sampled_from(list(ITEMS)), reason=st.sampled_from(["", "odd", *PENDING_WORDS]))
def test_any_text_has_an_answer_that_keeps_it(text: str, reason: str) -> None:
    found = read(text, reason=reason)
    assert found
    assert {one.text for one in found} == {text}
    assert [one.reason.rank for one in found] == sorted(one.reason.rank for one in found)


@settings(max_examples=40)
@given(
    nodes=COUNTS,
    items=st.dictionaries(st.sampled_from(list(ITEMS)[:-1]), COUNTS, min_size=1),
    word=st.sampled_from(["available", "unavailable"]),
    ending=st.sampled_from(ENDINGS),
)
def test_the_counts_of_a_histogram_survive(nodes: int, items: dict[str, int], word: str, ending: str) -> None:
    listed = ", ".join(f"{count} {why}" for why, count in sorted(items.items(), key=str))
    found = read(f"0/{nodes} nodes are {word}: {listed}{ending}")
    expected = Counter({"nodes": nodes})
    for why, count in items.items():
        expected[ITEMS[why]] += count
    for one in found:
        assert {name: one.evidence[name] for name in expected} == dict(expected)


def test_a_reason_of_nodes_that_nobody_knows_is_counted_and_unknown() -> None:
    (found,) = read("0/9 nodes are available: 9 node(s) are out of sorts.")
    assert (found.reason, found.evidence) == (Reason.UNKNOWN, {"nodes": 9, "nodes_other_reason": 9})


@settings(max_examples=40)
@given(missing=COUNTS, victims=st.none() | COUNTS)
def test_the_numbers_of_kueue_survive(missing: int, victims: int | None) -> None:
    said = (
        "couldn't assign flavors to pod set main: flavor h100 doesn't match node affinity, "
        f"insufficient unused quota for nvidia.com/gpu in flavor a100, {missing} more needed"
    )
    tail = "" if victims is None else f". Pending the preemption of {victims} workload(s)"
    found = {one.reason: one.evidence for one in read(said + tail)}
    assert found[Reason.QUOTA_EXHAUSTED]["missing"] == missing
    assert found.get(Reason.PREEMPTING, {}).get("victims") == victims


@settings(max_examples=40)
@given(asked=COUNTS, capacity=COUNTS, missing=COUNTS)
def test_a_pod_set_goes_by_the_flavor_that_comes_nearest(asked: int, capacity: int, missing: int) -> None:
    beyond = (
        "insufficient quota for nvidia.com/gpu in flavor h100, previously considered podsets requests (0) "
        f"+ current podset request ({asked}) > maximum capacity ({capacity})"
    )
    unused = f"insufficient unused quota for nvidia.com/gpu in flavor a100, {missing} more needed"
    (never,) = read(f"couldn't assign flavors to pod set main: {beyond}")
    assert (never.reason, never.evidence["asked"], never.evidence["capacity"]) == (
        "NEVER_FITS",
        asked,
        capacity,
    )
    (waits,) = read(f"couldn't assign flavors to pod set main: {beyond}, {unused}")
    assert (waits.reason, waits.evidence["missing"]) == ("QUOTA_EXHAUSTED", missing)


@settings(max_examples=20)
@given(cpu=st.integers(min_value=0, max_value=9), gpu=st.integers(min_value=0, max_value=9))
def test_another_resource_is_short_where_a_node_lacks_nothing_else(cpu: int, gpu: int) -> None:
    """Nine nodes are short of something; a node that is short of both counts twice."""
    if not 9 <= cpu + gpu <= 18:
        return
    listed = ", ".join(
        text
        for count, text in ((cpu, f"{cpu} Insufficient cpu"), (gpu, f"{gpu} Insufficient nvidia.com/gpu"))
        if count
    )
    reasons = {one.reason for one in read(f"0/9 nodes are available: {listed}.")}
    assert (Reason.OTHER_RESOURCE in reasons) == (gpu < 9)
    assert (Reason.GPU_SHORTAGE in reasons) == (gpu > 0)
