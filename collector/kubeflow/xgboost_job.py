"""XGBoostJobs: a master and its workers."""

import msgspec

from collector.kubeflow.replicas import RawReplicated, Replicas, RunPolicy, replicated_facts
from collector.raw import Part
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.XGBOOST_JOB


class Spec(Part):
    run_policy: RunPolicy | None = None
    xgb_replica_specs: dict[str, Replicas] | None = None


class RawXGBoostJob(RawReplicated):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawXGBoostJob, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of an XGBoostJob shows, and its description."""
    spec = raw.spec
    return replicated_facts(
        raw, KIND, observed_ms, run_policy=spec.run_policy, replicas=spec.xgb_replica_specs
    )
