"""A real HTTP server on loopback with fixed answers, in the shapes of `api/openapi.py`."""

import itertools
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from tests.dashboard import fake_fairness, fake_faults, fake_money, fake_sources, fake_waste, fake_why
from tests.dashboard.fake_positions import place

Json = Any
TARGETS = {"interactive": 300.0, "batch": 3600.0, "best_effort": 86_400.0}
METRICS = {
    "queue_wait_seconds": ("seconds", "Queue wait"),
    "time_to_running_seconds": ("seconds", "Time to running"),
    "requeue_wait_seconds": ("seconds", "Re-queue wait"),
    "queue_depth_workloads": ("workloads", "Queue depth"),
    "queue_depth_gpus": ("gpus", "Queue depth in GPUs"),
    "starvation_index_seconds": ("seconds", "Starvation index"),
    "past_target_workloads": ("workloads", "Past target"),
    "preemptions_total": ("total", "Preemptions"),
    "evictions_total": ("total", "Evictions"),
    "held_gpus": ("gpus", "GPUs held"),
    "free_gpus": ("gpus", "GPUs free"),
    "reserved_gpus": ("gpus", "GPUs reserved"),
    "wait_target_seconds": ("seconds", "Target"),
    **fake_waste.METRICS,
}
_WINDOWED = {
    "queue_wait_seconds",
    "time_to_running_seconds",
    "requeue_wait_seconds",
    "preemptions_total",
    "evictions_total",
    *fake_waste.WINDOWED,
}
_GROUPS = (
    ("interactive", "nlp-interactive", 3, 5.0),
    ("batch", "nlp-batch", 11, 64.0),
    ("best_effort", "sweeps", 2, 2.0),
)


@dataclass
class Scenario:
    """What the server answers. `status` above 399 refuses everything."""

    name: str = "filled"
    status: int = 200
    age: timedelta = timedelta(seconds=12)
    role: str = "admin"
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    @property
    def as_of(self) -> datetime:
        return datetime.now(UTC).replace(microsecond=0) - self.age


def text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def sample(
    value: float | None, labels: dict[str, str], *, lower_bound: bool = False, few: bool = False
) -> Json:
    return {
        "labels": labels,
        "value": value,
        "lower_bound": lower_bound,
        "few": few,
        "undefined_because": "no workload was placed in the window" if value is None else None,
    }


def _labels(by: list[str], service_class: str, queue: str) -> dict[str, str]:
    every = {"cluster": "north", "queue": queue, "service_class": service_class, "team": "nlp"}
    return {label: every[label] for label in by if label in every}


def _waits(by: list[str]) -> list[Json]:
    rows = []
    for index, (service_class, queue, _, _) in enumerate(_GROUPS):
        labels = _labels(by, service_class, queue)
        for estimator in ("started", "censored"):
            for quantile, seconds in (("0.5", 41.0), ("0.9", 250.0), ("0.99", 540.0)):
                last = quantile == "0.99" and estimator == "censored"
                value = (
                    None if service_class == "best_effort" and estimator == "started" else seconds * 9**index
                )
                rows.append(
                    sample(
                        value,
                        {**labels, "quantile": quantile, "estimator": estimator},
                        lower_bound=last and index == 0,
                        few=last and index == 1,
                    )
                )
    return rows


def metric_rows(name: str, by: list[str]) -> list[Json]:
    if name in fake_waste.METRICS:
        return fake_waste.rows(name, by)
    if name == "wait_target_seconds":
        return [sample(seconds, {"service_class": group}) for group, seconds in TARGETS.items()]
    if name in {"queue_wait_seconds", "time_to_running_seconds", "requeue_wait_seconds"}:
        return _waits(by)
    per_group = {
        "queue_depth_workloads": [float(group[2]) for group in _GROUPS],
        "queue_depth_gpus": [group[3] for group in _GROUPS],
        "starvation_index_seconds": [540.0, 8040.0, 1200.0],
        "past_target_workloads": [1.0, 4.0, 0.0],
        "preemptions_total": [0.0, 5.0, 2.0],
        "evictions_total": [1.0, 6.0, 2.0],
        "held_gpus": [4.0, 110.0, 2.5],
        "free_gpus": [11.5, 0.0, 0.0],
        "reserved_gpus": [4.0, 118.0, 2.5],
    }[name]
    if not set(by) & {"service_class", "queue"}:
        return [sample(sum(per_group), {"cluster": "north"} if "cluster" in by else {})]
    return [
        sample(value, _labels(by, group[0], group[1]))
        for value, group in zip(per_group, _GROUPS, strict=True)
    ]


def workload(number: int, as_of: datetime, **changes: Json) -> Json:
    submitted = as_of - timedelta(seconds=8040) - timedelta(minutes=number)
    return {
        "uid": f"uid-{number}",
        "cluster": "north",
        "kind": "Workload",
        "namespace": "nlp",
        "name": f"train-llm-{number}",
        "team": "nlp",
        "user": "ada",
        "queue": "nlp-batch",
        "priority_class": "batch-normal",
        "service_class": "batch",
        "gpu_model": "H100",
        "state": "queued",
        "reason": "Inadmissible",
        "requested_gpus": 8.0,
        "submitted_at": text(submitted),
        "first_placed_at": None,
        "first_running_at": None,
        "ended_at": None,
        "outcome": "open",
        "queue_wait_seconds": 8040.0 + 60 * number,
        "time_to_running_seconds": None,
        "requeue_wait_seconds": 0.0,
        "waiting_seconds": 8040.0 + 60 * number,
        "preemptions": 0,
        "evictions": 0,
        "missed_evictions": 0,
        **fake_waste.OF_A_WORKLOAD,
        **changes,
    }


def waiting(as_of: datetime) -> Json:
    listed = workload(0, as_of)
    span = {"state": "queued", "start_at": listed["submitted_at"], "end_at": None, "reason": "Inadmissible"}
    more: Json = {"skewed": "", "spans": [span], "queue_position": place(20.0)}
    more |= {key: [] for key in ("attempts", "member_waits", "checkpoints", "gpu_faults", "denials")}
    return {**listed, "as_of": text(as_of), **more}


def skewed(as_of: datetime) -> Json:
    """Bound before it was submitted, by its stamps."""
    waits = ("queue_wait", "time_to_running", "requeue_wait", "waiting")
    unknown = dict.fromkeys(f"{name}_seconds" for name in waits)
    odd = {"skewed": "bound 90 s before the submission", "queue_position": place(None, "no_permission: x")}
    return waiting(as_of) | unknown | odd | {"uid": "uid-9"}


def finished(as_of: datetime) -> Json:
    """Waited 9 minutes, ran 20, was preempted, waited 10 again, ran 20 more."""
    start = as_of - timedelta(minutes=62)
    marks = [("queued", 0), ("starting", 9), ("running", 10), ("draining", 30), ("queued", 31)]
    marks += [("starting", 41), ("running", 42), ("ended", 62)]
    at = {minute: text(start + timedelta(minutes=minute)) for _, minute in marks}
    spans: list[Json] = [
        {"state": state, "start_at": at[minute], "end_at": at[following], "reason": ""}
        for (state, minute), (_, following) in itertools.pairwise(marks)
    ]
    spans.append({"state": "ended", "start_at": at[62], "end_at": None, "reason": "Succeeded"})

    def attempt(number: int, bound: int, started: int, released: int, **changes: Json) -> Json:
        pods = [
            {
                "uid": f"pod-{number}-{index}",
                "name": f"train-llm-7-{index}",
                "node": "gpu-node-03",
                "gpu_model": "H100",
                "gpus": 4.0,
                "bound_at": at[bound],
                "started_at": at[started],
                "released_at": at[released],
                "restarts": 0,
                "gpu_seconds": 4.0 * 60 * (released - bound),
            }
            for index in range(2)
        ]
        ends = {"start_at": at[bound], "end_at": at[released], "source": "pods"}
        nobody = dict.fromkeys(("preempted_by", "preempted_by_name", "preempted_by_workload"), "")
        return {"number": number, "reason": "", **nobody, "pods": pods, **ends, **changes}

    by = {
        "preempted_by": "pod-of-uid-0",
        "preempted_by_name": "nlp/train-llm-0",
        "preempted_by_workload": "uid-0",
    }
    return workload(
        7,
        as_of,
        state="ended",
        reason="",
        outcome="succeeded",
        submitted_at=at[0],
        first_placed_at=at[9],
        first_running_at=at[10],
        ended_at=at[62],
        queue_wait_seconds=540.0,
        time_to_running_seconds=600.0,
        requeue_wait_seconds=600.0,
        waiting_seconds=None,
        preemptions=1,
        gpu_seconds=2 * 4.0 * 60 * 42,
    ) | {
        "as_of": text(as_of),
        "spans": spans,
        "attempts": [
            attempt(1, 9, 10, 31, outcome="preempted", reason="Preempted", **by),
            attempt(2, 41, 42, 62, outcome="succeeded"),
        ],
        "queue_position": None,
        "skewed": "",
        "member_waits": [{"pod_uid": "pod-2-9", "start_at": at[42], "end_at": at[62], "gpus": 4.0}],
        **fake_faults.of_a_workload(at[42]),
    }


def _page(rows: list[Json], as_of: datetime | None, *, page: int = 1, size: int = 100) -> Json:
    shown = rows[(page - 1) * size : page * size]
    return {
        "as_of": text(as_of) if as_of else None,
        "total": len(rows),
        "page": page,
        "page_size": size,
        "hints": [],
        "rows": shown,
    }


def registry() -> list[Json]:
    return [
        {
            "kind": "counter" if unit == "total" else "gauge",
            "definition": f"What {title.lower()} means, in a sentence.",
            "labels": ["cluster", "queue", "service_class"],
            "dimensions": ["cluster", "queue", "service_class", "team"],
            "windowed": name in _WINDOWED,
            "looks_back": "over the window asked for" if name in _WINDOWED else "at an instant",
        }
        | {"name": name, "unit": unit, "title": title, "source": "Kueue conditions", "extra_labels": []}
        | {"window_seconds": None, "pages": ["home", "queues"]}
        for name, (unit, title) in {**METRICS, **fake_fairness.METRICS}.items()
    ]


def answer(  # noqa: C901, PLR0911 (one per route)
    scenario: Scenario, path: str, query: dict[str, str]
) -> tuple[int, Json]:
    """Status and document of a request."""
    filled = scenario.name != "empty"
    if path == "metrics":
        return 200, _page(registry(), None)
    if path.startswith("metrics/"):
        name = path.removeprefix("metrics/")
        by = [label for label in query.get("by", "").split(",") if label]
        if name in fake_fairness.METRICS:
            rows = fake_fairness.rows(name, by, scenario=scenario.name, past="as_of" in query)
            return 200, {
                "metric": name,
                "unit": fake_fairness.METRICS[name][0],
                "as_of": text(scenario.as_of),
                "window": query.get("window", "1d") if name in fake_fairness.WINDOWED else None,
                "coverage": 0.97 if scenario.name == "stale" else 1.0,
                "hints": [],
                "rows": rows,
            }
        # Counters began to count in the window: before it there was nothing.
        counts = filled and not (name.endswith("_total") and "as_of" in query)
        always = name == "wait_target_seconds"
        rows = metric_rows(name, by) if counts or always else [sample(None, {})]
        if scenario.name == "two clusters":
            # The second has the same queues, with other values.
            rows += [
                row | {"labels": row["labels"] | {"cluster": "south"}, "value": row["value"] + 1}
                for row in rows
                if row["labels"].get("cluster") and row["value"] is not None
            ]
        if scenario.name == "unseen" and name == "preemptions_total":
            rows = [row | {"lower_bound": True} for row in rows]
        return 200, {
            "metric": name,
            "unit": METRICS[name][0],
            "as_of": text(scenario.as_of),
            "window": "1d" if name in _WINDOWED else None,
            "coverage": 0.97 if scenario.name == "stale" else 1.0,
            "hints": ["no queue 'nowhere' is known"] if query.get("queue") == "nowhere" else [],
            "rows": rows,
        }
    if path == "workloads":
        everything = [workload(number, scenario.as_of) for number in range(60)] if filled else []
        page, size = int(query.get("page", "1")), int(query.get("page_size", "100"))
        return 200, _page(everything, scenario.as_of, page=page, size=size)
    if path.startswith("workloads/"):
        known = {"uid-0": waiting, "uid-0/why": fake_why.answer, "uid-7": finished, "uid-9": skewed}
        uid = unquote(path.removeprefix("workloads/"))
        if uid in known and filled:
            return 200, known[uid](scenario.as_of)
        return 404, {"title": "Not Found", "status": 404, "detail": f"workload {uid!r}: there is none"}
    if path.startswith(("chargeback/", "quota/proposals")):
        return fake_money.answer(path, text(scenario.as_of), query, scenario=scenario.name)
    if path == "viewer":
        return 200, {"name": "rosa", "role": scenario.role, "teams": []}
    if path == "teams":
        team = {"team": "nlp", "workloads": 60, "open_workloads": 60}
        team["last_submitted_at"] = text(scenario.as_of)
        return 200, _page([team] if filled else [], scenario.as_of)
    if path == "sources":
        read = fake_sources.rows(scenario.as_of, stale=scenario.name == "stale") if filled else []
        return 200, _page(read, scenario.as_of)
    if path in fake_faults.LISTS:
        page = _page(fake_faults.LISTS[path](text(scenario.as_of)) if filled else [], scenario.as_of)
        return 200, page | fake_faults.HEADS.get((path, scenario.name), {})
    return 404, {"title": "Not Found", "status": 404, "detail": f"{path}: no such route"}


@contextmanager
def running(scenario: Scenario) -> Iterator[str]:
    """The server's address while it runs."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = {
                name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()
            }
            scenario.seen.append((parts.path, {**query, **{k.lower(): v for k, v in self.headers.items()}}))
            self._tell(*answer(scenario, parts.path.removeprefix("/api/v1/"), query))

        def do_POST(self) -> None:
            sent = json.loads(self.rfile.read(int(self.headers["content-length"])))
            scenario.seen.append((self.path, {"reason": sent["reason"]}))
            self._tell(*fake_money.close(sent, scenario=scenario.name))

        def _tell(self, status: int, document: Json) -> None:
            if scenario.status > 399:
                status = scenario.status
                document = {"title": "Refused", "status": status, "detail": "the store is closed"}
            body = json.dumps(document).encode()
            self.send_response(status)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:  # type: ignore[explicit-override]  # typing has none in 3.11
            """Quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
