"""What stands there: nodes and their cards, flavors, a tree of cohorts, queues, namespaces, users."""

from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from typing import TypeAlias

GPU = "nvidia.com/gpu"
SHARED_GPU = "nvidia.com/gpu.shared"
MIG_SMALL = "nvidia.com/mig-1g.10gb"
MIG_LARGE = "nvidia.com/mig-3g.40gb"
ROOT = "company"

Kind: TypeAlias = tuple[str, str]
"""A flavor and a resource: what quota is written for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Carving:
    """Cards that are cut alike: `parts` devices of one resource from each, each that `share` of a card."""

    resource: str
    cards: int
    parts: int = 1
    share: Fraction = Fraction(1)
    profile: str = ""

    @property
    def gpus(self) -> Fraction:
        """What all its devices are together; less than its cards where slices are left over."""
        return self.cards * self.parts * self.share


@dataclass(frozen=True, slots=True, kw_only=True)
class Flavor:
    """One kind of node: how many, the cards in each, and how they are cut."""

    name: str
    product: str
    model_name: str
    memory_mib: int
    nodes: tuple[str, ...]
    carvings: tuple[Carving, ...]

    @property
    def cards(self) -> int:
        """Physical GPUs of a node."""
        return sum(carving.cards for carving in self.carvings)

    def devices(self) -> dict[str, int]:
        """What a node offers, by resource."""
        return {carving.resource: carving.cards * carving.parts for carving in self.carvings}

    def micro_gpus(self, resource: str) -> int:
        """One device of that name, rounded down."""
        return int(1_000_000 * next(one.share for one in self.carvings if one.resource == resource))


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A quota, devices, and what may be borrowed above it and lent of it; None is no limit."""

    nominal: int
    borrowing: int | None = None
    lending: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cohort:
    """A node of the tree of cohorts; the root has no parent."""

    name: str
    parent: str = ""
    quotas: dict[Kind, Limit]


class Reclaim(StrEnum):
    """Whom a queue may throw out to get back what it lent (`reclaimWithinCohort`)."""

    NEVER = "Never"
    LOWER_PRIORITY = "LowerPriority"
    ANY = "Any"


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """A ClusterQueue, called after its team."""

    name: str
    cohort: str
    quotas: dict[Kind, Limit]
    reclaims: Reclaim = Reclaim.LOWER_PRIORITY
    preempts_own: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """Everything that stands there. `spaces` are namespaces with their team and queue, or none."""

    flavors: dict[str, Flavor]
    cohorts: tuple[Cohort, ...]
    queues: tuple[Queue, ...]
    spaces: dict[str, tuple[str, str]]
    users: dict[str, tuple[str, ...]]

    def kinds(self) -> tuple[Kind, ...]:
        """All flavors with quota, by resource."""
        return tuple(dict.fromkeys(kind for queue in self.queues for kind in queue.quotas))

    def node_count(self) -> int:
        """Nodes of all flavors."""
        return sum(len(flavor.nodes) for flavor in self.flavors.values())


PRIORITIES = {"interactive": 100_000, "training": 50_000, "batch": 10_000, "best-effort": 1_000}
SERVICE_CLASSES = {
    "interactive": "interactive",
    "training": "batch",
    "batch": "batch",
    "best-effort": "best_effort",
}
QUEUED_TEAMS = ("vision", "nlp", "speech", "ads", "robotics")
_USERS = {
    "vision": ("ana", "bo", "chen", "dara"),
    "nlp": ("emil", "fatima", "goran", "hye"),
    "speech": ("ilse", "jun", "karim"),
    "ads": ("ines", "jonas", "kofi", "lars"),
    "robotics": ("mina", "noor"),
    "platform": ("lena",),
}
_SPACES = {
    "vision": ("vision", "vision"),
    "vision-lab": ("vision", "vision"),
    "atlas": ("vision", "vision"),
    "nlp": ("nlp", "nlp"),
    "speech": ("speech", "speech"),
    "ads": ("ads", "ads"),
    "ads-notebooks": ("ads", ""),
    "robotics": ("robotics", "robotics"),
    "platform": ("platform", ""),
}
# Parts of a flavor's devices that each team owns; the rest is for pods outside of Kueue.
_PARTS = {
    ("a100", GPU): {"vision": 36, "nlp": 30, "speech": 24, "ads": 30, "robotics": 8, "of": 144},
    ("h100", GPU): {"vision": 16, "nlp": 16, "speech": 8, "ads": 0, "robotics": 8, "of": 64},
    ("l40s", SHARED_GPU): {"vision": 16, "nlp": 16, "speech": 12, "ads": 24, "robotics": 12, "of": 96},
    ("mig", MIG_SMALL): {"vision": 10, "nlp": 10, "speech": 6, "ads": 8, "robotics": 6, "of": 42},
}
_OWN_OF_ROOT = 8
_COHORT_OF = {"vision": "research", "nlp": "research", "speech": "research", "ads": "product"}


def fortnight_site() -> Site:
    """Thirty-two nodes."""
    return _site(a100=18, h100=8, l40s=4, mig=2)


def little_site() -> Site:
    """Eight nodes, with the same queues in proportion."""
    return _site(a100=4, h100=2, l40s=1, mig=1)


def _site(*, a100: int, h100: int, l40s: int, mig: int) -> Site:
    flavors = _flavors(a100=a100, h100=h100, l40s=l40s, mig=mig)
    whole_of_root = _OWN_OF_ROOT * h100 // 8
    cohorts = (
        Cohort(name=ROOT, quotas={("h100", GPU): Limit(nominal=whole_of_root)}),
        Cohort(name="research", parent=ROOT, quotas={}),
        Cohort(name="product", parent=ROOT, quotas={}),
    )
    return Site(
        flavors=flavors,
        cohorts=cohorts,
        queues=tuple(_queue(team, flavors) for team in QUEUED_TEAMS),
        spaces=_SPACES,
        users=_USERS,
    )


def _queue(team: str, flavors: dict[str, Flavor]) -> Queue:
    quotas = {}
    for kind, parts in _PARTS.items():
        flavor, resource = kind
        there = len(flavors[flavor].nodes) * flavors[flavor].devices()[resource]
        nominal = parts[team] * there // parts["of"]
        quotas[kind] = Limit(
            nominal=nominal,
            borrowing=nominal if (team, flavor) == ("ads", "a100") else None,
            lending=nominal // 2 if (team, flavor) == ("robotics", "a100") else None,
        )
    return Queue(
        name=team,
        cohort=_COHORT_OF.get(team, "product"),
        quotas=quotas,
        # Speech is the starved one: it may not take back what it lent, and others run for days.
        reclaims={"speech": Reclaim.NEVER, "robotics": Reclaim.ANY}.get(team, Reclaim.LOWER_PRIORITY),
        preempts_own=team == "vision",
    )


def _flavors(*, a100: int, h100: int, l40s: int, mig: int) -> dict[str, Flavor]:
    def nodes(name: str, count: int) -> tuple[str, ...]:
        return tuple(f"{name}-{number:02d}" for number in range(1, count + 1))

    found = (
        Flavor(
            name="a100",
            product="NVIDIA-A100-SXM4-80GB",
            model_name="NVIDIA A100-SXM4-80GB",
            memory_mib=81_920,
            nodes=nodes("a100", a100),
            carvings=(Carving(resource=GPU, cards=8),),
        ),
        Flavor(
            name="h100",
            product="NVIDIA-H100-80GB-HBM3",
            model_name="NVIDIA H100 80GB HBM3",
            memory_mib=81_559,
            nodes=nodes("h100", h100),
            carvings=(Carving(resource=GPU, cards=8),),
        ),
        Flavor(
            name="l40s",
            product="NVIDIA-L40S-SHARED",
            model_name="NVIDIA L40S",
            memory_mib=46_068,
            nodes=nodes("l40s", l40s),
            carvings=(Carving(resource=SHARED_GPU, cards=4, parts=4, share=Fraction(1, 4)),),
        ),
        Flavor(
            name="mig",
            product="NVIDIA-A100-SXM4-80GB",
            model_name="NVIDIA A100-SXM4-80GB",
            memory_mib=81_920,
            nodes=nodes("mig", mig),
            carvings=(
                Carving(resource=MIG_SMALL, cards=2, parts=7, share=Fraction(1, 7), profile="1g.10gb"),
                Carving(resource=MIG_LARGE, cards=2, parts=2, share=Fraction(3, 7), profile="3g.40gb"),
            ),
        ),
    )
    return {flavor.name: flavor for flavor in found}
