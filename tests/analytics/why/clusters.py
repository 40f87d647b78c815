"""Small clusters in plain words, and every way to place a gang on them: what the searches must agree with."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product

from hypothesis import strategies as st

from analytics.why.nodes import Gang, Hold, Node, NodeStock, PodSet
from domain.placement import Placement, Rule, Toleration

GPU, SLICE, CPU, MEMORY = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb", "cpu", "memory"
TAINTS = ("pool=h100:NoSchedule", "spot=yes:NoExecute")


@dataclass(frozen=True, kw_only=True)
class Machine:
    """
    A node: devices of each kind, what holders have of them, and CPUs and memory; None where not known.

    With each device its holder has `beside` CPUs and as much memory. Others have `cpus_held`, `memory_held`.
    """

    name: str
    zone: str
    model: str
    taints: frozenset[str]
    up: bool
    devices: Mapping[str, int]
    held: tuple[tuple[str, str, int], ...]
    cpus: int | None
    cpus_held: int
    memory: int | None = None
    memory_held: int = 0
    beside: int = 0

    def free(self) -> dict[str, int]:
        left = dict(self.devices)
        for _, resource, count in self.held:
            left[resource] -= count
        beside = self.beside * sum(count for _, _, count in self.held)
        if self.cpus is not None:
            left[CPU] = self.cpus - self.cpus_held - beside
        if self.memory is not None:
            left[MEMORY] = self.memory - self.memory_held - beside
        return left

    def others(self) -> dict[str, int]:
        has = {CPU: self.cpus, MEMORY: self.memory}
        return {name: count for name, count in has.items() if count is not None}

    def emptied(self) -> "Machine":
        return replace(self, held=(), cpus_held=0, memory_held=0)

    def without(self, uids: set[str]) -> "Machine":
        return replace(self, held=tuple(hold for hold in self.held if hold[0] not in uids))


@dataclass(frozen=True, kw_only=True)
class Want:
    """
    Pods that ask alike. `zones` is a required affinity, None for none.

    `flavors` are models to one of which all of them must go; none is any.
    """

    pods: int
    devices: Mapping[str, int]
    cpus: int = 0
    memory: int = 0
    model: str = ""
    zones: tuple[str, ...] | None = None
    bears: frozenset[str] = frozenset()
    flavors: tuple[str, ...] = ()

    def one_flavor(self) -> Iterator["Want"]:
        """The same pods, bound for each of the flavors."""
        for flavor in self.flavors:
            yield replace(self, flavors=(flavor,))
        if not self.flavors:
            yield self

    def takes(self, machine: Machine) -> bool:
        return (
            machine.up
            and (not self.flavors or machine.model in self.flavors)
            and self.model in ("", machine.model)
            and (self.zones is None or machine.zone in self.zones)
            and machine.taints <= self.bears
        )

    def asks(self) -> dict[str, int]:
        return {**self.devices, **self.others()}

    def others(self) -> dict[str, int]:
        asks = {CPU: self.cpus, MEMORY: self.memory}
        return {name: count for name, count in asks.items() if count}


@dataclass(frozen=True, kw_only=True)
class Scene:
    """Machines and a gang that waits; `one_zone`: all its pods must stand in one zone."""

    machines: tuple[Machine, ...]
    wants: tuple[Want, ...]
    one_zone: bool = False

    def changed(self, **of_wants: object) -> "Scene":
        return replace(self, wants=tuple(replace(want, **of_wants) for want in self.wants))  # type: ignore[arg-type]

    def bearing(self, taints: frozenset[str]) -> "Scene":
        return replace(self, wants=tuple(replace(want, bears=want.bears | taints) for want in self.wants))

    def up(self, names: set[str] | None = None) -> "Scene":
        found = (replace(m, up=m.up or names is None or m.name in names) for m in self.machines)
        return replace(self, machines=tuple(found))

    def emptied(self) -> "Scene":
        return replace(self, machines=tuple(machine.emptied() for machine in self.machines))

    def after(self, uids: set[str]) -> "Scene":
        return replace(self, machines=tuple(machine.without(uids) for machine in self.machines))

    def places(self) -> bool:
        """Whether some way to put every pod on some machine works: all are tried."""
        free = [machine.free() for machine in self.machines]
        return any(
            True
            for wants in product(*(want.one_flavor() for want in self.wants))
            for _ in self._ways([want for want in wants for _ in range(want.pods)], free, None)
        )

    def _ways(self, pods: list[Want], free: list[dict[str, int]], zone: str | None) -> Iterator[None]:
        if not pods:
            yield
            return
        for machine, left in zip(self.machines, free, strict=True):
            apart = self.one_zone and zone is not None and machine.zone != zone
            asks = pods[0].asks()
            if apart or not pods[0].takes(machine) or any(left.get(n, _rest(n)) < c for n, c in asks.items()):
                continue
            for name, count in asks.items():
                left[name] = left.get(name, _rest(name)) - count
            yield from self._ways(pods[1:], free, machine.zone)
            for name, count in asks.items():
                left[name] += count

    # What the product is given.

    def stock(self) -> NodeStock:
        nodes = [
            Node(
                name=m.name,
                labels={"zone": m.zone, "model": m.model, "kubernetes.io/hostname": m.name},
                taints=tuple(sorted(m.taints)),
                allocatable=m.devices,
                capacity=m.devices,
                free={name: count for name, count in m.free().items() if name in m.devices},
                schedulable=m.up,
                others=m.others(),
                others_free={name: count for name, count in m.free().items() if name in m.others()},
            )
            for m in self.machines
        ]
        holds = [
            Hold(
                workload_uid=uid,
                node=m.name,
                devices={resource: count},
                others={CPU: count * m.beside, MEMORY: count * m.beside},
            )
            for m in self.machines
            for uid, resource, count in m.held
        ]
        return NodeStock(nodes, holds)

    def gang(self) -> Gang:
        sets = tuple(
            PodSet(
                pods=want.pods,
                devices=want.devices,
                others=want.others(),
                placement=Placement(
                    labels={"model": want.model} if want.model else {},
                    terms=()
                    if want.zones is None
                    else ((Rule(key="zone", operator="In", values=want.zones),),),
                    tolerations=tuple(map(toleration, sorted(want.bears))),
                ),
                flavors=tuple(Placement(labels={"model": model}) for model in want.flavors),
            )
            for want in self.wants
        )
        return Gang(pod_sets=sets, same_domain="zone" if self.one_zone else "")


def _rest(name: str) -> int:
    """What a machine has of a resource that it says nothing of: CPUs for everybody, devices for nobody."""
    return 1000 if name in {CPU, MEMORY} else 0


def toleration(taint: str) -> Toleration:
    key, _, rest = taint.partition("=")
    value, _, effect = rest.partition(":")
    return Toleration(key=key, operator="Equal", value=value, effect=effect)


@st.composite
def machines(draw: st.DrawFn, name: str) -> Machine:
    gpus, slices = draw(st.sampled_from([0, 2, 4, 4, 8])), draw(st.sampled_from([0, 0, 2]))
    held, left = [], gpus
    for _ in range(draw(st.integers(0, 3))):
        count = draw(st.integers(1, 4))
        if count <= left:
            held.append((draw(st.sampled_from(["h1", "h2", "h3", "h4"])), GPU, count))
            left -= count
    if slices and draw(st.booleans()):
        held.append(("h5", SLICE, 1))
    beside = draw(st.sampled_from([0, 0, 1]))
    taken = beside * sum(count for _, _, count in held)
    cpus, memory = draw(st.sampled_from([None, 4, 8])), draw(st.sampled_from([None, None, 6, 8]))
    if min(cpus or taken, memory or taken) < taken:
        beside = taken = 0
    return Machine(
        name=name,
        zone=draw(st.sampled_from(["a", "a", "b"])),
        model=draw(st.sampled_from(["a100", "a100", "h100"])),
        taints=frozenset(draw(st.sampled_from([(), (), (), TAINTS[:1], TAINTS[1:], TAINTS]))),
        up=draw(st.sampled_from([True, True, True, False])),
        devices={GPU: gpus, SLICE: slices},
        held=tuple(held),
        cpus=cpus,
        cpus_held=0 if cpus is None else draw(st.integers(0, cpus - taken)),
        memory=memory,
        memory_held=0 if memory is None else draw(st.sampled_from([0, memory - taken])),
        beside=beside,
    )


@st.composite
def wants(draw: st.DrawFn) -> Want:
    devices = draw(
        st.sampled_from([{GPU: 1}, {GPU: 2}, {GPU: 4}, {GPU: 8}, {SLICE: 1}, {GPU: 1, SLICE: 1}, {}])
    )
    return Want(
        pods=draw(st.integers(1, 3)),
        devices=devices,
        cpus=draw(st.sampled_from([0, 0, 2, 4, 4])),
        memory=draw(st.sampled_from([0, 0, 3])),
        model=draw(st.sampled_from(["", "", "", "a100", "h100", "h200"])),
        zones=draw(st.sampled_from([None, None, None, ("a",), ("b",), ("b", "c")])),
        bears=frozenset(draw(st.sampled_from([(), (), TAINTS[:1], TAINTS]))),
        flavors=draw(st.sampled_from([(), (), (), ("a100",), ("a100", "h100"), ("h100", "t4")])),
    )


@st.composite
def scenes(draw: st.DrawFn) -> Scene:
    return Scene(
        machines=tuple(draw(machines(f"n{number}")) for number in range(draw(st.integers(1, 4)))),
        wants=tuple(draw(wants()) for _ in range(draw(st.sampled_from([1, 1, 2])))),
        one_zone=draw(st.sampled_from([False, False, True])),
    )
