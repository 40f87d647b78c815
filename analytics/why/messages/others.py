"""
What else keeps a pod: gates, volumes, quotas of a namespace or of scheduler-plugins, images.

Source: kube-scheduler's plugins, the API server's quota plugin (`analytics.denials`), capacity scheduling of
scheduler-plugins, kubelet's image manager.
"""

import re
from collections.abc import Mapping

from analytics.denials import Denier, denial_in
from analytics.why.messages import nodes
from analytics.why.reason import Blocker, BlockerKind, Finding, Reason, Source, Value

_GATED = "Scheduling is blocked due to non-empty scheduling gates"
_NO_CLAIM = re.compile(r'persistentvolumeclaim "(?P<claim>[^"]+)" not found')
_UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
_CLAIMS = re.compile(r"(?:cannot allocate all claims|resourceclaim in use|resourceclaim not available)")
_ELASTIC = re.compile(r"because ElasticQuota (?P<quota>\S+) is more than Max")
_ELASTIC_SUM = "total ElasticQuota used is more than min"
_IMAGE = re.compile(r'image "(?P<image>[^"]+)"')
_IMAGE_WORDS = ("ErrImagePull", "ImagePullBackOff", "InvalidImageName", "Failed to pull image",
                "Back-off pulling image")  # fmt: skip
_CRASHES = re.compile(r"^[Bb]ack-off .*restarting failed container")
_AMOUNT = re.compile(r"(?P<resource>[\w./-]+)=(?P<amount>\d+)(?![\w.])")
_CHECK_CLAIM = "Create the volume claim, or correct its name in the pod."


def read(text: str) -> list[Finding]:
    """The findings in one text of these grammars; none where it is of another."""
    return _of_pod(text) or _of_quota(text) or _denied(text)


def _of_pod(text: str) -> list[Finding]:
    if text == _GATED:
        return [_finding(Reason.GATED, {}, "Whoever set the scheduling gate must take it away.")]
    if any(word in text for word in _IMAGE_WORDS):
        return [_image(text)]
    if _CRASHES.match(text):
        return [_finding(Reason.BACKOFF, {}, "Read the container's log: it fails again and again.")]
    if claim := _NO_CLAIM.search(text):
        return [
            _finding(Reason.MISCONFIGURED, {"volume_claim": claim["claim"]}, _CHECK_CLAIM, claim["claim"])
        ]
    if _UNBOUND in text:
        remedy = "Look at the volume claims: none of the volumes there is bound to one of them."
        return [_finding(Reason.MISCONFIGURED, {}, remedy)]
    before = nodes.refused_before(text)
    if before and _CLAIMS.search(before):
        remedy = "Wait for devices to come free, or claim others."
        return [Finding(reason=Reason.GPU_SHORTAGE, source=Source.MESSAGE, remedy=remedy, is_coarse=True)]
    return []


def _of_quota(text: str) -> list[Finding]:
    """ElasticQuotas of scheduler-plugins."""
    if _ELASTIC_SUM in text:
        remedy = "Wait until somebody gives back what was borrowed from the sum of all minima."
        return [_finding(Reason.COHORT_EXHAUSTED, {}, remedy)]
    if quota := _ELASTIC.search(text):
        evidence: dict[str, Value] = {"quota": quota["quota"]}
        return [_finding(Reason.QUOTA_EXHAUSTED, evidence, "Wait until jobs of the same quota end.")]
    return []


def _image(text: str) -> Finding:
    evidence: dict[str, Value] = {}
    if image := _IMAGE.search(text):
        evidence["image"] = image["image"]
    remedy = "Correct the image's name, or make it readable for the cluster: it cannot be pulled."
    return _finding(Reason.STARTING, evidence, remedy)


def _denied(text: str) -> list[Finding]:
    """Pods that could not be created: beyond a quota they wait for it, all else is a mistake."""
    denied = denial_in(text)
    if denied is None:
        return []
    evidence: dict[str, Value] = {"denied_by": str(denied.by), "rule": denied.rule}
    if denied.by is not Denier.RESOURCE_QUOTA or not denied.limited:
        remedy = f"Change the pods so that {denied.by} lets them in."
        return [_finding(Reason.MISCONFIGURED, evidence, remedy, denied.rule)]
    requested, used, limited = (_amounts(said) for said in (denied.requested, denied.used, denied.limited))
    for name, amounts in (("asked", requested), ("used", used), ("hard", limited)):
        evidence |= {f"{name}_{resource}": amount for resource, amount in amounts.items()}
    if any(amount > limited.get(resource, amount) for resource, amount in requested.items()):
        remedy = "Ask for less: the quota of the namespace is smaller than this one request."
        return [_finding(Reason.NEVER_FITS, evidence, remedy, denied.rule)]
    remedy = "Wait until other pods of the namespace end, or ask for a larger quota."
    return [_finding(Reason.QUOTA_EXHAUSTED, evidence, remedy, denied.rule)]


def _amounts(said: str) -> dict[str, int]:
    """
    Whole amounts by resource.

    >>> _amounts("requests.nvidia.com/gpu=8,requests.memory=64Gi")
    {'requests.nvidia.com/gpu': 8}
    """
    return {one["resource"]: int(one["amount"]) for one in _AMOUNT.finditer(said)}


def _finding(reason: Reason, evidence: Mapping[str, Value], remedy: str, blocker: str = "") -> Finding:
    blockers = (Blocker(kind=BlockerKind.OBJECT, name=blocker),) if blocker else ()
    return Finding(reason=reason, source=Source.MESSAGE, evidence=evidence, remedy=remedy, blockers=blockers)
