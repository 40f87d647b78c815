"""What controllers say when their pods are refused."""

import pytest
from msgspec.structs import replace

from analytics.denials import Denial, Denier, denial
from domain.facts import EventSighting

EVENT = EventSighting(
    uid="e", resource_version="1", event_type="Warning", reason="FailedCreate", note="", component="",
    regarding_kind="Job", regarding_uid="j", regarding_namespace="t", regarding_name="j", related_uid="",
    first_ms=0, last_ms=0, count=1, observed_ms=0,
)  # fmt: skip
GPU = "requests.nvidia.com/gpu"

CASES: dict[str, tuple[str, Denial | None]] = {
    "a quota": (
        (f'Error creating: pods "j-x" is forbidden: exceeded quota: gpus, requested: {GPU}=8, '
        f"used: {GPU}=4, limited: {GPU}=8"),
        Denial(
            by=Denier.RESOURCE_QUOTA, rule="gpus", requested=f"{GPU}=8", used=f"{GPU}=4", limited=f"{GPU}=8",
            text=f"exceeded quota: gpus, requested: {GPU}=8, used: {GPU}=4, limited: {GPU}=8",
        ),
    ),
    "Gatekeeper": (
        ('Error creating: admission webhook "validation.gatekeeper.sh" denied the request: '
        "[needs-team] no label team"),
        Denial(by=Denier.GATEKEEPER, rule="needs-team", text="no label team"),
    ),
    "another webhook": (
        'Error creating: admission webhook "validate.kyverno.svc" denied the request: no',
        Denial(by=Denier.WEBHOOK, rule="validate.kyverno.svc", text="no"),
    ),
    "a policy of the API server": (
        ("Error creating: pods \"j\" is forbidden: ValidatingAdmissionPolicy 'no-latest' with binding 'b' "
        "denied request: tag"),
        Denial(by=Denier.ADMISSION_POLICY, rule="no-latest", text="tag"),
    ),
    "a quota that asks for more words": (
        'Error creating: pods "j" is forbidden: failed quota: gpus: must specify limits.memory',
        Denial(by=Denier.RESOURCE_QUOTA, rule="gpus", text="failed quota: gpus: must specify limits.memory"),
    ),
    "a LimitRange": (
        ('Error creating: pods "j" is forbidden: [maximum nvidia.com/gpu usage per Container is 4, but limit '
        "is 8, maximum cpu usage per Pod is 2, but limit is 4]"),
        Denial(
            by=Denier.LIMIT_RANGE, rule="",
            text="maximum nvidia.com/gpu usage per Container is 4, but limit is 8, "
            "maximum cpu usage per Pod is 2, but limit is 4",
        ),
    ),
    "PodSecurity": (
        'Error creating: pods "j" is forbidden: violates PodSecurity "restricted:latest": privileged',
        Denial(by=Denier.POD_SECURITY, rule="restricted:latest", text="privileged"),
    ),
    "a priority class that is not there": (
        'Error creating: pods "j" is forbidden: no PriorityClass with name gold was found',
        Denial(by=Denier.ADMISSION, rule="", text="no PriorityClass with name gold was found"),
    ),
    "something else": ("Error creating: Timeout: request did not complete", None),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_refusal_is_read_from_the_event(name: str) -> None:
    note, expected = CASES[name]
    assert denial(replace(EVENT, note=note)) == expected


def test_an_event_of_another_reason_tells_of_no_refusal() -> None:
    note, _ = CASES["a quota"]
    assert denial(replace(EVENT, note=note, reason="SuccessfulCreate")) is None
