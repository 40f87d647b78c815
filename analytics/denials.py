"""
Pods that were refused when their controller tried to make them: by a quota, a policy, a webhook.

Such a workload has no pod that could say why it waits. Its controller's event does, with the reason
FailedCreate.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

from domain.facts import EventSighting

REASONS = frozenset({"FailedCreate", "FailedCreatePod"})
# "pods "a" is forbidden: exceeded quota: gpus, requested: requests.nvidia.com/gpu=8, used: ..., limited: ..."
_QUOTA = re.compile(
    r"exceeded quota: (?P<rule>[^,]+), requested: (?P<requested>.+?), used: (?P<used>.+?), "
    r"limited: (?P<limited>.+)"
)
# A quota on memory refuses pods that name none: "failed quota: gpus: must specify limits.memory".
_QUOTA_ASKS = re.compile(r"failed quota: (?P<rule>[^:]+): (?P<text>must specify .*)")
# "maximum nvidia.com/gpu usage per Container is 4, but limit is 8"; of several, in brackets.
_LIMITS = re.compile(r"is forbidden: \[?(?P<text>(?:maximum|minimum|max|min) .*? (?:is|per) .*)")
_POD_SECURITY = re.compile(r'violates PodSecurity "(?P<rule>[^"]+)": (?P<text>.*)', re.DOTALL)
_FORBIDDEN = re.compile(r'^Error creating: pods "[^"]*" is forbidden: (?P<text>.*)', re.DOTALL)
_WEBHOOK = re.compile(r'admission webhook "(?P<webhook>[^"]+)" denied the request: (?P<text>.*)', re.DOTALL)
_POLICY = re.compile(
    r"ValidatingAdmissionPolicy '(?P<rule>[^']+)'.*? denied request: (?P<text>.*)", re.DOTALL
)
_GATEKEEPER = "validation.gatekeeper.sh"
_CONSTRAINT = re.compile(r"\[(?P<rule>[^\]]+)\] ?(?P<text>.*)", re.DOTALL)


class Denier(StrEnum):
    """Who refuses pods."""

    RESOURCE_QUOTA = "ResourceQuota"
    LIMIT_RANGE = "LimitRange"
    POD_SECURITY = "PodSecurity"
    GATEKEEPER = "Gatekeeper"
    ADMISSION_POLICY = "ValidatingAdmissionPolicy"
    WEBHOOK = "webhook"
    ADMISSION = "admission"


@dataclass(frozen=True, slots=True, kw_only=True)
class Denial:
    """
    One refusal: who refused, by which rule, and in which words.

    `rule` is the name of the quota, the constraint, the policy or the webhook. Of a quota, what was
    requested, used and allowed is kept as it was written: `requests.nvidia.com/gpu=8`.
    """

    by: Denier
    rule: str
    text: str
    requested: str = ""
    used: str = ""
    limited: str = ""


def denial(event: EventSighting) -> Denial | None:
    """The refusal that an event tells of; None where it tells of something else."""
    return denial_in(event.note) if event.reason in REASONS else None


def denial_in(note: str) -> Denial | None:
    """
    The refusal in a controller's words.

    Source: the quota plugin of the API server, its admission chain, Gatekeeper's webhook.

    >>> told = 'admission webhook "validation.gatekeeper.sh" denied the request: [must-have-team] no team'
    >>> denial_in(told).rule, denial_in(told).text
    ('must-have-team', 'no team')
    """
    if quota := _QUOTA.search(note):
        return Denial(by=Denier.RESOURCE_QUOTA, text=quota.group(), **quota.groupdict())
    if asks := _QUOTA_ASKS.search(note):
        return Denial(by=Denier.RESOURCE_QUOTA, rule=asks["rule"], text=asks.group())
    if level := _POD_SECURITY.search(note):
        return Denial(by=Denier.POD_SECURITY, **level.groupdict())
    if policy := _POLICY.search(note):
        return Denial(by=Denier.ADMISSION_POLICY, **policy.groupdict())
    webhook = _WEBHOOK.search(note)
    if webhook is None:
        return _by_plugin(note)
    constraint = _CONSTRAINT.match(webhook["text"]) if webhook["webhook"] == _GATEKEEPER else None
    if constraint:
        return Denial(by=Denier.GATEKEEPER, **constraint.groupdict())
    return Denial(by=Denier.WEBHOOK, rule=webhook["webhook"], text=webhook["text"])


def _by_plugin(note: str) -> Denial | None:
    """What a plugin of the API server says that gives itself no name."""
    if limits := _LIMITS.search(note):
        return Denial(by=Denier.LIMIT_RANGE, rule="", text=limits["text"].rstrip("]"))
    if forbidden := _FORBIDDEN.match(note):
        return Denial(by=Denier.ADMISSION, rule="", text=forbidden["text"])
    return None
