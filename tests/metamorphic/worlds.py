"""What the product makes of a recording, behind its real API; and what the truth says of the sample."""

import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from starlette.testclient import TestClient
from starlette.types import ASGIApp

from api.app import Api, create_app
from api.auth import NoAuth
from collector.recording import import_recording
from domain.window import FixedClock, parse_instant
from sample_data import SETTINGS, SMALL
from sample_data.generate import END
from service.answers import Answers
from service.books import books_of
from service.demo import CLUSTER
from service.settings_file import load_settings
from store.embedded import Store
from tests.metamorphic.recordings import objects

END_MS = parse_instant(END)
PAGE_SIZE = 50
# Rows that belong to a workload; of those without one nothing may change at all.
OF_WORKLOADS = {
    "workload": "select * from workload",
    "span": "select * from span",
    "attempt": "select * from attempt",
    "holding": "select * from holding",
    "run": "select * from run",
    "eviction": "select * from eviction",
    "member_wait": "select * from member_wait",
    "reservation": "select * from reservation",
    "member": "select * from member",
    "node_span": "select * from node_span",
    "queue_span": "select * from queue_span",
}
Json = Any
Question = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class World:
    """An imported recording: its store, its API as an app, and a client of it."""

    store: Store
    app: ASGIApp
    client: TestClient
    answered: dict[tuple[str, ...], tuple[int, bytes]] = field(default_factory=dict)

    def reply(self, path: str, **params: str) -> tuple[int, bytes]:
        """Status and body that the API answers with; each is asked once, for nothing moves here."""
        asked = (path, *(f"{name}={value}" for name, value in params.items()))
        if asked not in self.answered:
            reply = self.client.get(f"/api/v1/{path}", params=params)
            self.answered[asked] = (reply.status_code, reply.content)
        return self.answered[asked]

    def get(self, path: str, **params: str) -> Json:
        """An answer of the API."""
        status, body = self.reply(path, **params)
        assert status == 200, (path, params, body)
        return json.loads(body)

    def listed(self) -> list[dict[str, Json]]:
        """The list of workloads, page by page."""
        rows: list[dict[str, Json]] = []
        while True:
            page = self.get("workloads", page=str(len(rows) // PAGE_SIZE + 1), page_size=str(PAGE_SIZE))
            rows += page["rows"]
            if len(rows) >= page["total"]:
                assert len(rows) == page["total"]
                return rows

    def questions(self) -> list[Question]:
        """Each metric by its own labels, in all, and by each single dimension."""
        return [
            (metric["name"], by)
            for metric in self.get("metrics")["rows"]
            for by in (None, "", *metric["dimensions"])
        ]

    def metric(self, question: Question) -> Json:
        """The answer to one of the questions."""
        name, by = question
        return self.get(f"metrics/{name}", **({} if by is None else {"by": by}))

    def derived(self, *, leaving_out: str = "") -> dict[str, list[str]]:
        """All rows of all derived tables, in a fixed order, except those of one workload."""
        return {
            table: sorted(
                repr(sorted(row.items()))
                for row in self.store.rows(sql, {})
                if not leaving_out or row.get("workload_uid") != leaving_out
            )
            for table, sql in OF_WORKLOADS.items()
        }


@dataclass(frozen=True, slots=True)
class Pair:
    """The sample with and without one job."""

    before: World
    after: World
    uid: str

    @property
    def truth(self) -> Mapping[str, Json]:
        """What the truth says of the job."""
        return truth()[self.uid]


PairOf = Callable[[str], Pair]


@contextmanager
def world_of(folder: Path) -> Iterator[World]:
    """Import a recording of the sample's cluster, under the sample's settings, at the sample's end."""
    settings = load_settings(SETTINGS)
    tenancy, policy = settings.tenancy_rules(), settings.thresholds()
    store = Store.open(None)
    try:
        import_recording(folder, CLUSTER, store)
        clock = FixedClock(END_MS)
        books_of(store, tenancy=tenancy, policy=policy, clock=clock).refresh()
        answers = Answers(store, tenancy, policy, clock)
        app = create_app(Api(answers=answers, auth=NoAuth(), metrics_text=lambda: b""))
        with TestClient(app, base_url="http://127.0.0.1") as client:
            yield World(store, app, client)
    finally:
        store.close()


# ------------------------------------------------------------ the truth


@cache
def truth() -> Mapping[str, dict[str, Json]]:
    """The simulator's workloads by uid."""
    with gzip.open(SMALL / "ground_truth.json.gz") as file:
        return {workload["uid"]: workload for workload in json.load(file)["workloads"]}


def held_now(workload: Mapping[str, Json]) -> list[dict[str, Json]]:
    """Its pods that hold GPUs at the end."""
    return [pod for pod in workload["pods"] if pod["released"] is None]


def waits_now(workload: Mapping[str, Json]) -> bool:
    """Whether it waits at the end; one that is held back has no waits."""
    return workload["outcome"] == "open" and bool(workload["waits"]) and not held_now(workload)


def chosen() -> dict[str, str]:
    """The jobs to leave out, uid by story: each the one with the longest first wait of its kind."""

    def longest(found: list[dict[str, Json]]) -> str:
        return str(max(found, key=lambda workload: (max(workload["waits"]), workload["gpus"]))["uid"])

    calm = [w for w in truth().values() if w["kind"] == "Job" and not w["preemptions"] and w["waits"]]
    return {
        "ended": longest(
            [w for w in calm if w["outcome"] == "succeeded" and w["service_class"] == "interactive"]
        ),
        "runs": longest([w for w in calm if held_now(w)]),
        "waits": longest([w for w in calm if waits_now(w)]),
        "preempted once": longest([w for w in truth().values() if len(w["preemptions"]) == 1]),
    }


@cache
def members_asked() -> Mapping[str, int]:
    """The size of each workload's gang by uid: a bare pod is one."""
    return {
        workload["metadata"]["uid"]: sum(pod_set["count"] for pod_set in workload["spec"]["podSets"])
        for workload in objects(SMALL, "workloads")
    }


@cache
def nodes() -> Mapping[str, tuple[str, str]]:
    """GPU model and flavor by node."""
    flavors = {
        tuple(flavor["spec"]["nodeLabels"].items()): flavor["metadata"]["name"]
        for flavor in objects(SMALL, "resourceflavors")
    }
    found = {}
    for node in objects(SMALL, "nodes"):
        labels = node["metadata"]["labels"]
        (flavor,) = (name for selector, name in flavors.items() if set(selector) <= set(labels.items()))
        found[node["metadata"]["name"]] = (labels["nvidia.com/gpu.product"], flavor)
    return found
