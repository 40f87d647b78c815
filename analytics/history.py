"""What is known of the objects behind one workload: the input of `analytics.lifecycle`."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from domain import objects
from domain.facts import EventSighting, Moment, ObjectKind, Transition
from domain.quantity import micro_gpus

PRODUCT_LABEL = "nvidia.com/gpu.product"
REPLICAS_LABEL = "nvidia.com/gpu.replicas"
_SHARED_SUFFIXES = ("-SHARED",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Described:
    """One description of an object with its decoded body."""

    from_ms: int
    observed_ms: int
    body: objects.Body
    earliest_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class History:
    """
    All facts about one object: descriptions and transitions, each in the order of arrival.

    `created_ms` is its creationTimestamp; where that was never seen, the first sight of it.
    """

    uid: str
    kind: ObjectKind
    namespace: str
    name: str
    descriptions: tuple[Described, ...]
    transitions: tuple[Transition, ...]

    @property
    def created_ms(self) -> int:
        """When it was created, as far as anybody knows."""
        stamps = [fact.at_ms for fact in self.transitions if fact.moment is Moment.CREATED]
        sights = [described.from_ms for described in self.descriptions]
        return min(stamps or sights or [fact.at_ms for fact in self.transitions])

    @property
    def latest(self) -> objects.Body | None:
        """Its newest description."""
        return self.descriptions[-1].body if self.descriptions else None

    @property
    def original(self) -> objects.Body | None:
        """
        Its first description: what it was submitted as.

        A job from a table is told as a whole each time: what was told last, it was submitted as.
        """
        if self.kind is ObjectKind.IMPORTED_JOB:
            return self.latest
        return self.descriptions[0].body if self.descriptions else None

    def first(self, moment: Moment) -> Transition | None:
        """The earliest transition of that kind."""
        found = [fact for fact in self.transitions if fact.moment is moment]
        return min(found, key=lambda fact: fact.at_ms) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeStretch:
    """
    A node of that name in `[from_ms, gone_ms)`.

    `product` is the model as the node's label has it, with how its cards are cut; empty: as `model`.
    """

    from_ms: int
    gone_ms: int | None
    model: str
    replicas: int
    product: str = ""


def model_of(labels: Mapping[str, str]) -> str:
    """
    The GPU model of a node, without the suffixes that sharing adds; empty where no label says.

    >>> model_of({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-80GB-MIG-1g.10gb"})
    'NVIDIA-A100-SXM4-80GB'
    """
    product = labels.get(PRODUCT_LABEL, "").partition("-MIG-")[0]
    for suffix in _SHARED_SUFFIXES:
        product = product.removesuffix(suffix)
    return product


def replicas_of(labels: Mapping[str, str]) -> int:
    """
    Time-slices or MPS shares of a card; 1 where the label is missing or unreadable.

    >>> [replicas_of({REPLICAS_LABEL: text}) for text in ("4", "0", "", "²")]
    [4, 1, 1, 1]
    """
    text = labels.get(REPLICAS_LABEL, "1")
    return max(int(text), 1) if text.isdecimal() else 1


@dataclass(slots=True, kw_only=True)
class Catalog:
    """The nodes of a cluster by name: which GPU a resource unit means where."""

    nodes: dict[str, list[NodeStretch]] = field(default_factory=dict)
    shared_replicas: frozenset[int] = frozenset()

    @classmethod
    def of(cls, nodes: Iterable[History]) -> "Catalog":
        """Read the nodes' histories; a node that came back under its name is another stretch."""
        catalog = cls()
        sharing: set[int] = set()
        for node in nodes:
            gone = node.first(Moment.GONE)
            # One that never could be read has no description, and is known by its end only.
            for described, following in zip(node.descriptions, [*node.descriptions[1:], None], strict=False):
                body = described.body
                if not isinstance(body, objects.Node):
                    continue
                end = following.from_ms if following else (gone.at_ms if gone else None)
                replicas = replicas_of(body.labels)
                if "nvidia.com/gpu.shared" in body.gpu_capacity:
                    sharing.add(replicas)
                stretch = NodeStretch(
                    from_ms=described.from_ms,
                    gone_ms=end,
                    model=model_of(body.labels),
                    replicas=replicas,
                    product=body.labels.get(PRODUCT_LABEL, ""),
                )
                catalog.nodes.setdefault(node.name, []).append(stretch)
        for stretches in catalog.nodes.values():
            stretches.sort(key=lambda stretch: stretch.from_ms)
        catalog.shared_replicas = frozenset(sharing)
        return catalog

    def at(self, node: str, at_ms: int) -> NodeStretch | None:
        """The node of that name at that instant; else the next to come, else the last there was."""
        stretches = self.nodes.get(node, [])
        for stretch in stretches:
            if stretch.gone_ms is None or at_ms < stretch.gone_ms:
                return stretch
        return stretches[-1] if stretches else None

    def gone_ms(self, node: str, at_ms: int) -> int | None:
        """When the node that stood there at that instant left for good; None while it stands."""
        for stretch in self.nodes.get(node, []):
            if stretch.gone_ms is None:
                return None
            if at_ms < stretch.gone_ms and not self._goes_on(node, stretch):
                return stretch.gone_ms
        return None

    def micro_gpus(self, resources: objects.Resources, stretch: NodeStretch | None) -> int | None:
        """Micro-GPU of resources on that node, or as asked before a node is known."""
        if stretch is not None:
            return micro_gpus(resources, product=stretch.product or stretch.model, replicas=stretch.replicas)
        return (
            micro_gpus({name: count for name, count in resources.items() if name != "nvidia.com/gpu.shared"})
            if "nvidia.com/gpu.shared" not in resources
            else self._asked_shares(resources)
        )

    def _asked_shares(self, resources: objects.Resources) -> int | None:
        if len(self.shared_replicas) != 1:
            return None
        (replicas,) = self.shared_replicas
        shares = micro_gpus({"nvidia.com/gpu.shared": resources["nvidia.com/gpu.shared"]}, replicas=replicas)
        others = micro_gpus({n: c for n, c in resources.items() if n != "nvidia.com/gpu.shared"})
        return None if shares is None or others is None else shares + others

    def _goes_on(self, node: str, stretch: NodeStretch) -> bool:
        return any(other.from_ms == stretch.gone_ms for other in self.nodes[node] if other is not stretch)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkloadFacts:
    """
    The facts about one workload.

    `queueing` are its Kueue Workloads (several for slices and variants) or its PodGroup, `jobs`
    its job objects with the resource claims of its pods, `pods` all pods that were ever made for
    it. Without `pods_observed` nobody reads its pods, and admission stands for placement. With
    `pods_elsewhere` they are those of its copies in other clusters, to which MultiKueue gave it.
    """

    uid: str
    queueing: tuple[History, ...]
    jobs: tuple[History, ...]
    pods: tuple[History, ...]
    catalog: Catalog
    events: tuple[EventSighting, ...] = ()
    pods_observed: bool = True
    pods_elsewhere: bool = False

    @property
    def top_jobs(self) -> tuple[History, ...]:
        """The job objects that none of the others owns: they speak for the workload."""
        jobs = {history.uid for history in self.jobs}
        return tuple(
            history
            for history in self.jobs
            if history.kind is not ObjectKind.RESOURCE_CLAIM and _owner_uid(history) not in jobs
        )

    def jobs_below(self, above: Iterable[History]) -> tuple[History, ...]:
        """The job objects that these own."""
        owners = {history.uid for history in above}
        return tuple(history for history in self.jobs if _owner_uid(history) in owners - {history.uid})

    @property
    def claims(self) -> tuple[History, ...]:
        """The resource claims of its pods; one that others share is that of its first user's workload."""
        return tuple(history for history in self.jobs if history.kind is ObjectKind.RESOURCE_CLAIM)


def checkpoints_ms(objects_of: Iterable[History]) -> list[int]:
    """When one of a workload's objects said that it wrote a checkpoint, in order."""
    return sorted(
        {fact.at_ms for told in objects_of for fact in told.transitions if fact.moment is Moment.CHECKPOINT}
    )


def _owner_uid(job: History) -> str:
    body = job.latest
    return body.owner.uid if isinstance(body, objects.JobBody) and body.owner is not None else ""
