"""The nodes' devices: which are free, which pod has which, and where the next one would go."""

from dataclasses import dataclass, field
from random import Random
from uuid import UUID

from sample_data.fortnight.site import Flavor, Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """A card, an instance of one, or a time-slice: slices of one card share its `uuid`."""

    node: str
    flavor: str
    resource: str
    uuid: str
    index: int
    instance: str = ""
    profile: str = ""
    slice_number: int = 0


@dataclass(slots=True)
class Machines:
    """Free devices by node and resource; a device is never given out twice."""

    site: Site
    devices: list[Device] = field(default_factory=list)
    free: dict[tuple[str, str], list[Device]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    broken: set[Device] = field(default_factory=set)

    @classmethod
    def of(cls, site: Site, rng: Random) -> "Machines":
        """All devices of the site, free."""
        machines = cls(site)
        for flavor in site.flavors.values():
            for node in flavor.nodes:
                found = _devices(flavor, node, rng)
                machines.devices += found
                for device in found:
                    machines.free.setdefault((node, device.resource), []).append(device)
        return machines

    def place(self, flavor: Flavor, resource: str, count: int) -> list[Device] | None:
        """Devices of the fullest open node that has enough, or None; takes them."""
        fitting = [
            node
            for node in flavor.nodes
            if node not in self.closed and len(self.free.get((node, resource), ())) >= count
        ]
        if not fitting:
            return None
        node = min(fitting, key=lambda name: (len(self.free[name, resource]), name))
        # Time-slices are spread over the cards, as the device plugin does it; others go in order.
        free = sorted(self.free[node, resource], key=lambda device: (device.slice_number, device.index))
        chosen = free[:count]
        for device in chosen:
            self.free[node, resource].remove(device)
        return chosen

    def release(self, devices: list[Device]) -> None:
        """Give devices back; those of a broken card stay out."""
        for device in devices:
            if device not in self.broken and (device.node, device.resource) in self.free:
                self.free[device.node, device.resource].append(device)

    def lose(self, node: str) -> None:
        """The node is gone for good."""
        self.closed.add(node)
        for key in [key for key in self.free if key[0] == node]:
            del self.free[key]

    def refusal(self, flavor: Flavor, resource: str) -> str:
        """What the scheduler says of a pod that fits nowhere."""
        total = self.site.node_count()
        closed = sum(node in self.closed for node in flavor.nodes)
        reasons = [f"{len(flavor.nodes) - closed} Insufficient {resource}"]
        reasons += [f"{closed} node(s) were unschedulable"] if closed else []
        reasons += [f"{total - len(flavor.nodes)} node(s) didn't match Pod's node affinity/selector"]
        return (
            f"0/{total} nodes are available: {', '.join(sorted(reasons))}. "
            "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        )


def _devices(flavor: Flavor, node: str, rng: Random) -> list[Device]:
    found: list[Device] = []
    card = 0
    for carving in flavor.carvings:
        for _ in range(carving.cards):
            uuid = f"GPU-{UUID(int=rng.getrandbits(128), version=4)}"
            found += [
                Device(
                    node=node,
                    flavor=flavor.name,
                    resource=carving.resource,
                    uuid=uuid,
                    index=card,
                    instance=str(_instance(carving.profile, part)) if carving.profile else "",
                    profile=carving.profile,
                    slice_number=0 if carving.profile else part,
                )
                for part in range(carving.parts)
            ]
            card += 1
    return found


def _instance(profile: str, part: int) -> int:
    """The id that the driver gives: the large instances are 1 and 2, the small ones 7 to 13."""
    return part + 7 if profile.startswith("1g") else part + 1
