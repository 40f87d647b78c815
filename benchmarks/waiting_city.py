"""A large site from a seed: nodes that are nearly full, queues in cohorts, and ten thousand that wait."""

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from analytics.fairness.kueue_shares import KueueSite, kueue_sites
from analytics.why.nodes import Gang, Hold, Node, PodSet
from analytics.why.order import Waiting
from analytics.why.quota import PodSetAsk, Request
from domain.metric import Row
from domain.placement import Placement, Rule, Toleration

_GPU: Final = "nvidia.com/gpu"
_SLICE: Final = "nvidia.com/mig-1g.10gb"
_GIB: Final = 2**30
# Model, part of the nodes, GPUs, CPUs, memory.
_MODELS: Final = (("a100", 0.5, 8, 96, 1024), ("h100", 0.25, 8, 128, 2048), ("l40s", 0.25, 4, 64, 512))
_TAINT: Final = "pool=h100:NoSchedule"
_BEARS: Final = (Toleration(key="pool", operator="Equal", value="h100", effect="NoSchedule"),)
CLASSES: Final = {"interactive": 100_000, "training": 50_000, "batch": 10_000, "best-effort": 1_000}
_DAY_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class City:
    """What is known of a cluster at an instant."""

    nodes: list[Node]
    holds: list[Hold]
    rows: list[Row]
    strict: set[str]
    waiting: list[tuple[Waiting, Gang]]

    @property
    def site(self) -> KueueSite:
        """Its queues, read anew from their rows."""
        (site,) = kueue_sites(self.rows).values()
        return site


def city(*, nodes: int, waiting: int, seed: int = 1) -> City:
    """A site of so many nodes and workloads that wait."""
    chance = random.Random(seed)
    machines, holds = _machines(nodes, chance)
    queues = [f"team-{number}" for number in range(40)]
    return City(
        nodes=machines,
        holds=holds,
        rows=list(_rows(queues, nodes, chance)),
        strict=set(queues[::5]),
        waiting=[_waiting(number, queues, chance) for number in range(waiting)],
    )


def _machines(count: int, chance: random.Random) -> tuple[list[Node], list[Hold]]:
    machines: list[Node] = []
    holds: list[Hold] = []
    shared: list[str] = []
    for model, part, gpus, cpus, memory in _MODELS:
        for number in range(int(count * part)):
            name = f"{model}-{number:04d}"
            slices = 14 if model == "a100" and number % 10 == 0 else 0
            free, cpu, ram = gpus - slices // 7, cpus * 1000, memory * _GIB
            # What takes no pods was drained.
            up = chance.random() > 0.02
            offered = {_GPU: free} | ({_SLICE: slices} if slices else {})
            while up and free and chance.random() < 0.93:
                held = min(free, chance.choice([1, 1, 2, 4, 8, 8]))
                free -= held
                beside = {
                    "cpu": held * chance.choice([4, 8, 12]) * 1000,
                    "memory": held * chance.choice([32, 64, 96]) * _GIB,
                }
                cpu -= beside["cpu"]
                ram -= beside["memory"]
                # Some holders spread over many nodes.
                if held == 8 and shared and chance.random() < 0.7:
                    uid = shared[-1]
                else:
                    uid = f"holder-{len(holds)}"
                    shared += [uid] if held == 8 else []
                holds.append(Hold(workload_uid=uid, node=name, devices={_GPU: held}, others=beside))
            machines.append(
                Node(
                    name=name,
                    labels={
                        "kubernetes.io/hostname": name,
                        "nvidia.com/gpu.product": model,
                        "rack": f"r{len(machines) // 16}",
                        "zone": f"z{len(machines) // 500}",
                    },
                    taints=(_TAINT,) if model == "h100" else (),
                    allocatable=offered,
                    capacity=offered,
                    free={**offered, _GPU: free},
                    schedulable=up,
                    others={"cpu": cpus * 1000, "memory": memory * _GIB},
                    others_free={"cpu": max(cpu, 0), "memory": max(ram, 0)},
                )
            )
    return machines, holds


def _rows(queues: list[str], nodes: int, chance: random.Random) -> Iterator[Row]:
    blank: dict[str, object] = {
        "what": "", "cluster": "north", "queue": "", "parent": "", "weight_milli": 1000, "quotas": "[]",
        "flavor": "", "resources": "", "number": 0,
    }  # fmt: skip
    for number in range(8):
        parent = "" if number < 2 else f"group-{number % 2}"
        yield {**blank, "what": "Cohort", "queue": f"group-{number}", "parent": parent}
    for number, queue in enumerate(queues):
        quotas, used = [], []
        for model, part, gpus, *_ in _MODELS:
            nominal = round(nodes * part * gpus / len(queues)) * 1000
            limits = [chance.choice([None, None, nominal]), chance.choice([None, 0, nominal // 2])]
            quotas.append([model, _GPU, nominal, *limits])
            used.append((model, int(nominal * chance.choice([0.5, 0.9, 1.0, 1.2])) // 1000 * 1000))
        quotas.append(["a100-mig", _SLICE, 28_000, None, 0])
        yield {**blank, "what": "ClusterQueue", "queue": queue, "parent": f"group-{2 + number % 6}",
               "quotas": json.dumps(quotas)}  # fmt: skip
        for model, amount in used:
            yield {**blank, "what": "use", "queue": queue, "flavor": model,
                   "resources": json.dumps({_GPU: amount}), "number": 1}  # fmt: skip


def _waiting(number: int, queues: list[str], chance: random.Random) -> tuple[Waiting, Gang]:
    model = chance.choice(["a100", "a100", "h100", "l40s", "h200" if chance.random() < 0.1 else "a100"])
    each = chance.choice([1, 1, 2, 4, 8, 8, 16 if chance.random() < 0.1 else 8])
    pods = chance.choice([1, 1, 1, 2, 4, 8, 16, 64]) if each == 8 else chance.choice([1, 1, 2, 4])
    resource = _SLICE if chance.random() < 0.05 else _GPU
    placement = Placement(
        labels={"nvidia.com/gpu.product": model} if chance.random() < 0.8 else {},
        terms=((Rule(key="zone", operator="In", values=("z0", "z1")),),) if chance.random() < 0.1 else (),
        tolerations=_BEARS if model == "h100" and chance.random() < 0.95 else (),
    )
    workers = PodSet(
        pods=pods,
        devices={resource: each},
        placement=placement,
        others={
            "cpu": each * chance.choice([4, 8, 12]) * 1000,
            "memory": each * chance.choice([32, 64]) * _GIB,
        },
    )
    leader = PodSet(pods=1, devices={}, placement=placement, others={"cpu": 4000, "memory": 16 * _GIB})
    sets = (workers, leader) if chance.random() < 0.1 else (workers,)
    queue = chance.choice(queues)
    flavors = frozenset({model, "a100-mig"}) if placement.labels else None
    request = Request(
        queue=queue,
        pod_sets=tuple(
            PodSetAsk(amounts={name: one.pods * n * 1000 for name, n in one.devices.items()}, flavors=flavors)
            for one in sets
        ),
    )
    one = Waiting(
        uid=f"workload-{number}",
        queue=queue,
        priority=chance.choice(list(CLASSES.values())),
        since_ms=chance.randrange(_DAY_MS),
        request=request,
    )
    return one, Gang(pod_sets=sets, same_domain="rack" if pods > 1 and chance.random() < 0.1 else "")
