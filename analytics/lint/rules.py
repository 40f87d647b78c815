"""The rules, and which of them a workload breaks."""

from collections.abc import Callable, Mapping
from datetime import timedelta
from enum import StrEnum
from types import MappingProxyType

from analytics.evaluate import whole
from domain.metric import Row
from domain.policy import Policy


class Rule(StrEnum):
    """What a finding says of a workload."""

    NO_PRIORITY_CLASS = "no_priority_class"
    ONE_CLASS_FOR_ALL = "one_class_for_all"
    ODD_GPU_COUNT = "odd_gpu_count"
    NO_CHECKPOINT_PROMISE = "no_checkpoint_promise"
    OVER_REQUEST = "over_request"
    CHECKPOINT_ON_POD_STORAGE = "checkpoint_on_pod_storage"
    LONG_GRACE_PERIOD = "long_grace_period"


MEANINGS: Mapping[Rule, str] = MappingProxyType({
    Rule.NO_PRIORITY_CLASS: "it names no priority class",
    Rule.ONE_CLASS_FOR_ALL: "its priority class is that of nearly all submissions, so it ranks nothing",
    Rule.ODD_GPU_COUNT: "its pods ask a number of GPUs that leaves some over on every node, such as 7 of 8",
    Rule.NO_CHECKPOINT_PROMISE: "it may be preempted, and has told of no checkpoint",
    Rule.OVER_REQUEST: "at some time it held GPUs that were never active",
    Rule.CHECKPOINT_ON_POD_STORAGE: "its checkpoints lie on an emptyDir or hostPath",
    Rule.LONG_GRACE_PERIOD: "it may be preempted, and drains for long",
})  # fmt: skip
# Nothing that is collected tells of these: they are listed as not observed, never as fine.
NOT_OBSERVED: Mapping[Rule, str] = MappingProxyType({
    Rule.CHECKPOINT_ON_POD_STORAGE: "volumes of pods are not collected",
    Rule.LONG_GRACE_PERIOD: "grace periods of pods are not collected",
})  # fmt: skip


def _one_class_for_all(row: Row, policy: Policy) -> bool:
    all_of_them = whole(row, "submissions")
    return bool(
        row["is_new"]
        and row["priority_class"]
        and whole(row, "class_submissions") > policy.lint_one_class_ratio * all_of_them
    )


def _no_checkpoint(row: Row, policy: Policy) -> bool:
    return bool(
        row["has_run"] and not row["has_checkpoint"] and row["service_class"] in policy.preemptible_classes
    )


def _over_request(row: Row, policy: Policy) -> bool:
    least_ms = policy.idle_after // timedelta(milliseconds=1)
    return whole(row, "idle_devices") > 0 and whole(row, "idle_seen_ms") >= least_ms


BREAKS: Mapping[Rule, Callable[[Row, Policy], bool]] = MappingProxyType({
    Rule.NO_PRIORITY_CLASS: lambda row, _: not row["priority_class"],
    Rule.ONE_CLASS_FOR_ALL: _one_class_for_all,
    Rule.ODD_GPU_COUNT: lambda row, _: bool(row["is_odd"]),
    Rule.NO_CHECKPOINT_PROMISE: _no_checkpoint,
    Rule.OVER_REQUEST: _over_request,
})  # fmt: skip
