"""
How many rows a refresh of all exported metrics reads from tables, by DuckDB's own profile.

`python -m benchmarks.scanned store.duckdb [as_of]` prints them by query, most first. The questions are those
of the measurement tick; each runs once, though several metrics share it.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from analytics.evaluate import exported_asks, is_counter, parameters, query
from analytics.metrics import REGISTRY
from domain.metric import Metric
from domain.policy import Policy
from domain.window import SystemClock, parse_instant
from store.embedded import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What one query of these metrics reads: rows by table, and seconds of CPU as DuckDB counts them."""

    metrics: tuple[str, ...]
    rows_by_table: dict[str, int]
    cpu_seconds: float

    @property
    def rows(self) -> int:
        """Rows of all tables; those of a table that is read twice count twice."""
        return sum(self.rows_by_table.values())


def scans(
    store: Store, as_of_ms: int, policy: Policy, *, metrics: Iterable[Metric] = REGISTRY.values()
) -> list[Scan]:
    """
    What each query behind the exported series of these metrics reads as of an instant, in order of name.

    A row counts where its row group was not stepped over, whether or not a filter lets it pass then.
    """
    asked: dict[tuple[str, tuple[tuple[str, int], ...]], list[str]] = {}
    for metric in metrics:
        if metric.exported:
            for ask in exported_asks(metric, as_of_ms, policy):
                sql, given = query(metric, ask), parameters(metric, ask)
                if is_counter(metric) and (counted := store.counted(sql)) is not None:
                    given["since_ms"] = counted.until_ms
                question = (sql, tuple(sorted(given.items())))
                asked.setdefault(question, []).append(metric.name)
    return [
        scanned(store, sql, dict(given), tuple(dict.fromkeys(names))) for (sql, given), names in asked.items()
    ]


def scanned(store: Store, sql: str, given: Mapping[str, object], names: tuple[str, ...]) -> Scan:
    """What one query reads; `names` are those that ask it."""
    (told,) = store.rows(f"explain (analyze, format json) {sql}", given)
    profile = json.loads(str(told["explain_value"]))
    by_table: dict[str, int] = {}
    # Of a query of constants nothing is told.
    for operator in _operators(profile.get("operator", ())):
        if "rows_scanned" in operator:
            extra = operator["extra_info"]
            table = str(extra.get("Table", operator["name"])).rpartition(".")[2]
            by_table[table] = by_table.get(table, 0) + int(str(operator["rows_scanned"]))
    return Scan(
        metrics=names, rows_by_table=by_table, cpu_seconds=profile.get("query", {}).get("cpu_time", 0.0)
    )


def _operators(found: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for operator in found:
        yield operator
        yield from _operators(operator.get("children", ()))


def main(arguments: list[str]) -> int:
    """Print what is read of a store's file; gives the exit status."""
    if not arguments:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    as_of_ms = parse_instant(arguments[1]) if arguments[1:] else SystemClock().now_ms()
    store = Store.open(Path(arguments[0]))
    try:
        found = scans(store, as_of_ms, Policy())
    finally:
        store.close()
    for scan in sorted(found, key=lambda scan: -scan.rows):
        tables = ", ".join(f"{table} {rows}" for table, rows in scan.rows_by_table.items())
        sys.stdout.write(f"{scan.rows:>12}  {scan.cpu_seconds:.4f} s  {', '.join(scan.metrics)}: {tables}\n")
    rows, seconds = sum(scan.rows for scan in found), sum(scan.cpu_seconds for scan in found)
    sys.stdout.write(f"{rows:>12}  {seconds:.4f} s  all\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
