"""The rows behind the figures of fragmentation, and the pools that they make up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from analytics.fragmentation.inventory import Ask, Inventory, Part, Place
from analytics.fragmentation.repack import Movable
from analytics.fragmentation.waste import Shape
from domain.metric import Ask as Question
from domain.metric import Compute, Row, Sample
from domain.quantity import MICRO_PER_GPU, micro_gpus

# What a pool is: the GPUs of one model in one cluster.
POOL = ("cluster", "gpu_model")
DIMENSIONS = (*POOL, "node")

# The shapes of the last 7 days, 604,800,000 ms, are those that definitions name.
INVENTORY = """\
-- One row per node and GPU resource just before $as_of_ms (what = 'node'), per pod on it ('held'), and
-- per pool and part of a workload that waits ('waiting'), or pod shape asked in the last 7 days ('asked').
with standing as (
    select * from node_device
    where start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true)
),

bound as (
    select * from device_holding
    where bound_ms < $as_of_ms and coalesce(released_ms >= $as_of_ms, true)
),

pool as (
    select distinct cluster, gpu_model from standing
)

select
    'node' as what,
    cluster,
    gpu_model,
    node,
    resource,
    replicas,
    capacity,
    case when schedulable then allocatable else 0 end as devices,
    0 as pods,
    0 as part,
    '' as name
from standing
union all
select
    'held' as what,
    standing.cluster,
    standing.gpu_model,
    standing.node,
    standing.resource,
    standing.replicas,
    0 as capacity,
    bound.devices,
    1 as pods,
    case when standing.schedulable then 1 else 0 end as part,
    bound.service_class as name
from bound
inner join standing
    on bound.cluster = standing.cluster
    and bound.node = standing.node
    and bound.resource = standing.resource
union all
select
    'waiting' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    waiting_ask.resource,
    1 as replicas,
    0 as capacity,
    waiting_ask.devices,
    greatest(
        waiting_ask.pods
        - (
            select count(*) from bound
            where
                bound.cluster = waiting_ask.cluster
                and bound.workload_uid = waiting_ask.workload_uid
                and bound.resource = waiting_ask.resource
                and bound.devices = waiting_ask.devices
        ),
        0
    ) as pods,
    waiting_ask.part,
    waiting_ask.workload_uid as name
from waiting_ask
inner join pool on waiting_ask.cluster = pool.cluster
where waiting_ask.start_ms < $as_of_ms and coalesce(waiting_ask.end_ms >= $as_of_ms, true)
union all
select
    'asked' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    asked_shape.resource,
    1 as replicas,
    0 as capacity,
    asked_shape.devices,
    sum(asked_shape.pods) as pods,
    0 as part,
    '' as name
from asked_shape
inner join pool on asked_shape.cluster = pool.cluster
where asked_shape.submitted_ms < $as_of_ms and asked_shape.submitted_ms >= $as_of_ms - 604800000
group by pool.cluster, pool.gpu_model, asked_shape.resource, asked_shape.devices
"""


@dataclass(slots=True)
class Pool:
    """
    One pool at an instant; devices by node and resource.

    `replicas` are the shares of a card, by which devices become micro-GPU. `held` are the pods on
    nodes that take new ones, with their service class.
    """

    model: str
    capacity: dict[Place, int] = field(default_factory=dict)
    replicas: dict[Place, int] = field(default_factory=dict)
    inventory: Inventory = field(default_factory=Inventory)
    held: list[tuple[str, Movable]] = field(default_factory=list)
    waiting: tuple[Ask, ...] = ()
    asked: dict[Shape, int] = field(default_factory=dict)

    def micro(self, place: Place, devices: int) -> int | None:
        """Micro-GPU of so many devices there; None where the card is unknown."""
        return micro_gpus({place[1]: devices}, product=self.model, replicas=self.replicas[place])

    @property
    def resources(self) -> frozenset[str]:
        """GPU resources that its nodes offer."""
        return frozenset(resource for _, resource in self.capacity)

    @property
    def usual(self) -> dict[Shape, int]:
        """Pods per shape asked in the last 7 days, of the resources that the pool offers."""
        return {shape: pods for shape, pods in self.asked.items() if shape[0] in self.resources}


def pools(rows: Sequence[Row]) -> Iterator[tuple[dict[str, str], Pool]]:
    """Each pool with its labels, from the rows of `INVENTORY`."""
    for labels, members in grouped(rows, POOL):
        pool = Pool(model=labels["gpu_model"])
        _take_nodes(pool, members)
        parts: dict[str, dict[int, tuple[int, dict[str, int]]]] = {}
        for row in members:
            resource, devices = str(row["resource"]), whole(row, "devices")
            if row["what"] == "asked":
                pool.asked[resource, devices] = whole(row, "pods")
            elif row["what"] == "waiting":
                by_part = parts.setdefault(str(row["name"]), {})
                pods, asked = by_part.setdefault(whole(row, "part"), (whole(row, "pods"), {}))
                by_part[whole(row, "part")] = (max(pods, whole(row, "pods")), {**asked, resource: devices})
        pool.waiting = tuple(
            Ask(parts=tuple(Part(pods=pods, devices=asked) for pods, asked in by_part.values() if pods))
            for by_part in parts.values()
        )
        yield labels, pool


def _take_nodes(pool: Pool, members: Sequence[Row]) -> None:
    free: dict[str, dict[str, int]] = {}
    for row in members:
        place = str(row["node"]), str(row["resource"])
        if row["what"] == "node":
            pool.capacity[place] = whole(row, "capacity")
            pool.replicas[place] = whole(row, "replicas")
            free.setdefault(place[0], {})[place[1]] = whole(row, "devices")
    for row in members:
        if row["what"] == "held":
            node, resource = str(row["node"]), str(row["resource"])
            devices = whole(row, "devices")
            free[node][resource] -= devices
            if whole(row, "part"):
                pool.held.append((str(row["name"]), Movable(node=node, devices={resource: devices})))
    pool.inventory = Inventory(
        {node: {name: max(count, 0) for name, count in devices.items()} for node, devices in free.items()}
    )


def summed_gpus(value: Callable[[Pool, Question], Mapping[Place, int | None]]) -> Compute:
    """A `compute` that sums micro-GPU by node and resource; None in it makes a lower bound."""

    def compute(rows: Sequence[Row], ask: Question) -> list[Sample]:
        parts: list[Row] = [
            {**labels, "node": node, "value": micro}
            for labels, pool in pools(rows)
            for (node, _), micro in value(pool, ask).items()
        ]
        samples = []
        for labels, members in grouped(parts, ask.by):
            known = [whole(row, "value") for row in members if row["value"] is not None]
            samples.append(
                Sample(labels=labels, value=sum(known) / MICRO_PER_GPU, lower_bound=len(known) < len(members))
            )
        return samples or [Sample.undefined({}, NOTHING_OBSERVED)]

    return compute
