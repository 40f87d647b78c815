"""The views that metrics read."""

import pytest

from store.embedded import Store
from store.migrate import migrations

VIEWS = sorted(
    line.split()[2]
    for migration in migrations()
    for line in migration.text.splitlines()
    if line.startswith("create view ")
)


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_of_an_empty_store_is_empty(store: Store, view: str) -> None:
    frame = store.frame("select * from query_table($view)".replace("$view", f"'{view}'"))
    assert frame.height == 0
    assert "cluster" in frame.columns


def test_every_view_is_tried(store: Store) -> None:
    rows = store.rows("select view_name from duckdb_views() where not internal order by view_name")
    assert [row["view_name"] for row in rows] == VIEWS
    assert "gpu_workload" in VIEWS
