"""What the job kinds of Kubeflow's training operator have in common; each calls its replicas by its name."""

from collections.abc import Mapping

import msgspec

from collector.job_wording import job_conditions, job_object, pod_set, priority_class_of
from collector.raw import Condition, Int, Part, PodTemplate, RawObject
from collector.wording import created, description
from domain.facts import Fact, ObjectKind


class Replicas(Part):
    replicas: Int | None = None
    template: PodTemplate | None = None


class SchedulingPolicy(Part):
    priority_class: str | None = None


class RunPolicy(Part):
    suspend: bool | None = None
    scheduling_policy: SchedulingPolicy | None = None


class Status(Part):
    conditions: list[Condition] | None = None


class RawReplicated(RawObject):
    """Of any of these jobs all but its replicas."""

    status: Status = msgspec.field(default_factory=Status)


def replicated_facts(
    raw: RawReplicated,
    kind: ObjectKind,
    observed_ms: int,
    *,
    run_policy: RunPolicy | None,
    replicas: Mapping[str, Replicas] | None,
) -> list[Fact]:
    """The conditions that one reading of such a job shows, and its description."""
    creation = created(raw, kind, observed_ms)
    policy = run_policy or RunPolicy()
    by_role = replicas or {}
    of_gang = policy.scheduling_policy.priority_class if policy.scheduling_policy else None
    body = job_object(
        raw,
        suspend=policy.suspend,
        pod_sets=(
            pod_set(role, 1 if one.replicas is None else one.replicas, one.template)
            for role, one in by_role.items()
        ),
        priority_class=of_gang or priority_class_of(one.template for one in by_role.values()),
    )
    return [creation, *job_conditions(creation, raw.status.conditions), description(raw, creation, body)]
