"""Cases of other products' bugs that are about the store: one writer, many readers, and a kill."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from collector.intake import Intake
from store.embedded import Store
from tests.shared import shared
from tests.store.killed_writer import CLUSTER, take_in
from tests.store.killing import stored, write_until_killed
from tests.store.owning import Owner

Case = dict[str, Any]


def case(name: str) -> tuple[Case, Case]:
    """Its data and what is expected."""
    folder = shared("data/cases") / name
    data = json.loads((folder / "input.json").read_text())["data"]
    return data, json.loads((folder / "expected.json").read_text())


def answer_to_o01(data: Case, path: Path) -> Case:
    with Owner(path) as owner:
        reads = []
        for second in range(1, data["writer_rows"] + 1):
            owner.write_after_a_second()
            if second % data["read_interval_s"] == 0:
                reads.append(owner.read())
        statuses, ages = zip(*reads, strict=True)
        return {
            "dashboard_reads_ok": statuses.count(200),
            "collector_writes_ok": owner.written,
            "max_staleness_s": max(ages),
            "user_visible_lock_errors": len(statuses) - statuses.count(200),
        }


def answer_to_o02(data: Case, path: Path) -> Case:
    write_until_killed(path, data["batches"])
    store = Store.open(path)
    intake = Intake(CLUSTER, store, store.known(CLUSTER))
    for batch in data["batches"]:
        if not batch["acked"]:
            take_in(intake, batch["rows"])
    rows = stored(store)
    return {"rows_after_recovery": [list(row) for row in rows], "duplicates": len(rows) - len(Counter(rows))}


@pytest.mark.long
def test_o01_pages_read_through_the_process_that_owns_the_file(tmp_path: Path) -> None:
    data, expected = case("O01-database-file-locked")
    answer = answer_to_o01(data, tmp_path / "store.duckdb")
    assert answer.pop("max_staleness_s") <= expected.pop("max_staleness_s")
    assert answer == expected


def test_o02_a_collector_that_is_killed_loses_and_doubles_nothing(tmp_path: Path) -> None:
    data, expected = case("O02-killed-during-ingest")
    answer = answer_to_o02(data, tmp_path / "store.duckdb")
    assert answer == {key: expected[key] for key in answer}
