"""What it costs to measure every metric anew one minute later, and how many rows are read for it."""

from collections.abc import Iterator
from pathlib import Path
from time import process_time
from typing import Any, Final

import polars as pl

from analytics.metrics import REGISTRY
from benchmarks.scanned import scans
from benchmarks.seeded_jobs import CLUSTER, Cluster, days_of_jobs
from benchmarks.seeded_store import ALL, rewritten, written
from domain.policy import Policy
from domain.tenant import Tenancy
from service.answers import Answers
from service.counters import keep_counted
from service.measure import Measurer
from store.embedded import Store
from store.order import put_in_order

MINUTE_MS: Final = 60_000


def known_by(jobs: pl.DataFrame, at_ms: int) -> pl.DataFrame:
    """The jobs as they are known just before an instant."""
    before = jobs.filter(pl.col("submit_ms") < at_ms)
    ended = pl.col("end_ms") < at_ms
    return before.with_columns(
        start_ms=pl.when(pl.col("start_ms") < at_ms).then("start_ms"),
        end_ms=pl.when(ended).then("end_ms"),
        state=pl.when(ended).then("state").otherwise(pl.lit("open")),
    )


def filled(path: Path, cluster: Cluster) -> Path:
    """
    A store of all that is known of a cluster one minute before its end, the causes of held time with it.

    Returns:
        A file of the jobs of which more is known at the end.
    """
    at_ms, store, news = cluster.end_ms - MINUTE_MS, Store.open(path), list[pl.DataFrame]()
    changes = pl.max_horizontal("submit_ms", "start_ms", "end_ms") >= at_ms

    def days() -> Iterator[pl.DataFrame]:
        for day in days_of_jobs(cluster):
            news.append(day.filter(changes))
            yield known_by(day, at_ms)

    try:
        written(store, days(), cluster, only=ALL)
        with store.transaction() as connection:
            connection.execute(_PIECES, {"cluster": CLUSTER, "idle_every": 9})
        put_in_order(store)
        keep_counted(store, REGISTRY.values(), as_of_ms=at_ms, policy=Policy())
    finally:
        store.close()
    told = path.with_suffix(".news.parquet")
    pl.concat(news).write_parquet(told)
    return told


# One row per pod: all of its time has one cause, of every so many it is idle.
_PIECES: Final = """
insert into waste_piece by name
select
    cluster, workload_uid, pod_uid, attempt, node, gpu_model, '' as device, micro_gpus,
    bound_ms as start_ms, released_ms as end_ms,
    case when hash(workload_uid) % $idle_every = 0 then 'idle' else 'useful' end as cause,
    null as known_ms, 'useful' as earlier_cause, '' as may_be,
    hash(workload_uid) % $idle_every = 0 as charged, false as restart
from holding
where cluster = $cluster
order by end_ms nulls last
"""


class _Clock:
    """Shows what it is set to."""

    at_ms = 0

    def now_ms(self) -> int:
        """Milliseconds."""
        return self.at_ms


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """
    Measure at the end of a cluster's time, after a minute's news; all was measured a minute before.

    Returns:
        CPU seconds of that minute, by part; the number of series, and rows read from tables by all queries.
    """
    cluster = Cluster(**asked["cluster"])
    changed = pl.read_parquet(asked["news"])
    store, clock = Store.open(Path(asked["store"])), _Clock()
    # One, as in `serve`: what is measured by the hour only is not due again after a minute.
    answers = Answers(store, Tenancy(), Policy(), clock)
    measurer = Measurer(answers=answers, refresh=lambda: 1, publish=lambda *_: None)
    try:
        spent, series = dict[str, float](), 0
        for at_ms in (cluster.end_ms - MINUTE_MS, cluster.end_ms):
            clock.at_ms, began = at_ms, process_time()
            if at_ms == cluster.end_ms:
                rewritten(store, changed, cluster)
                spent["written"] = process_time() - began
                began = process_time()
            series = measurer.tick()
            spent["measured"] = process_time() - began
        rows = sum(scan.rows for scan in scans(store, cluster.end_ms, Policy()))
    finally:
        store.close()
    return {"spent": spent, "series": series, "rows": rows, "changed": changed.height}
