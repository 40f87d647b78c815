"""Imports of counts of queues through the store, and the command."""

import gzip
from pathlib import Path

import pytest

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from collector.imports.row import OF_THE_FUTURE
from collector.imports.state_table import NO_COUNT, StateMapping, state_mapping_of
from collector.imports.states import CONTRADICTS
from domain.errors import RecordingError
from domain.metric import Ask
from domain.queue_state import Counts, QueueState
from domain.window import MS_PER_HOUR, Window, parse_duration, parse_instant
from service import state_imports
from service.cli import run
from service.imported_file import CUT_OFF, OTHER_CLUSTER
from service.state_imports import StateSummary, import_states, state_source
from store import retention
from store.embedded import Store
from tests.golden.cases import values

MAPPING = """
columns: {at: at, queue: vc, cluster: site, waiting_jobs: wait, held_gpus: held, total_gpus: gpus}
step: 1m
"""
READ = state_mapping_of(
    {
        "columns": {
            "at": "at", "queue": "vc", "cluster": "site", "waiting_jobs": "wait", "held_gpus": "held",
            "total_gpus": "gpus",
        }
    },
    name="map.yaml",
)  # fmt: skip
NINE = parse_instant("2026-03-02T09:00:00Z")


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(["at,vc,site,wait,held,gpus", *lines]) + "\n")
    return path


def line(minute: int, *, vc: str = "a", site: str = "", wait: int | str = 0, held: int = 4) -> str:
    return f"2026-03-02T09:{minute:02}:00,{vc},{site},{wait},{held},8"


def take(
    store: Store, path: Path, *, cluster: str | None = "earth", mapping: StateMapping = READ
) -> StateSummary:
    return import_states(
        state_source(path, mapping), store, mapping, cluster=cluster, now_ms=NINE + 24 * MS_PER_HOUR
    )


def kept(store: Store) -> list[dict[str, object]]:
    return store.rows("select * from queue_state order by all")


def test_a_table_of_counts_is_kept_as_stretches_and_agrees_with_the_file(tmp_path: Path) -> None:
    store = Store.open(None)
    path = write(tmp_path / "states.csv", line(0), line(1), line(2, wait=3), line(0, vc="b", held=8))
    summary = take(store, path)
    one = summary.clusters["earth"]
    assert (summary.lines, one.new, one.known, one.stretches, summary.closes) == (4, 4, 0, 3, True)
    assert store.clusters() == ["earth"]
    assert store.queue_states("earth", ["a"], from_ms=NINE, to_ms=NINE + 600_000)["a"] == [
        QueueState(
            queue="a",
            start_ms=NINE + start * 60_000,
            end_ms=NINE + end * 60_000,
            counts=Counts(
                waiting_workloads=wait,
                held_micro_gpus=4_000_000,
                idle_micro_gpus=4_000_000,
                total_micro_gpus=8_000_000,
            ),
        )
        for start, end, wait in ((0, 2, 0), (2, 3, 3))
    ]
    assert one.closing is not None
    lines = {each.queue: each for each in one.closing.lines}
    assert (lines["a"].file_rows, lines["a"].books_rows) == (3, 3)
    assert lines["a"].file_waiting_hours == lines["a"].books_waiting_hours == 3 / 60
    assert lines["b"].file_held_hours == lines["b"].books_held_hours == 8 / 60


def test_a_second_import_changes_nothing_and_a_longer_file_adds_what_is_new(tmp_path: Path) -> None:
    store = Store.open(None)
    path = write(tmp_path / "states.csv", line(0), line(1, wait="many"), line(2, wait=1))
    first = take(store, path)
    before, aside = kept(store), store.set_aside_counts()
    assert first.aside == {NO_COUNT: 1}
    again = take(store, path)
    assert (again.clusters["earth"].new, again.clusters["earth"].known, again.closes) == (0, 2, True)
    assert (kept(store), store.set_aside_counts()) == (before, aside)
    longer = take(store, write(path, line(0), line(1, wait="many"), line(2, wait=1), line(3, wait=2)))
    assert (longer.clusters["earth"].new, longer.clusters["earth"].known) == (1, 2)
    assert store.set_aside_counts() == aside


def test_pieces_and_runs_of_a_file_are_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [line(minute, wait=minute // 3) for minute in range(12)]
    asked = "queue_state_seconds", "2026-03-02T10:00:00Z"
    whole = Store.open(None)
    take(whole, write(tmp_path / "states.csv", *rows))
    monkeypatch.setattr(state_imports, "PART_ROWS", 5)
    cut = Store.open(None)
    assert take(cut, write(tmp_path / "states.csv", *rows)).closes
    assert len(kept(cut)) > len(kept(whole))
    assert values(cut, *asked, by=("queue",)) == values(whole, *asked, by=("queue",))


def test_a_row_that_contradicts_is_set_aside_and_the_first_one_stays(tmp_path: Path) -> None:
    store = Store.open(None)
    summary = take(store, write(tmp_path / "states.csv", line(0), line(0, wait=5)))
    assert (summary.aside, summary.closes) == ({CONTRADICTS: 1}, True)
    other = take(store, write(tmp_path / "other.csv", line(0, wait=7)))
    assert (other.aside, other.clusters["earth"].known) == ({CONTRADICTS: 1}, 0)
    assert [row["waiting_workloads"] for row in kept(store)] == [0]


def test_a_row_names_its_cluster_and_a_given_name_means_that_of_the_first(tmp_path: Path) -> None:
    path = write(tmp_path / "states.csv", line(0, site="mars"), line(0, site="venus"))
    store = Store.open(None)
    assert take(store, path, cluster=None).clusters.keys() == {"mars", "venus"}
    named = take(Store.open(None), path, cluster="red")
    assert named.clusters.keys() == {"red"}
    assert named.aside == {OTHER_CLUSTER: 1}


def test_a_row_of_the_future_is_set_aside(tmp_path: Path) -> None:
    store = Store.open(None)
    ahead = line(2).replace("2026-03-02", "2226-03-02")
    summary = take(store, write(tmp_path / "states.csv", line(0), ahead))
    assert (summary.aside, summary.closes) == ({OF_THE_FUTURE: 1}, True)
    assert [row["start_ms"] for row in kept(store)] == [NINE]


def test_a_file_that_is_cut_off_is_read_up_to_there(tmp_path: Path) -> None:
    whole = write(tmp_path / "states.csv", *(line(minute, wait=minute) for minute in range(60)))
    packed = tmp_path / "states.csv.gz"
    packed.write_bytes(gzip.compress(whole.read_bytes())[:-60])
    summary = take(Store.open(None), packed)
    assert summary.aside == {CUT_OFF: 1}
    assert summary.lines == summary.clusters["earth"].new + 1 > 20
    assert summary.closes
    packed.write_bytes(b"")
    with pytest.raises(RecordingError, match=r"states\.csv\.gz"):
        take(Store.open(None), packed)


def test_what_is_kept_of_a_queue_ends_with_its_retention(tmp_path: Path) -> None:
    store = Store.open(None)
    take(store, write(tmp_path / "states.csv", line(0), line(10, wait=1)))
    retention.drop_before(store, store.clusters(), NINE + 300_000)
    assert [row["start_ms"] for row in kept(store)] == [NINE + 600_000]


def test_the_command_imports_and_the_metrics_tell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "map.yaml").write_text(MAPPING)
    path = write(tmp_path / "states.csv", line(0, wait=2, held=8), line(1, wait=1, held=6), line(2))
    data = ["--data-dir", str(tmp_path / "data")]
    done = run(["import", "states", str(path), "--mapping", str(tmp_path / "map.yaml"), *data])
    told = capsys.readouterr().out
    assert done == 0, told
    assert "states: the books agree with the file" in told
    assert "3 rows new, 0 known between 2026-03-02T09:00:00.000Z and 2026-03-02T09:02:00.000Z" in told
    asked = [
        "metrics",
        "queue_state_seconds",
        "--as-of",
        "2026-03-02T09:03:00Z",
        "--window",
        "3m",
        "-o",
        "csv",
    ]
    assert run([*asked, "--by", "queue", "--queue", "a", *data]) == 0
    rows = [row.split(",") for row in capsys.readouterr().out.splitlines()]
    found = {row[rows[0].index("condition")]: row[rows[0].index("value")] for row in rows[1:]}
    assert found["waiting"] == "120.0"
    assert found["full_while_waiting"] == "60.0"


def test_a_figure_as_of_an_instant_knows_nothing_of_later(tmp_path: Path) -> None:
    store = Store.open(None)
    take(store, write(tmp_path / "states.csv", *(line(minute, wait=1) for minute in range(9))))
    assert values(store, "queue_state_seconds", "2026-03-02T09:03:30Z")["waiting",] == 210
    ask = Ask(window=Window.before(NINE, parse_duration("1h")), by=())
    metric = REGISTRY["queue_state_seconds"]
    [sample] = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
    assert sample.value is None


def test_what_is_set_aside_alone_is_dated_by_the_import(tmp_path: Path) -> None:
    store = Store.open(None)
    take(store, write(tmp_path / "states.csv", "yesterday,a,,0,4,8"))
    [row] = store.rows("select observed_ms as at_ms from set_aside")
    assert row["at_ms"] == NINE + 24 * MS_PER_HOUR
