"""A site of two queues in a cohort over a week: red crashes a lot, blue is owed."""

from dataclasses import dataclass, field
from typing import Any

from analytics.chargeback.agreement import Agreement
from domain.facts import Batch, ObjectKind, SourceMark
from domain.observed import Stretch
from domain.policy import Policy
from domain.window import MS_PER_HOUR, parse_instant
from service.quota import Proposer
from service.quota_settings import QuotaSettings
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books, make_workload
from tests.cases.replay import Feed

Json = dict[str, Any]
MONDAY = parse_instant("2026-03-02T00:00:00Z")
WEEK_MS = 7 * 24 * MS_PER_HOUR
END = MONDAY + WEEK_MS
NOW = END + MS_PER_HOUR
CREATED = "2026-02-01T00:00:00Z"
SEEN = parse_instant(CREATED) + 1000
POOL = "main/a100"
FOREVER = 2**63 - 1


def queue(name: str, gpus: str, version: str = "100", **spec: Any) -> Json:
    """A ClusterQueue with a second flavor and resource before the one that counts."""
    flavors = [
        {"name": "l40s", "resources": [{"name": "cpu", "nominalQuota": "8"},
                                       {"name": "nvidia.com/gpu", "nominalQuota": "0"}]},
        {"name": "a100", "resources": [{"name": "cpu", "nominalQuota": "400"},
                                       {"name": "nvidia.com/gpu", "nominalQuota": gpus}]},
    ]  # fmt: skip
    groups = [
        {"coveredResources": ["example.com/licence"],
         "flavors": [{"name": "licence", "resources": [{"name": "example.com/licence", "nominalQuota": 3}]}]},
        {"coveredResources": ["cpu", "nvidia.com/gpu"], "flavors": flavors},
    ]  # fmt: skip
    return written("ClusterQueue", name, version, {"cohort": "main", "resourceGroups": groups, **spec})


def cohort(gpus: int | None, version: str = "50") -> Json:
    """The cohort's own quota; None: an object without any."""
    groups = [] if gpus is None else [
        {"coveredResources": ["nvidia.com/gpu"],
         "flavors": [{"name": "a100", "resources": [{"name": "nvidia.com/gpu", "nominalQuota": gpus}]}]}
    ]  # fmt: skip
    return written("Cohort", "main", version, {"resourceGroups": groups})


def written(kind: str, name: str, version: str, spec: Json) -> Json:
    head = {"name": name, "uid": f"{kind}-{name}", "creationTimestamp": CREATED, "resourceVersion": version}
    return {"apiVersion": "kueue.x-k8s.io/v1beta1", "kind": kind, "metadata": head, "spec": spec}


@dataclass(slots=True)
class Week:
    """The site at the end of the week, and the objects as the API would give them now."""

    store: Store
    objects: dict[str, Json]
    feed: Feed
    policy: Policy = field(default_factory=Policy)
    terms: QuotaSettings = field(default_factory=QuotaSettings)

    @property
    def proposer(self) -> Proposer:
        return Proposer(self.store, self.policy, Agreement(), self.terms)

    def see(self, changed: Json, at_ms: int) -> None:
        """An object changed."""
        self.objects[changed["metadata"]["uid"]] = changed
        self.feed.see("MODIFIED", changed, at_ms)
        self.feed.intake.flush()


def site(
    *,
    red_lost: float = 0.3,
    lost_as: str = "crash_lost",
    blue_debt: float = 80.0,
    gpu_hours: float = 1000.0,
    own: int | None = 0,
    read_until_ms: int = END,
    weeks: int = 1,
    terms: QuotaSettings | None = None,
    store: Store | None = None,
    **red_spec: Any,
) -> Week:
    """
    Red and blue have 40 GPUs each and held `gpu_hours` each week; of red's a share was lost, in crashes.

    Args:
        lost_as: the cause of what red lost.
        own: the cohort's own quota; None: it has no entry for the flavor.
        read_until_ms: how far the cluster was read.
    """
    feed = Feed(store or Store.open(None))
    objects = [queue("red", "40", **red_spec), queue("blue", "40"), cohort(own)]
    for each in objects:
        feed.see("ADDED", each, SEEN)
    feed.intake.flush()
    mark = SourceMark(kind=ObjectKind.POD, resource_version="1", epoch=0, seen_ms=read_until_ms)
    seen = {ObjectKind.POD: [Stretch(start_ms=SEEN, end_ms=read_until_ms)]}
    feed.store.append(Batch(cluster="c", marks={ObjectKind.POD: mark}, sights=seen))
    books, pieces = Books(cluster="c"), []
    for name, lost in (("red", red_lost), ("blue", 0.0)):
        books.add(
            "holding", workload_uid=f"w-{name}", attempt=1, pod_uid=f"w-{name}-p", pod_name=name, node="n1",
            gpu_model="A100", micro_gpus=micro_gpus(gpu_hours), bound_ms=MONDAY, bound_earliest_ms=None,
            bound_source="condition", started_ms=MONDAY, released_ms=MONDAY + weeks * WEEK_MS,
            released_earliest_ms=None, phase="Running", restarts=0,
        )  # fmt: skip
        make_workload(books, f"w-{name}", team=name, queue=name, namespace=name, gpu_model="A100")
        for number in range(weeks):
            start_ms = MONDAY + number * WEEK_MS
            # A share of the week at as many GPUs as make the hours.
            until_ms = start_ms + round(lost * WEEK_MS)
            parts = ((lost_as, start_ms, until_ms), ("useful", until_ms, start_ms + WEEK_MS))
            for cause, left, right in parts:
                if left < right:
                    pieces.append(piece(f"w-{name}", cause, left, right, gpu_hours))
    books.add("node_span", node="n1", gpu_model="A100", start_ms=SEEN, end_ms=None, schedulable=True,
              capacity_micro_gpus=80_000_000, allocatable_micro_gpus=80_000_000)  # fmt: skip
    books.write(feed.store)
    # Writing lives wrote a mark of its own.
    feed.store.append(Batch(cluster="c", marks={ObjectKind.POD: mark}))
    shares = [share("red", 0.0), share("blue", blue_debt)]
    feed.store.replace(
        "c",
        [Replacement(table="waste_piece", rows=pieces), Replacement(table="share_span", rows=shares),
         Replacement(table="team_share_span", rows=[team_share(each) for each in ("red", "blue")])],
    )  # fmt: skip
    known = {each["metadata"]["uid"]: each for each in objects}
    return Week(feed.store, known, feed, terms=terms or QuotaSettings())


def micro_gpus(gpu_hours: float) -> int:
    """As many as hold that long in a week."""
    return round(gpu_hours / 168 * 1_000_000)


def piece(uid: str, cause: str, start_ms: int, end_ms: int, gpu_hours: float) -> dict[str, object]:
    """So many GPU-hours a week, of one cause."""
    return {
        "cluster": "c", "workload_uid": uid, "pod_uid": f"{uid}-p", "attempt": 1, "node": "n1",
        "gpu_model": "A100", "device": "", "micro_gpus": micro_gpus(gpu_hours),
        "start_ms": start_ms, "end_ms": end_ms, "cause": cause, "known_ms": None, "earlier_cause": "",
        "may_be": "", "charged": cause != "useful", "restart": False,
    }  # fmt: skip


def share(entity: str, debt: float) -> dict[str, object]:
    """An account that stands at that debt when the week ends."""
    return {
        "cluster": "c", "pool": POOL, "entity": entity, "team": entity, "gpu_model": "A100",
        "start_ms": END - 1,
        "end_ms": None, "until_ms": FOREVER, "quota": 40_000_000, "demand": 0, "held": 0, "entitled": 0,
        "lent": 0, "borrowed": 0, "over_quota": 0, "opening_debt": debt,
    }  # fmt: skip


def team_share(entity: str) -> dict[str, object]:
    return {
        "cluster": "c", "pool": POOL, "entity": entity, "team": entity, "gpu_model": "A100",
        "start_ms": END - 1,
        "end_ms": None, "until_ms": FOREVER, "demand": 0, "held": 0, "entitled": 0, "opening_debt": 0.0,
        "opening_forgiven": 0.0,
    }  # fmt: skip
