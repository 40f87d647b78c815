"""How many GPUs a claim is, and how many a node offers as devices."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.claims import asked_micro_gpus, gpu_resources, offered_resources, with_claims
from analytics.history import Catalog, History, WorkloadFacts
from domain.claims import AllocatedDevice, Device, DeviceRequest, PodClaim, ResourceClaim
from domain.facts import ObjectKind
from domain.quantity import micro_gpus
from domain.workload import Holding
from tests.lives import described, pod, pod_body


def ask(name: str = "r", device_class: str = "gpu.nvidia.com", **more: object) -> DeviceRequest:
    usual = DeviceRequest(name=name, device_class=device_class, count=1, admin=False, selectors=())
    return replace(usual, **more)  # type: ignore[arg-type]


def device(name: str = "gpu-0", request: str = "r", **more: object) -> AllocatedDevice:
    usual = AllocatedDevice(
        request=request, driver="gpu.nvidia.com", pool="n1", device=name, admin=False, shared=False
    )
    return replace(usual, **more)  # type: ignore[arg-type]


def claim(*requests: DeviceRequest, devices: tuple[AllocatedDevice, ...] = ()) -> ResourceClaim:
    return ResourceClaim(pod_uid="", extended_resource=False, requests=requests, devices=devices)


PART = "device.attributes['gpu.nvidia.com'].profile == '3g.40gb'"
MIG = ask(device_class="mig.nvidia.com", selectors=(PART,))

CASES: dict[str, tuple[ResourceClaim, int | None]] = {
    "two whole GPUs asked for": (claim(ask(count=2)), 2_000_000),
    "the first alternative": (claim(ask("r/a"), ask("r/b", "mig.nvidia.com")), 1_000_000),
    "the alternative that was given": (
        claim(
            ask("r/a"),
            ask("r/b", "mig.nvidia.com", selectors=(PART,)),
            devices=(device("gpu-0-mig-9-4-4", "r/b"),),
        ),
        428_571,
    ),
    "a part of a GPU by its profile": (claim(MIG), 428_571),
    "a part of a GPU that no profile tells": (claim(ask(device_class="mig.nvidia.com")), None),
    "all that match, of which nobody knows how many": (claim(ask(count=None)), None),
    "all that matched": (claim(ask(count=None), devices=(device("gpu-0"), device("gpu-1"))), 2_000_000),
    "a class of the site, given a GPU": (claim(ask(device_class="h100"), devices=(device(),)), 1_000_000),
    "a class of the site, given a part": (
        claim(ask(device_class="half", selectors=(PART,)), devices=(device("gpu-0-mig-9-4-4"),)),
        428_571,
    ),
    "access for administrators": (
        claim(ask(count=None, admin=True), devices=(device(admin=True), device("gpu-1", admin=True))),
        0,
    ),
    "access for administrators, asked for": (claim(ask(admin=True)), 0),
    "a GPU of which others have a part": (claim(ask(), devices=(device(shared=True),)), None),
    "a channel of a compute domain": (
        claim(
            ask(device_class="compute-domain-default-channel.nvidia.com"),
            devices=(device(driver="compute-domain.nvidia.com"),),
        ),
        0,
    ),
    "a claim that stands for a requested resource": (replace(claim(ask()), extended_resource=True), 0),
}


@pytest.mark.parametrize("name", CASES)
def test_a_claim_is_so_many_gpus(name: str) -> None:
    asked, expected = CASES[name]
    assert micro_gpus(gpu_resources(asked)) == expected


def test_a_card_that_may_be_cut_is_offered_once() -> None:
    def offer(name: str, kind: str, card: str, profile: str = "") -> Device:
        return Device(name=name, kind=kind, product="NVIDIA A100", profile=profile, gpu_uuid=card)

    offered = [
        offer("gpu-0", "gpu", "GPU-0"),
        offer("gpu-0-mig-9-0-4", "mig", "GPU-0", "3g.40gb"),
        offer("gpu-0-mig-9-4-4", "mig", "GPU-0", "3g.40gb"),
        offer("gpu-1-mig-9-0-4", "mig", "GPU-1", "3g.40gb"),
    ]
    assert offered_resources(offered) == {"nvidia.com/gpu": 1, "nvidia.com/mig-3g.40gb": 1}


def holding(uid: str, bound_ms: int, released_ms: int | None) -> Holding:
    return Holding(
        pod_uid=uid, pod_name=uid, attempt=1, node="", gpu_model="", micro_gpus=0, bound_ms=bound_ms,
        bound_earliest_ms=None, bound_source="condition", started_ms=bound_ms, released_ms=released_ms,
        released_earliest_ms=None, phase="", restarts=0,
    )  # fmt: skip


STAYS = st.lists(st.tuples(st.integers(0, 50), st.integers(1, 50)), min_size=1, max_size=6)


@given(STAYS)
def test_at_any_instant_a_shared_claim_is_held_once_while_any_pod_is_there(
    stays: list[tuple[int, int]],
) -> None:
    body = pod_body(gpus=0, gpu_requests={}, claims=(PodClaim(name="c", own=False),))
    pods = tuple(pod(f"p{number}", 0, body=body) for number, _ in enumerate(stays))
    shared = History(
        uid="c", kind=ObjectKind.RESOURCE_CLAIM, namespace="red", name="c",
        descriptions=(described(claim(ask())),), transitions=(),
    )  # fmt: skip
    facts = WorkloadFacts(uid="w", queueing=(), jobs=(shared,), pods=pods, catalog=Catalog())
    before = tuple(
        holding(f"p{number}", start, start + length) for number, (start, length) in enumerate(stays)
    )
    after = with_claims(before, facts)

    def held(rows: tuple[Holding, ...], at: int) -> list[int | None]:
        return [
            r.micro_gpus for r in rows if r.bound_ms <= at and (r.released_ms is None or at < r.released_ms)
        ]

    for at in range(101):
        there = held(before, at)
        assert sum(one or 0 for one in held(after, at)) == (1_000_000 if there else 0)
        assert len(held(after, at)) == len(there)


def test_a_pod_that_waits_asks_for_its_own_claims_too() -> None:
    mine = History(
        uid="c", kind=ObjectKind.RESOURCE_CLAIM, namespace="red", name="c",
        descriptions=(described(claim(ask(count=2))),), transitions=(),
    )  # fmt: skip
    facts = WorkloadFacts(uid="w", queueing=(), jobs=(mine,), pods=(), catalog=Catalog())
    uses = {name: pod_body(claims=(PodClaim(name=name, own=True),)) for name in ("c", "unread")}
    asked = {name: asked_micro_gpus(facts, body, None) for name, body in uses.items()}
    assert asked == {"c": 3_000_000, "unread": None}


def test_pods_without_claims_are_left_as_they_are() -> None:
    facts = WorkloadFacts(uid="w", queueing=(), jobs=(), pods=(pod("p0", 0),), catalog=Catalog())
    before = (holding("p0", 0, None),)
    assert with_claims(before, facts) is before
