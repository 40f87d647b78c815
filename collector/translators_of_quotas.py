"""Queues, gangs, quotas and devices of schedulers that came later: one translator each."""

from collector.dra import device_class, resource_claim, resource_slice
from collector.kai import pod_group as kai_pod_group
from collector.kai import queue as kai_queue
from collector.kind import Translator
from collector.kube import pod_group
from collector.kueue import admission_check
from collector.scheduler_plugins import elastic_quota

_DRA = ("v1", "v1beta2", "v1beta1")

QUOTA_TRANSLATORS: tuple[Translator, ...] = (
    Translator(
        kind=kai_queue.KIND,
        group="scheduling.run.ai",
        api_kind="Queue",
        versions=("v2",),
        resource="queues",
        namespaced=False,
        raw=kai_queue.RawKaiQueue,
        facts=kai_queue.facts,
    ),
    Translator(
        kind=kai_pod_group.KIND,
        group="scheduling.run.ai",
        api_kind="PodGroup",
        versions=("v2alpha2",),
        resource="podgroups",
        namespaced=True,
        raw=kai_pod_group.RawPodGroup,
        facts=kai_pod_group.facts,
    ),
    Translator(
        kind=pod_group.KIND,
        group="scheduling.k8s.io",
        api_kind="PodGroup",
        versions=("v1alpha3", "v1alpha2"),
        resource="podgroups",
        namespaced=True,
        raw=pod_group.RawPodGroup,
        facts=pod_group.facts,
    ),
    Translator(
        kind=elastic_quota.KIND,
        group="scheduling.x-k8s.io",
        api_kind="ElasticQuota",
        versions=("v1alpha1",),
        resource="elasticquotas",
        namespaced=True,
        raw=elastic_quota.RawElasticQuota,
        facts=elastic_quota.facts,
    ),
    Translator(
        kind=admission_check.KIND,
        group="kueue.x-k8s.io",
        api_kind="AdmissionCheck",
        versions=("v1beta2", "v1beta1"),
        resource="admissionchecks",
        namespaced=False,
        raw=admission_check.RawAdmissionCheck,
        facts=admission_check.facts,
    ),
    Translator(
        kind=device_class.KIND,
        group="resource.k8s.io",
        api_kind="DeviceClass",
        versions=_DRA,
        resource="deviceclasses",
        namespaced=False,
        raw=device_class.RawDeviceClass,
        facts=device_class.facts,
    ),
    Translator(
        kind=resource_slice.KIND,
        group="resource.k8s.io",
        api_kind="ResourceSlice",
        versions=_DRA,
        resource="resourceslices",
        namespaced=False,
        raw=resource_slice.RawResourceSlice,
        facts=resource_slice.facts,
    ),
    Translator(
        kind=resource_claim.KIND,
        group="resource.k8s.io",
        api_kind="ResourceClaim",
        versions=_DRA,
        resource="resourceclaims",
        namespaced=True,
        raw=resource_claim.RawResourceClaim,
        facts=resource_claim.facts,
    ),
)
