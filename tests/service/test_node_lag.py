"""Which nodes are late with GPU metrics: named with how late they are, in API, doctor and as a figure."""

from pathlib import Path

import polars as pl
import pytest

from api.answers import Question
from api.readiness import verbose
from domain.gpu_sample import GPU_METRICS
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import MS_PER_SECOND, FixedClock
from service import features
from service.answers import Answers
from service.cli.doctor import source_findings
from service.cli.finding import Verdict
from service.settings_file import load_settings
from store.embedded import Store
from store.gpu_samples import Read
from tests.build import at
from tests.golden.cases import fill
from tests.service.test_activity import COLUMNS, sample

STEP_MS = 60 * MS_PER_SECOND


def read_of(store: Store, *nodes: str, minutes: int) -> None:
    """One reading of a GPU of each of these nodes, which stands for a step of a minute."""
    rows = [sample(0, 0.5) | {"at_ms": at(minutes), "node": node, "step_ms": STEP_MS} for node in nodes]
    frame = pl.DataFrame(rows, schema=COLUMNS)
    read = Read(until_ms=at(minutes), seen_ms=at(minutes), error="")
    store.append_samples("east", "prometheus", frame, read)


def site(*, nodes: int) -> Store:
    """A Prometheus told of all nodes at minute 0; a few of them were never told of."""
    store = Store.open(None)
    named = [f"n{number}" for number in range(nodes)]
    fill(store, {"node_span": [{"node": node, "start_ms": at(-60), "end_ms": None} for node in named]})
    return store


def lags(store: Store, minutes: int, *by: str) -> dict[str, float | None]:
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(minutes)))
    rows = answers.metric("gpu_node_lag_seconds", Question(by=by)).rows
    return {row.labels[by[0]] if by else "": row.value for row in rows}


def test_each_node_has_its_lag_and_a_cluster_that_of_its_worst_however_many_there_are() -> None:
    store = site(nodes=4)
    read_of(store, "n0", "n1", "n2", minutes=0)
    read_of(store, "n0", "n1", minutes=20)
    read_of(store, "n0", minutes=40)
    # A reading stands for one and a half of its steps; n3 came an hour before minute 0.
    assert lags(store, 41, "node") == {
        "n0": 0.0,
        "n1": (21 - 1.5) * 60,
        "n2": (41 - 1.5) * 60,
        "n3": (41 + 60) * 60.0,
    }
    assert lags(store, 41, "cluster") == {"east": (41 + 60) * 60.0}
    # As it was known at an earlier instant.
    assert lags(store, 21, "node")["n1"] == 0.0
    store.close()


def test_late_nodes_are_named_worst_first_with_what_to_do_and_the_rest_is_counted(tmp_path: Path) -> None:
    store = site(nodes=7)
    read_of(store, "n0", "n1", "n2", "n3", "n4", minutes=0)
    read_of(store, "n0", "n1", "n2", "n3", minutes=5)
    read_of(store, "n0", minutes=100)
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(101)))
    rows = list(answers.sources().rows)
    store.close()
    settings = load_settings(overrides={"store.data_dir": tmp_path})
    found = {each.text: each.remedy for each in source_findings(rows, settings) if each.verdict != Verdict.OK}
    [never, stopped] = [text for text in found if "tell" in text or "told" in text]
    assert "no exporter tells of 2 nodes (n5 for 2 h 41 m, n6 for 2 h 41 m), of 7 with GPUs" in never
    assert "DaemonSet" in found[never]
    assert (
        "nothing is told any more of 4 nodes (n4 for 1 h 39 m, n1 for 1 h 34 m, n2 for 1 h 34 m and 1 more),"
        " of 7 with GPUs" in stopped
    )
    assert "does its pod run" in found[stopped]
    probe = verbose(rows)
    assert "nothing is told any more of 4 nodes" in probe
    # The source itself was read in time: a lag of its own does not show who is silent behind it.
    [source] = [row for row in rows if row["kind"] == GPU_METRICS]
    assert source["state"] == "read"


def test_a_cluster_of_which_nobody_tells_is_said_so_once_until_a_source_is_named(tmp_path: Path) -> None:
    settings = load_settings(overrides={"store.data_dir": tmp_path})
    store = site(nodes=2)
    # Nodes without GPUs, and such as are gone, are not counted.
    others = [
        {"node": "cpu", "start_ms": at(-60), "end_ms": None, "capacity_micro_gpus": 0},
        {"node": "gone", "start_ms": at(-60), "end_ms": at(-10)},
    ]
    fill(store, {"node_span": others})
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(1)))
    [gap] = [row for row in answers.sources().rows if "GPU metrics" in row["source"]]
    assert (gap["kind"], gap["missing"]) == ("gap", features.missing(GPU_METRICS))
    [told] = [one for one in source_findings([gap], settings) if "GPU metrics" in one.text]
    assert (told.verdict, "2 with GPUs" in told.text) == (Verdict.WARNING, True)
    assert "gpu_metrics" in told.remedy
    assert "GPU metrics of its nodes (2 with GPUs) were never read" in verbose([gap])
    store.mark_samples("east", {"prometheus": Read(until_ms=0, seen_ms=0, error="no answer")})
    assert [row["kind"] for row in answers.sources().rows] == [GPU_METRICS]
    # Named no more, and never read: it is said again.
    store.forget_unread(["east"], ["west"])
    assert [row["kind"] for row in answers.sources().rows] == ["gap"]
    read_of(store, "n0", minutes=0)
    store.forget_unread([], [])
    assert {row["source"] for row in answers.sources().rows} == {"prometheus", "nodes without samples"}
    # Of the time before its first sample it is said still.
    before = Answers(store, Tenancy(), Policy(), FixedClock(at(-30)))
    assert "GPU metrics" in {row["source"] for row in before.sources().rows}
    store.close()


@pytest.mark.parametrize(("minutes", "late"), [(16, 0.0), (17, 1.0)])
def test_a_node_is_late_after_the_time_that_the_policy_tolerates(minutes: int, late: float) -> None:
    store = site(nodes=2)
    read_of(store, "n0", "n1", minutes=0)
    read_of(store, "n0", minutes=minutes - 1)
    answers = Answers(store, Tenancy(), Policy(), FixedClock(at(minutes)))
    [row] = answers.metric("late_gpu_nodes", Question(by=())).rows
    store.close()
    # 15 minutes after a minute and a half.
    assert row.value == late
