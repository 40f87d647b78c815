"""The nodes' devices: who holds what, and where a pod would go."""

from dataclasses import dataclass, field

from sample_data.site import FLAVORS, Flavor


@dataclass(slots=True)
class Machines:
    """Free devices by node; a node is never given out twice."""

    free: dict[str, int] = field(default_factory=dict)
    cordoned: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.free = {node: flavor.devices for flavor in FLAVORS.values() for node in flavor.nodes}

    def place(self, flavor: Flavor, devices: int) -> str | None:
        """The fullest schedulable node with enough free devices, or None; takes them."""
        fitting = [node for node in flavor.nodes if node not in self.cordoned and self.free[node] >= devices]
        if not fitting:
            return None
        node = min(fitting, key=lambda name: (self.free[name], name))
        self.free[node] -= devices
        return node

    def release(self, node: str, devices: int) -> None:
        """Give devices of a node back."""
        self.free[node] += devices

    def refusal(self, flavor: Flavor) -> str:
        """What the scheduler says of a pod that fits nowhere."""
        others = len(self.free) - len(flavor.nodes)
        cordoned = sum(node in self.cordoned for node in flavor.nodes)
        reasons = [f"{len(flavor.nodes) - cordoned} Insufficient {flavor.resource}"]
        reasons += [f"{cordoned} node(s) were unschedulable"] if cordoned else []
        reasons += [f"{others} node(s) didn't match Pod's node affinity/selector"]
        return (
            f"0/{len(self.free)} nodes are available: {', '.join(sorted(reasons))}. "
            "no new claims to deallocate, preemption: not eligible due to preemptionPolicy=Never."
        )
