"""
The kinds that we read: one translator each.

A kind is found by its API group and name; Volcano, scheduler-plugins and Kubernetes itself each
have a PodGroup, and two groups have a Job.
"""

from collector import checkpoints
from collector.kind import Translator
from collector.kube import cron_job, event, job, namespace, node, pod, priority_class, resource_quota
from collector.kube.pod_said import SAID
from collector.kueue import (
    cluster_queue,
    cohort,
    local_queue,
    resource_flavor,
    workload,
    workload_priority_class,
)
from collector.scheduler_plugins import pod_group as plugin_pod_group
from collector.translators_of_jobs import JOB_TRANSLATORS
from collector.translators_of_quotas import QUOTA_TRANSLATORS
from collector.volcano import job as volcano_job
from collector.volcano import pod_group as volcano_pod_group
from collector.volcano import queue as volcano_queue

__all__ = ["TRANSLATORS", "Translator", "find"]

_KUEUE, _KUEUE_VERSIONS = "kueue.x-k8s.io", ("v1beta2", "v1beta1")

# Namespaces come first: the uid of kube-system tells which cluster this is.
TRANSLATORS: tuple[Translator, ...] = (
    Translator(
        kind=namespace.KIND,
        group="",
        api_kind="Namespace",
        versions=("v1",),
        resource="namespaces",
        namespaced=False,
        raw=namespace.RawNamespace,
        facts=namespace.facts,
    ),
    Translator(
        kind=priority_class.KIND,
        group="scheduling.k8s.io",
        api_kind="PriorityClass",
        versions=("v1",),
        resource="priorityclasses",
        namespaced=False,
        raw=priority_class.RawPriorityClass,
        facts=priority_class.facts,
    ),
    Translator(
        kind=node.KIND,
        group="",
        api_kind="Node",
        versions=("v1",),
        resource="nodes",
        namespaced=False,
        raw=node.RawNode,
        facts=node.facts,
    ),
    Translator(
        kind=resource_quota.KIND,
        group="",
        api_kind="ResourceQuota",
        versions=("v1",),
        resource="resourcequotas",
        namespaced=True,
        raw=resource_quota.RawResourceQuota,
        facts=resource_quota.facts,
    ),
    Translator(
        kind=resource_flavor.KIND,
        group=_KUEUE,
        api_kind="ResourceFlavor",
        versions=_KUEUE_VERSIONS,
        resource="resourceflavors",
        namespaced=False,
        raw=resource_flavor.RawResourceFlavor,
        facts=resource_flavor.facts,
    ),
    Translator(
        kind=workload_priority_class.KIND,
        group=_KUEUE,
        api_kind="WorkloadPriorityClass",
        versions=_KUEUE_VERSIONS,
        resource="workloadpriorityclasses",
        namespaced=False,
        raw=workload_priority_class.RawWorkloadPriorityClass,
        facts=workload_priority_class.facts,
    ),
    Translator(
        kind=cohort.KIND,
        group=_KUEUE,
        api_kind="Cohort",
        versions=_KUEUE_VERSIONS,
        resource="cohorts",
        namespaced=False,
        raw=cohort.RawCohort,
        facts=cohort.facts,
    ),
    Translator(
        kind=cluster_queue.KIND,
        group=_KUEUE,
        api_kind="ClusterQueue",
        versions=_KUEUE_VERSIONS,
        resource="clusterqueues",
        namespaced=False,
        raw=cluster_queue.RawClusterQueue,
        facts=cluster_queue.facts,
    ),
    Translator(
        kind=local_queue.KIND,
        group=_KUEUE,
        api_kind="LocalQueue",
        versions=_KUEUE_VERSIONS,
        resource="localqueues",
        namespaced=True,
        raw=local_queue.RawLocalQueue,
        facts=local_queue.facts,
    ),
    Translator(
        kind=workload.KIND,
        group=_KUEUE,
        api_kind="Workload",
        versions=_KUEUE_VERSIONS,
        resource="workloads",
        namespaced=True,
        raw=workload.RawWorkload,
        facts=workload.facts,
    ),
    Translator(
        kind=volcano_queue.KIND,
        group="scheduling.volcano.sh",
        api_kind="Queue",
        versions=("v1beta1",),
        resource="queues",
        namespaced=False,
        raw=volcano_queue.RawQueue,
        facts=volcano_queue.facts,
    ),
    Translator(
        kind=volcano_pod_group.KIND,
        group="scheduling.volcano.sh",
        api_kind="PodGroup",
        versions=("v1beta1",),
        resource="podgroups",
        namespaced=True,
        raw=volcano_pod_group.RawPodGroup,
        facts=volcano_pod_group.facts,
    ),
    Translator(
        kind=volcano_job.KIND,
        group="batch.volcano.sh",
        api_kind="Job",
        versions=("v1alpha1",),
        resource="jobs",
        namespaced=True,
        raw=volcano_job.RawVolcanoJob,
        facts=volcano_job.facts,
    ),
    Translator(
        kind=plugin_pod_group.KIND,
        group="scheduling.x-k8s.io",
        api_kind="PodGroup",
        versions=("v1alpha1",),
        resource="podgroups",
        namespaced=True,
        raw=plugin_pod_group.RawPodGroup,
        facts=plugin_pod_group.facts,
    ),
    *QUOTA_TRANSLATORS,
    *JOB_TRANSLATORS,
    Translator(
        kind=cron_job.KIND,
        group="batch",
        api_kind="CronJob",
        versions=("v1",),
        resource="cronjobs",
        namespaced=True,
        raw=cron_job.RawCronJob,
        facts=cron_job.facts,
    ),
    Translator(
        kind=job.KIND,
        group="batch",
        api_kind="Job",
        versions=("v1",),
        resource="jobs",
        namespaced=True,
        raw=job.RawJob,
        facts=job.facts,
    ),
    Translator(
        kind=pod.KIND,
        group="",
        api_kind="Pod",
        versions=("v1",),
        resource="pods",
        namespaced=True,
        raw=pod.RawPod,
        facts=pod.facts,
        forget=SAID.forget,
    ),
    Translator(
        kind=event.KIND,
        group="",
        api_kind="Event",
        versions=("v1",),
        resource="events",
        namespaced=True,
        raw=event.RawEvent,
        facts=event.facts,
    ),
)

# The other view of the Events above: found when a recording has it, never read beside the first.
_EVENTS_AGAIN = Translator(
    kind=event.KIND,
    group="events.k8s.io",
    api_kind="Event",
    versions=("v1",),
    resource="events",
    namespaced=True,
    raw=event.RawEvent,
    facts=event.facts,
)
# What is told to us is found when a journal has it.
_BY_NAME = {(one.group, one.api_kind): one for one in (*TRANSLATORS, _EVENTS_AGAIN, checkpoints.TRANSLATOR)}


def find(group: str, api_kind: str) -> Translator | None:
    """
    The translator of a kind; None where we do not read it.

    >>> find("batch.volcano.sh", "Job").kind.value, find("apps", "StatefulSet")
    ('VolcanoJob', None)
    """
    return _BY_NAME.get((group, api_kind))
