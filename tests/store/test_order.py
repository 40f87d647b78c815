"""Tables are written anew where what counts lies among much that does not; no row is lost by that."""

from pathlib import Path

import polars as pl

from store.embedded import Store
from store.open_until import FOREVER

GROUP = 122_880


def scattered(store: Store, *, every: int) -> None:
    """Spans of four row groups of which one in so many goes on, in the order of their starts."""
    number = pl.int_range(4 * GROUP, eager=True)
    going_on = number % every == 0
    frame = pl.DataFrame({"number": number, "going_on": going_on}).select(
        cluster=pl.lit("c"),
        workload_uid=pl.format("w{}", "number"),
        state=pl.lit("running"),
        start_ms="number",
        end_ms=pl.when(~pl.col("going_on")).then(pl.col("number") + 1),
        start_earliest_ms=pl.lit(None, pl.Int64),
        reason=pl.lit(""),
        first_wait=pl.lit(value=False),
        open_until_ms=pl.when("going_on").then(FOREVER).otherwise(pl.col("number") + 1),
    )
    with store.transaction() as connection:
        connection.from_arrow(frame.to_arrow()).insert_into("span")
    store.fold()


def read(store: Store) -> int:
    """Rows that a question about the last instant reads."""
    question = "select max(state) as state from span where open_until_ms >= 491000"
    (told,) = store.rows(f"explain (analyze, format json) {question}")
    return int(str(told["explain_value"]).split('"total_rows_scanned": ')[1].split(",")[0])


def test_what_goes_on_comes_to_lie_together(tmp_path: Path) -> None:
    store = Store.open(tmp_path / "store.duckdb")
    scattered(store, every=30_000)
    everything = "select count(*) as rows, sum(start_ms) as starts, sum(end_ms) as ends from span"
    before = store.rows(everything)
    assert read(store) == 4 * GROUP
    assert store.put_in_order() == ["span"]
    assert read(store) == GROUP
    assert store.rows(everything) == before
    assert store.put_in_order() == []
    store.close()
