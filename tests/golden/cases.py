"""
Golden cases of metrics: a few rows of the derived tables, a question, the samples expected.

Columns that a case leaves out have the defaults below, or are empty. Instants are written `..._at`
and GPUs `...gpus`; what a workload's row leaves out of its course follows from its spans.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import yaml

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from domain.metric import Ask, Sample
from domain.policy import Policy
from domain.quantity import MICRO_PER_GPU
from domain.window import Window, parse_duration, parse_instant, to_ms
from domain.workload import WAITING_STATES, State
from store import dimensions
from store.embedded import Store
from store.lives import OF_WORKLOADS
from store.open_until import FOREVER, OPEN_UNTIL, open_until
from store.workload_rows import FOLLOWING
from store.workload_rows import completed as completed_rows

FOLDER = Path(__file__).parent / "metrics"

DEFAULTS: dict[str, dict[str, Any]] = {
    "workload": {
        "team": "nlp",
        "queue": "main",
        "service_class": "batch",
        "gpu_model": "A100",
        "gang_size": 1,
        "requested_micro_gpus": MICRO_PER_GPU,
    },
    "span": {},
    "attempt": {"source": "pods"},
    "holding": {"node": "n1", "gpu_model": "A100", "micro_gpus": MICRO_PER_GPU, "phase": "Running"},
    "eviction": {"preempted": True, "reason": "Preempted", "mechanism": "kueue_in_cluster_queue"},
    "member_wait": {"micro_gpus": MICRO_PER_GPU},
    "reservation": {"flavor": "a100", "micro_gpus": MICRO_PER_GPU},
    "node_price": {"node": "n1", "nano_price": 2_000_000_000},
    "node_span": {
        "gpu_model": "A100",
        "capacity_micro_gpus": 8 * MICRO_PER_GPU,
        "allocatable_micro_gpus": 8 * MICRO_PER_GPU,
        "schedulable": True,
    },
    "share_span": {"pool": "all/a100", "entity": "main", "gpu_model": "A100", "until_ms": 2**63 - 1},
    "team_share_span": {
        "pool": "all/a100",
        "entity": "main",
        "team": "nlp",
        "gpu_model": "A100",
        "until_ms": 2**63 - 1,
    },
    "pool_span": {"pool": "all/a100", "gpu_model": "A100", "until_ms": 2**63 - 1},
    "queue_span": {"queue": "main", "kind": "ClusterQueue"},
    "waste_piece": {
        "node": "n1",
        "gpu_model": "A100",
        "micro_gpus": MICRO_PER_GPU,
        "attempt": 1,
        "earlier_cause": "useful",
    },
    "own_failure_wait": {"micro_gpus": MICRO_PER_GPU},
    "run": {},
    "activity_span": {"pod_uid": "p", "device": "GPU-0", "micro_gpus": MICRO_PER_GPU},
    "gpu_sample": {
        "source": "exporter/n1",
        "node": "n1",
        "device": "GPU-0",
        "gpu_model": "A100",
        "step_ms": 60_000,
        "engine": True,
        "micro_gpus": MICRO_PER_GPU,
    },
    "gpu_sample_mark": {"source": "exporter/n1"},
    "observed_stretch": {"kind": "GPU metrics", "source": "exporter/n1", "node": "n1"},
    "gpu_hour": {"node": "n1", "device": "GPU-0", "gpu_model": "A100"},
    "transition": {"uid": "p", "kind": "Pod"},
    "member": {},
    "object_state": {},
    "denial": {},
    "eta_told": {"service_class": "batch"},
    "wait_reason": {"reason": "GPU_SHORTAGE", "source": "placement", "end_ms": FOREVER},
    "node_device": {
        "labels": "{}",
        "taints": "[]",
        "gpu_model": "A100",
        "resource": "nvidia.com/gpu",
        "replicas": 1,
        "capacity": 8,
        "allocatable": 8,
        "schedulable": True,
    },
    "closed_until": {},
    "queue_state": {"queue": "main"},
    "workload_copy": {},
    "queue_flavor": {"queue": "main", "resource": "nvidia.com/gpu", "flavor": "a100"},
    "kueue_terms": {"kind": "ClusterQueue", "parent": "all", "weight_milli": 1000},
    "quota_use": {"queue": "main", "flavor": "a100"},
    "pod_device": {"resource": "nvidia.com/gpu", "devices": 1},
    "workload_shape": {"resource": "nvidia.com/gpu", "pods": 1, "devices": 1},
}
_EMPTY = {"VARCHAR": "", "BIGINT": 0, "BOOLEAN": False, "DOUBLE": 0.0}
_COLUMNS = """
select column_name, data_type from information_schema.columns
where table_name = $table and is_nullable = 'NO'
"""


def case_files() -> list[Path]:
    """Every case, `<metric>/<case>.yaml`."""
    return sorted(FOLDER.glob("*/*.yaml"))


def answer(case: Mapping[str, Any], metric_name: str) -> list[dict[str, Any]]:
    """What the product says in that case: labels, value and flags of each sample, in order."""
    metric = REGISTRY[metric_name]
    as_of_ms = instant(case["as_of"])
    window = Window.before(as_of_ms, parse_duration(case.get("window", "24h")))
    ask = Ask(
        window=window,
        by=tuple(case.get("by", metric.labels)),
        filters={name: tuple(values) for name, values in case.get("filters", {}).items()},
        policy=Policy(**case.get("policy", {})),
    )
    with _once_more(case["given"]) as store:
        rows = store.rows(metric.sql, parameters(metric, ask))
    shown = [told(sample) for sample in evaluate(metric, rows, ask)]
    only = case.get("only", {})
    return [row for row in shown if all(row.get(name) == value for name, value in only.items())]


def values(
    store: Store, metric_name: str, as_of: str, *, by: tuple[str, ...] = (), window: str = "24h"
) -> dict[tuple[str, ...], float]:
    """A metric's values on a store, by the labels in `by` and those that the metric adds."""
    metric = REGISTRY[metric_name]
    ask = Ask(window=Window.before(parse_instant(as_of), parse_duration(window)), by=by)
    samples = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
    return {tuple(each.labels.values()): each.value for each in samples if each.value is not None}


def told(sample: Sample) -> dict[str, Any]:
    """A sample as a case writes it: flags only where they are set."""
    row: dict[str, Any] = dict(sample.labels)
    if sample.value is None:
        return {**row, "undefined_because": sample.undefined_because}
    row["value"] = sample.value
    return row | {flag: True for flag in ("lower_bound", "few") if getattr(sample, flag)}


def instant(written: str | datetime) -> int:
    """YAML reads an RFC 3339 instant as one, or leaves it as text with milliseconds."""
    return parse_instant(written) if isinstance(written, str) else to_ms(written)


@contextmanager
def store_of(given: Mapping[str, list[dict[str, Any]]]) -> Iterator[Store]:
    """A store in memory with these rows in its derived tables."""
    store = Store.open(None)
    try:
        fill(store, given)
        yield store
    finally:
        store.close()


# Making the schema costs more than a case: one store serves all cases, emptied after each.
_KEPT: list[Store] = []


@contextmanager
def _once_more(given: Mapping[str, list[dict[str, Any]]]) -> Iterator[Store]:
    """As `store_of`, for questions that write nothing."""
    store = _KEPT.pop() if _KEPT else Store.open(None)
    fill(store, given)
    yield store
    with store.transaction() as connection:
        for table in completed(given):
            connection.execute(f"delete from {table}")  # noqa: S608 (tables of the cases)
        connection.execute("delete from dimensions_seen")
    _KEPT.append(store)


def fill(store: Store, given: Mapping[str, list[dict[str, Any]]]) -> None:
    """Put these rows into the derived tables of a store."""
    tables = {}
    for table, rows in completed(given).items():
        needed = store.rows(_COLUMNS, {"table": table})
        blank = {str(row["column_name"]): _EMPTY[str(row["data_type"])] for row in needed}
        tables[table] = [{**blank, **row} for row in rows]
    _stamp(store, tables)
    for table, rows in tables.items():
        with store.transaction() as connection:
            for row in rows:
                names, marks = ", ".join(row), ", ".join(f"${name}" for name in row)
                connection.execute(f"insert into {table} ({names}) values ({marks})", row)  # noqa: S608
    with store.transaction() as connection:
        for cluster in {row["cluster"] for row in tables.get("workload", ())}:
            dimensions.recount(connection, cluster)


def _stamp(store: Store, tables: Mapping[str, list[dict[str, Any]]]) -> None:
    """Add to the rows of workloads what the product adds when it writes lives."""
    lives = {table: rows for table, rows in tables.items() if table in OF_WORKLOADS}
    for cluster in {row["cluster"] for rows in lives.values() for row in rows}:
        mine = {table: [row for row in rows if row["cluster"] == cluster] for table, rows in lives.items()}
        arrow = {
            table: pa.Table.from_pylist(rows, schema=store.schema(table)) for table, rows in mine.items()
        }
        if "workload" in arrow:
            workloads = completed_rows(
                arrow["workload"].drop_columns(list(FOLLOWING)),
                spans=arrow.get("span"),
                copies=arrow.get("workload_copy"),
            )
            for row, follows in zip(mine["workload"], workloads.select(FOLLOWING).to_pylist(), strict=True):
                row.update(follows)
        until_ms = open_until(arrow)
        for row in (row for rows in mine.values() for row in rows):
            row[OPEN_UNTIL] = until_ms.get(row["workload_uid"], FOREVER)


def completed(given: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[dict[str, Any]]]:
    """The rows with units converted and everything that they leave out."""
    tables = {
        table: [{"cluster": "east", **DEFAULTS[table], **_in_units(row)} for row in rows]
        for table, rows in given.items()
    }
    of_object = {(row["cluster"], row["object_uid"]): row["workload_uid"] for row in tables.get("member", [])}
    tables["checkpoint_told"] = [
        {
            "cluster": row["cluster"],
            "workload_uid": of_object[row["cluster"], row["uid"]],
            "at_ms": row["at_ms"],
        }
        for row in tables.get("transition", [])
        if row.get("moment") == "checkpoint" and (row["cluster"], row["uid"]) in of_object
    ]
    spans: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for span in sorted(tables.get("span", []), key=lambda row: row["start_ms"]):
        spans.setdefault((span["cluster"], span["workload_uid"]), []).append(span)
    for course in spans.values():
        placed = False
        for span in course:
            placed = placed or span["state"] in {State.STARTING, State.RUNNING}
            span.setdefault("first_wait", not placed and span["state"] in WAITING_STATES)
    written = {(row["cluster"], row["workload_uid"]): row for row in tables.get("workload", [])}
    tables["workload"] = [
        {**_course(spans.get(key, [])), **written.get(key, _plain_workload(key))}
        for key in {**spans, **written}
    ]
    return tables


def _plain_workload(key: tuple[str, str]) -> dict[str, Any]:
    return {"cluster": key[0], "workload_uid": key[1], **DEFAULTS["workload"]}


def _course(spans: list[dict[str, Any]]) -> dict[str, Any]:
    def first(*states: State) -> int | None:
        return next((span["start_ms"] for span in spans if span["state"] in states), None)

    return {
        "submitted_ms": spans[0]["start_ms"] if spans else 0,
        "first_placed_ms": first(State.STARTING, State.RUNNING),
        "first_running_ms": first(State.RUNNING),
        "ended_ms": first(State.ENDED),
    }


def _in_units(row: Mapping[str, Any]) -> dict[str, Any]:
    converted: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("_at"):
            converted[f"{name.removesuffix('_at')}_ms"] = None if value is None else instant(value)
        elif name.endswith("gpus") and "micro" not in name:
            micro = f"{name.removesuffix('gpus')}micro_gpus"
            converted[micro] = None if value is None else round(value * MICRO_PER_GPU)
        else:
            converted[name] = value
    return converted


def read(file: Path) -> dict[str, Any]:
    """A case's content."""
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def rewrite(file: Path, rows: list[dict[str, Any]]) -> None:
    """Put these rows in the place of the case's expectation; the rest stays as it is written."""
    text = file.read_text(encoding="utf-8")
    kept = text[: text.index("\nexpect:")]
    lines = [
        yaml.safe_dump(row, default_flow_style=True, sort_keys=False, width=1000).strip() for row in rows
    ]
    file.write_text(f"{kept}\nexpect:\n" + "".join(f"  - {line}\n" for line in lines), encoding="utf-8")
