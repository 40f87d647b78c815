"""
Feeding the objects of a case through the product, and asking the product about them.

Objects go through the real collector into a store, are cut into lives, and are answered from there.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from api.answers import Question
from collector.intake import Intake
from collector.translator import Translator, find
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, format_instant, parse_instant
from service.answers import Answers
from service.refresh import Refresher
from store.embedded import Store
from tests.shared import shared

Json = dict[str, Any]
CREATED = "2026-05-04T06:00:00Z"
AFTER = "2026-05-05T00:00:00Z"
_VERSIONS = {
    "Workload": "kueue.x-k8s.io/v1beta2",
    "ClusterQueue": "kueue.x-k8s.io/v1beta2",
    "ResourceFlavor": "kueue.x-k8s.io/v1beta2",
    "Job": "batch/v1",
}


def case(name: str) -> tuple[Json, Json]:
    """The input and the expected answer of a case."""
    folder = shared(f"data/cases/{name}")
    return json.loads((folder / "input.json").read_text()), json.loads((folder / "expected.json").read_text())


def lines(name: str) -> list[Json]:
    """The lines of the case's stream."""
    path: Path = shared(f"data/cases/{name}") / "input.ndjson"
    return [json.loads(line) for line in path.read_text().splitlines()]


def check(answer: Json, expected: Json) -> None:
    """Every key asked for is equal; none has a value that is known to be wrong."""
    for key, wrong in expected.pop("must_not", {}).items():
        assert answer[key] not in wrong
    assert answer == expected


# ---------------------------------------------------------------- objects as the API writes them


def asking(gpus: object) -> Json:
    """The containers of a pod that asks for so many GPUs."""
    return {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": gpus}}}]}


def queued_for(gpus: object) -> Json:
    """What a Workload or a Job says of the one pod that it will have."""
    template = {"spec": asking(gpus)}
    return {"podSets": [{"name": "main", "count": 1, "template": template}], "template": template}


def written(
    kind: str, uid: str, *, created: str = CREATED, metadata: Json | None = None, **parts: Any
) -> Json:
    """An object of that kind; its uid is its name too."""
    head = {"uid": uid, "name": uid, "namespace": "t", "creationTimestamp": created}
    return {
        "apiVersion": _VERSIONS.get(kind, "v1"),
        "kind": kind,
        "metadata": head | (metadata or {}),
        **parts,
    }


def truths(conditions: Json, at: str) -> list[Json]:
    """Conditions, given as type and status, that all became so at one instant."""
    return [{"type": kind, "status": status, "lastTransitionTime": at} for kind, status in conditions.items()]


def event(uid: str, about: str, reason: str, at: str, message: str = "") -> Json:
    """An Event that happened once."""
    times: Json = {"firstTimestamp": at, "lastTimestamp": at}
    return written("Event", uid, involvedObject={"uid": about}, reason=reason, message=message, **times)


# ---------------------------------------------------------------- the way through the product


@dataclass(slots=True)
class Feed:
    """A store that is fed by the real collector."""

    store: Store = field(default_factory=lambda: Store.open(None))
    intake: Intake = field(init=False)
    refresher: Refresher = field(init=False)

    def __post_init__(self) -> None:
        self.intake = Intake("c", self.store, self.store.known("c"))
        self.refresher = Refresher(store=self.store)

    def see(self, event_type: str, read: Json, observed_at: str | int, *, kind: str = "") -> None:
        """One watch event; `kind` where the object does not say what is watched."""
        self.intake.see(_translator(read, kind), event_type, read, _ms(observed_at))

    def listed(self, kind: str, items: list[Json], resource_version: str, observed_at: str) -> None:
        """A complete list of a kind."""
        self.intake.relisted(_translator({}, kind), items, resource_version, _ms(observed_at))

    def settled(self) -> Store:
        """The store, after all that was fed has been cut into lives."""
        self.intake.flush()
        self.refresher.refresh()
        return self.store


def replay(readings: Iterable[tuple[str, Json, str]]) -> Store:
    """A store in which these (event type, object, observed at) were taken in and cut into lives."""
    feed = Feed()
    for event_type, read, observed_at in readings:
        feed.see(event_type, read, observed_at)
    return feed.settled()


def answers(store: Store, as_of: str | int = AFTER) -> Answers:
    """What the API answers from a store, at that instant where a question names none."""
    return Answers(store, Tenancy(), Policy(), FixedClock(_ms(as_of)))


def value(store: Store, metric: str, as_of: str, **labels: str) -> float | None:
    """The one value of a metric over everything, of those that it adds labels to."""
    (found,) = (
        row.value
        for row in answers(store, as_of).metric(metric, Question(by=())).rows
        if labels.items() <= row.labels.items()
    )
    return found


def values(store: Store, metric: str, as_of: str, by: str) -> dict[str, float | None]:
    """A metric's values by one label."""
    rows = answers(store, as_of).metric(metric, Question(by=(by,))).rows
    return {row.labels[by]: row.value for row in rows}


def told(store: Store, uid: str, as_of: str = AFTER) -> Json:
    """What the API tells of one workload."""
    found = answers(store, as_of).workload(uid)
    assert found is not None
    return dict(found)


def seconds(store: Store, state: str, as_of: str = AFTER) -> float:
    """How long the workloads of a store were in a state."""
    return _sum(store, f"from span where state = '{state}'", as_of)


def episodes(store: Store, as_of: str = AFTER) -> list[float]:
    """The lengths of the waiting episodes, in order."""
    numbers = store.rows("select distinct episode from waiting_span order by episode")
    return [_sum(store, f"from waiting_span where episode = {row['episode']}", as_of) for row in numbers]


def instant(at_ms: Any) -> str:
    """An instant in whole seconds."""
    return format_instant(at_ms).replace(".000Z", "Z")


def _sum(store: Store, of: str, as_of: str) -> float:
    length = f"sum(least(coalesce(end_ms, {_ms(as_of)}), {_ms(as_of)}) - start_ms) / 1000"
    [row] = store.rows(f"select coalesce({length}, 0) as seconds {of} and start_ms < {_ms(as_of)}")
    return float(str(row["seconds"]))


def _translator(read: Json, kind: str) -> Translator:
    version = read.get("apiVersion") or _VERSIONS.get(kind, "v1")
    found = find(version.rpartition("/")[0], kind or read["kind"])
    assert found is not None
    return found


def _ms(at: str | int) -> int:
    return at if isinstance(at, int) else parse_instant(at)
