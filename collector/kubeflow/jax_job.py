"""JAXJobs: workers that are all alike."""

import msgspec

from collector.kubeflow.replicas import RawReplicated, Replicas, RunPolicy, replicated_facts
from collector.raw import Part
from domain.facts import Fact, ObjectKind

KIND = ObjectKind.JAX_JOB


class Spec(Part):
    run_policy: RunPolicy | None = None
    jax_replica_specs: dict[str, Replicas] | None = None


class RawJAXJob(RawReplicated):
    spec: Spec = msgspec.field(default_factory=Spec)


def facts(raw: RawJAXJob, observed_ms: int) -> list[Fact]:
    """The conditions that one reading of a JAXJob shows, and its description."""
    spec = raw.spec
    return replicated_facts(
        raw, KIND, observed_ms, run_policy=spec.run_policy, replicas=spec.jax_replica_specs
    )
