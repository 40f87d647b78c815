"""TFJobs: TensorFlow's chief, workers, parameter servers and evaluators."""

import msgspec

from collector.kubeflow.replicas import RawReplicated, Replicas, RunPolicy, replicated_facts
from collector.raw import Part
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.TF_JOB


class Spec(Part):
    run_policy: RunPolicy | None = None
    tf_replica_specs: dict[str, Replicas] | None = None


class RawTFJob(RawReplicated):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawTFJob, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of a TFJob shows, and its description."""
    spec = raw.spec
    return replicated_facts(
        raw, KIND, observed_ms, run_policy=spec.run_policy, replicas=spec.tf_replica_specs
    )
