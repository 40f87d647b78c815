"""Each rule of the lint against the sentence that it stands for."""

from typing import Any

from hypothesis import Phase, given
from hypothesis import strategies as st

from analytics.lint.rules import BREAKS, MEANINGS, NOT_OBSERVED, Rule
from analytics.metrics import REGISTRY
from tests.golden.cases import store_of, values
from tests.laws import law

NOON = "2026-01-08T12:00:00Z"
SUBMITTED = "2026-01-08T06:00:00Z"
# Each example opens a store; shrinking would open thousands.
WITHOUT_SHRINKING = (Phase.explicit, Phase.reuse, Phase.generate)
JOBS = st.lists(
    st.tuples(
        st.sampled_from(["", "low", "high"]),
        st.sampled_from(["interactive", "batch"]),
        st.integers(1, 17),
        st.booleans(),
        st.booleans(),
    ),
    min_size=1,
    max_size=12,
)


@given(JOBS, st.sets(st.sampled_from([4, 6, 8]), min_size=1))
@law(40, phases=WITHOUT_SHRINKING)
def test_findings_are_the_workloads_of_which_the_sentence_is_true(
    jobs: list[tuple[str, str, int, bool, bool]], sizes: set[int]
) -> None:
    tables: dict[str, list[dict[str, Any]]] = {
        "workload": [], "workload_shape": [], "member": [], "transition": [],
        "node_device": [{"node": f"n{size}", "capacity": size, "start_ms": 0} for size in sizes],
    }  # fmt: skip
    for number, (priority, service, gpus, placed, saved) in enumerate(jobs):
        uid = f"w{number}"
        tables["workload"].append({
            "workload_uid": uid, "priority_class": priority, "service_class": service, "gpu_model": "",
            "submitted_at": SUBMITTED, "first_placed_at": SUBMITTED if placed else None,
        })  # fmt: skip
        tables["workload_shape"].append({"workload_uid": uid, "devices": gpus})
        tables["member"].append({"workload_uid": uid, "object_uid": f"o{number}"})
        if saved:
            tables["transition"].append({"uid": f"o{number}", "moment": "checkpoint", "at_at": SUBMITTED})
    with store_of(tables) as store:
        told = {
            rule: value
            for (rule,), value in values(store, "lint_findings_workloads", NOON, window="7d").items()
        }
    classes = [priority for priority, *_ in jobs]
    assert told == {
        Rule.NO_PRIORITY_CLASS: classes.count(""),
        Rule.ONE_CLASS_FOR_ALL: sum(
            priority != "" and classes.count(priority) > 0.9 * len(jobs) for priority in classes
        ),
        Rule.ODD_GPU_COUNT: sum(
            all(size % gpus and gpus % size for size in sizes) for _, _, gpus, *_ in jobs
        ),
        Rule.NO_CHECKPOINT_PROMISE: sum(
            service == "batch" and placed and not saved for _, service, _, placed, saved in jobs
        ),
        Rule.OVER_REQUEST: 0,
    }


def test_every_rule_is_told_and_either_tried_or_said_not_to_be_observed() -> None:
    assert set(MEANINGS) == set(Rule)
    assert set(BREAKS) | set(NOT_OBSERVED) == set(Rule)
    assert not set(BREAKS) & set(NOT_OBSERVED)


def test_two_figures_of_unused_gpus_say_how_they_differ() -> None:
    # One looks back over a week and counts workloads, one is of this instant and counts GPUs.
    lint, now = (REGISTRY[name].definition for name in ("lint_findings_workloads", "never_active_gpus"))
    assert "also where that pod is over by now; never_active_gpus counts the GPUs of this instant" in lint
    assert "lint_findings_workloads counts under over_request the workloads of the last 7 days" in now
