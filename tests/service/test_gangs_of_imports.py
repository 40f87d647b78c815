"""By which size of gang a job from a table is counted."""

from pathlib import Path

from collector.imports.mapping import mapping_of
from collector.imports.table import NO_COUNT
from service.job_imports import import_jobs, table_source
from service.refresh import Refresher
from store.embedded import Store
from tests.golden.cases import values
from tests.service.test_job_imports import NOW_MS


def test_waits_by_size_of_gang_are_those_of_jobs_by_their_nodes(tmp_path: Path) -> None:
    (tmp_path / "jobs.csv").write_text(
        "id,submit,start,nodes,gpus\n1,2026-03-02T09:00:00,2026-03-02T09:10:00,,2\n"
        "2,2026-03-02T09:00:00,2026-03-02T09:20:00,4,32\n3,2026-03-02T09:00:00,2026-03-02T09:20:00,many,1\n"
    )
    columns = {name: name for name in ("id", "submit", "start", "nodes", "gpus")}
    store = Store.open(None)
    source = table_source(tmp_path / "jobs.csv", mapping_of({"columns": columns}, name="map.yaml"))
    summary = import_jobs(
        source, store, cluster="hpc", now_ms=NOW_MS, refresh=Refresher(store=store).refresh_cluster
    )
    assert (summary.jobs, summary.aside) == (2, {NO_COUNT: 1})
    found = values(store, "longest_queue_wait_seconds", "2026-03-02T10:00:00Z", by=("gang_size",))
    assert found == {("1",): 600, ("3-4",): 1200}
    # One pod stands for all nodes: the job is placed as soon as it starts.
    assert [row["gang_size"] for row in store.rows("select gang_size from workload order by all")] == [1, 4]
