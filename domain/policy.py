"""Every threshold of the product, named, with its unit and its default."""

from dataclasses import dataclass, field
from datetime import timedelta

from domain.errors import PolicyError
from domain.facts import ObjectKind
from domain.workload import ServiceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a service class was promised: p99 and starvation stay below `wait`; alert window."""

    wait: timedelta
    window: timedelta


def _targets() -> dict[ServiceClass, Target]:
    day = timedelta(hours=24)
    return {
        ServiceClass.INTERACTIVE: Target(wait=timedelta(minutes=5), window=timedelta(hours=6)),
        ServiceClass.BATCH: Target(wait=timedelta(minutes=60), window=day),
        ServiceClass.BEST_EFFORT: Target(wait=timedelta(hours=24), window=day),
        ServiceClass.UNCLASSIFIED: Target(wait=timedelta(minutes=60), window=day),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """
    The thresholds. Lengths are timedelta; numbers say their unit.

    Raises:
        PolicyError: a length that must be positive is not.
    """

    targets: dict[ServiceClass, Target] = field(default_factory=_targets)
    window: timedelta = timedelta(hours=24)
    few_below: int = 5
    skew_tolerated: timedelta = timedelta(seconds=60)
    phantom_reservation_after: timedelta = timedelta(minutes=30)
    cumulative_wait_factor: int = 3
    source_stale_after: timedelta = timedelta(minutes=3)
    # No bookmarks come for Events: a quiet watch is known good only when it ends, after 5 to 10 minutes.
    event_source_stale_after: timedelta = timedelta(minutes=15)

    def __post_init__(self) -> None:
        lengths = {f"targets.{name}": target.wait for name, target in self.targets.items()}
        named = ("window", "phantom_reservation_after", "source_stale_after", "event_source_stale_after")
        lengths |= {name: getattr(self, name) for name in named}
        for name, length in lengths.items():
            if length <= timedelta():
                message = f"policy.{name} = {length}: expected a positive length, for example 5m"
                raise PolicyError(message)

    def stale_after(self, kind: str) -> timedelta:
        """
        How long after its last good reading a kind of object counts as stale.

        >>> Policy().stale_after("Pod") < Policy().stale_after("Event")
        True
        """
        return self.event_source_stale_after if kind == ObjectKind.EVENT else self.source_stale_after
