"""The rows behind the figures of fragmentation, and the pools that they make up."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from analytics.evaluate import NOTHING_OBSERVED, grouped, once, whole
from analytics.fragmentation.beside import ASK_NO_GPU, WHO_IS_LATE
from analytics.fragmentation.inventory import Ask, Inventory, Part, Place
from analytics.fragmentation.places import allows
from analytics.fragmentation.repack import Movable
from analytics.fragmentation.waste import Shape
from domain.metric import Ask as Question
from domain.metric import Compute, Row, Sample
from domain.quantity import MICRO_PER_GPU, micro_gpus

# What a pool is: the GPUs of one model in one cluster.
POOL = ("cluster", "gpu_model")
DIMENSIONS = (*POOL, "node")

# The shapes of the last 7 days, 604,800,000 ms, are those that definitions name.
INVENTORY = f"""\
-- One row per node and GPU resource just before $as_of_ms (what = 'node'), per pod on it ('held'), and
-- per pool and part of a workload that waits ('waiting'), or pod shape asked in the last 7 days ('asked').
-- bound: pods of a waiting workload that ask the same and have their node already. flavor: the one that
-- Kueue gave it. what = 'flavor': where the workloads of a queue may go for a resource; 'late', 'room' and
-- 'plain' are told of below.
with standing as (
    select * from node_device
    where start_ms < $as_of_ms and coalesce(end_ms >= $as_of_ms, true)
),

bound as (
    select * from device_holding
    where
        bound_ms < $as_of_ms and coalesce(released_ms >= $as_of_ms, true) and open_until_ms >= $as_of_ms
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
    coalesce(nullif(product, ''), gpu_model) as product,
    replicas,
    capacity,
    case when schedulable then allocatable else 0 end as devices,
    0 as pods,
    0 as bound,
    0 as part,
    '' as name,
    labels,
    taints,
    '' as wants,
    '' as queue,
    '' as flavor
from standing
union all
select
    'held' as what,
    standing.cluster,
    standing.gpu_model,
    standing.node,
    standing.resource,
    '' as product,
    standing.replicas,
    0 as capacity,
    bound.devices,
    1 as pods,
    0 as bound,
    case when standing.schedulable then 1 else 0 end as part,
    bound.service_class as name,
    '' as labels,
    '' as taints,
    bound.wants,
    '' as queue,
    '' as flavor
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
    '' as product,
    1 as replicas,
    0 as capacity,
    waiting_ask.devices,
    waiting_ask.pods,
    (
        select count(*) from bound
        where
            bound.cluster = waiting_ask.cluster
            and bound.workload_uid = waiting_ask.workload_uid
            and bound.resource = waiting_ask.resource
            and bound.devices = waiting_ask.devices
    ) as bound,
    waiting_ask.part,
    waiting_ask.workload_uid as name,
    '' as labels,
    '' as taints,
    waiting_ask.wants,
    waiting_ask.queue,
    coalesce(
        (
            select max(gpu_reservation.flavor) from gpu_reservation
            where
                gpu_reservation.cluster = waiting_ask.cluster
                and gpu_reservation.workload_uid = waiting_ask.workload_uid
                and gpu_reservation.start_ms < $as_of_ms
                and coalesce(gpu_reservation.end_ms >= $as_of_ms, true)
                and gpu_reservation.open_until_ms >= $as_of_ms
        ),
        ''
    ) as flavor
from waiting_ask
inner join pool on waiting_ask.cluster = pool.cluster
where
    waiting_ask.start_ms < $as_of_ms
    and coalesce(waiting_ask.end_ms >= $as_of_ms, true)
    and waiting_ask.open_until_ms >= $as_of_ms
union all
select
    'asked' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    asked_shape.resource,
    '' as product,
    1 as replicas,
    0 as capacity,
    asked_shape.devices,
    sum(asked_shape.pods) as pods,
    0 as bound,
    0 as part,
    '' as name,
    '' as labels,
    '' as taints,
    '' as wants,
    '' as queue,
    '' as flavor
from asked_shape
inner join pool on asked_shape.cluster = pool.cluster
where
    asked_shape.submitted_ms < $as_of_ms
    and asked_shape.submitted_ms >= $as_of_ms - 604800000
    and asked_shape.open_until_ms >= $as_of_ms - 604800000
group by pool.cluster, pool.gpu_model, asked_shape.resource, asked_shape.devices
union all
select
    'flavor' as what,
    pool.cluster,
    pool.gpu_model,
    '' as node,
    offered_flavor.resource,
    '' as product,
    1 as replicas,
    0 as capacity,
    0 as devices,
    0 as pods,
    0 as bound,
    0 as part,
    '' as name,
    '' as labels,
    '' as taints,
    offered_flavor.wants,
    offered_flavor.queue,
    offered_flavor.flavor
from offered_flavor
inner join pool on offered_flavor.cluster = pool.cluster
where offered_flavor.start_ms < $as_of_ms and coalesce(offered_flavor.end_ms >= $as_of_ms, true)
{WHO_IS_LATE}{ASK_NO_GPU}"""  # noqa: S608 (ours)


# The columns of a row of what waits on which it depends what is wanted.
_WANTED: Final = ("part", "resource", "devices", "pods", "bound", "wants", "queue", "flavor")


@dataclass(slots=True)
class _Standing:
    """
    The nodes of a pool: what each says of itself, and which of them a pod may use.

    `flavors` are what a queue's flavors for a resource want of nodes, by flavor.
    """

    said: dict[str, tuple[str, str]] = field(default_factory=dict)
    flavors: dict[tuple[str, str], dict[str, str]] = field(default_factory=dict)
    _allowed: dict[tuple[str, str], frozenset[str]] = field(default_factory=dict)

    def allowed(self, wants: str, of_flavor: str = "") -> frozenset[str]:
        """Nodes on which pods that want this may stand, and that are of the flavor."""
        if (wants, of_flavor) not in self._allowed:
            found = (node for node, said in self.said.items() if allows(wants, of_flavor, node, *said))
            self._allowed[wants, of_flavor] = frozenset(found)
        return self._allowed[wants, of_flavor]

    def open_to(self, row: Row, through: str = "") -> frozenset[str]:
        """
        Nodes on which pods of a waiting workload may stand, by its queue's flavors where it has any.

        `through` is the only flavor to look at; without it all, or the one that it was given.
        """
        wants, given = str(row["wants"]), through or str(row["flavor"])
        flavors = self.flavors.get((str(row["queue"]), str(row["resource"])))
        if flavors is None:
            return self.allowed(wants)
        chosen = {given: flavors[given]} if given in flavors else flavors
        return frozenset().union(*(self.allowed(wants, of_flavor) for of_flavor in chosen.values()))


@dataclass(slots=True)
class Pool:
    """
    One pool at an instant; devices by node and resource.

    `cuts` are the product and the shares of a card, by which devices become micro-GPU. `held` are the
    pods on nodes that take new ones, with their service class. `asks` is what waits, by workload.
    `plain`: pods asked in the last 7 days that want no GPU,
    by the minimum members of their workloads.
    """

    capacity: dict[Place, int] = field(default_factory=dict)
    cuts: dict[Place, tuple[str, int]] = field(default_factory=dict)
    inventory: Inventory = field(default_factory=Inventory)
    held: list[tuple[str, Movable]] = field(default_factory=list)
    asks: dict[str, Ask] = field(default_factory=dict)
    asked: dict[Shape, int] = field(default_factory=dict)
    plain: int = 0
    standing: _Standing = field(default_factory=_Standing)
    waiting_rows: dict[str, list[Row]] = field(default_factory=dict)

    def flavors_of(self, uid: str) -> tuple[str, ...]:
        """The flavors through which a workload that waits may come here; '' where its queue has none."""
        return _flavors(self.waiting_rows[uid], self.standing) if uid in self.asks else ()

    def ask_through(self, uid: str, flavor: str) -> Ask | None:
        """What is wanted of a workload on the nodes of one flavor; None where it may stand on none."""
        return _ask(self.waiting_rows[uid], self.standing, flavor)

    def micro(self, place: Place, devices: int) -> int | None:
        """Micro-GPU of so many devices there; None where the card is unknown."""
        return _micro(place[1], devices, *self.cuts[place])

    @property
    def waiting(self) -> tuple[Ask, ...]:
        """What waits, whose it is left out."""
        return tuple(self.asks.values())

    @property
    def resources(self) -> frozenset[str]:
        """GPU resources that its nodes offer."""
        return frozenset(resource for _, resource in self.capacity)

    @property
    def usual(self) -> dict[Shape, int]:
        """Pods per shape asked in the last 7 days, of the resources that the pool offers."""
        return {shape: pods for shape, pods in self.asked.items() if shape[0] in self.resources}


@lru_cache(maxsize=4096)
def _micro(resource: str, devices: int, product: str, replicas: int) -> int | None:
    """Of a thousand nodes most are alike."""
    return micro_gpus({resource: devices}, product=product, replicas=replicas)


def pools(rows: Sequence[Row]) -> Iterator[tuple[dict[str, str], Pool]]:
    """Each pool with its labels, from the rows of `INVENTORY`; nobody may change it."""
    return iter(once(rows, _pools))


def _pools(rows: Sequence[Row]) -> list[tuple[dict[str, str], Pool]]:
    found = []
    for labels, members in grouped(rows, POOL):
        pool = Pool()
        standing, waiting = pool.standing, pool.waiting_rows
        _take_nodes(pool, standing, members)
        for row in members:
            if row["what"] == "asked":
                pool.asked[str(row["resource"]), whole(row, "devices")] = whole(row, "pods")
            elif row["what"] == "plain":
                pool.plain = whole(row, "pods")
            elif row["what"] == "waiting":
                waiting.setdefault(str(row["name"]), []).append(row)
            elif row["what"] == "flavor":
                door = standing.flavors.setdefault((str(row["queue"]), str(row["resource"])), {})
                door[str(row["flavor"])] = str(row["wants"])
        # Most of those that wait ask alike.
        alike: dict[tuple[object, ...], Ask | None] = {}
        for uid, of_workload in waiting.items():
            wanted = tuple(row[name] for row in of_workload for name in _WANTED)
            if wanted not in alike:
                alike[wanted] = _ask(of_workload, standing)
            if (ask := alike[wanted]) is not None:
                pool.asks[uid] = ask
        found.append((labels, pool))
    return found


def _flavors(rows: Sequence[Row], standing: _Standing) -> tuple[str, ...]:
    """The flavors with quota for all that a workload asks, and nodes here for each of its parts."""
    doors = [standing.flavors.get((str(row["queue"]), str(row["resource"]))) for row in rows]
    offered = [set(door) for door in doors if door is not None]
    if not offered:
        return ("",)
    common = set.intersection(*offered) if len(offered) == len(doors) else set()
    return tuple(sorted(f for f in common if all(standing.open_to(row, f) for row in rows)))


def _ask(rows: Sequence[Row], standing: _Standing, through: str = "") -> Ask | None:
    """
    What is still wanted of a workload here; None where its pods may stand on no node of the pool.

    Pods that are bound count off the parts that ask the same, one part after the other.
    """
    parts: dict[int, tuple[int, dict[str, int], frozenset[str]]] = {}
    bound: dict[tuple[str, int], int] = {}
    for row in sorted(rows, key=lambda each: whole(each, "part")):
        shape = str(row["resource"]), whole(row, "devices")
        left = bound.setdefault(shape, whole(row, "bound"))
        gone = min(left, whole(row, "pods"))
        bound[shape] = left - gone
        number, pods = whole(row, "part"), whole(row, "pods") - gone
        open_to = standing.open_to(row, through)
        before, asked, nodes = parts.get(number, (0, {}, open_to))
        nodes &= open_to
        parts[number] = (max(before, pods), {**asked, shape[0]: shape[1]}, nodes)
    wanted = tuple(
        Part(pods=pods, devices=asked, nodes=nodes) for pods, asked, nodes in parts.values() if pods and nodes
    )
    return Ask(parts=wanted) if wanted else None


def _take_nodes(pool: Pool, standing: _Standing, members: Sequence[Row]) -> None:
    free: dict[str, dict[str, int]] = {}
    for row in members:
        place = str(row["node"]), str(row["resource"])
        if row["what"] == "node":
            pool.capacity[place] = whole(row, "capacity")
            pool.cuts[place] = str(row["product"]), whole(row, "replicas")
            free.setdefault(place[0], {})[place[1]] = whole(row, "devices")
            standing.said[place[0]] = str(row["labels"]), str(row["taints"])
    for row in members:
        if row["what"] == "held":
            node, resource = str(row["node"]), str(row["resource"])
            devices = whole(row, "devices")
            free[node][resource] -= devices
            if whole(row, "part"):
                # It stands where it is, whatever its node says by now.
                nodes = standing.allowed(str(row["wants"]))
                nodes = nodes if node in nodes else nodes | {node}
                movable = Movable(node=node, devices={resource: devices}, nodes=nodes)
                pool.held.append((str(row["name"]), movable))
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
