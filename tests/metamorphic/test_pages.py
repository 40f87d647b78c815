"""A recording with one job removed changes exactly the figures that should change, on the pages."""

import os
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import pairwise

import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from api.server import Server
from dashboard.shared import data
from dashboard.shared import format as text
from dashboard.shared.launch import APP
from sample_data.generate import END
from tests.metamorphic.rendering import changed, rendering, seen
from tests.metamorphic.worlds import Json, Pair, PairOf, World, held_now, truth, waits_now

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

STORIES = ("runs", "waits")
AS_OF = f"as of {text.instant(text.parse_instant(END))}"
CLASSES = ("interactive", "batch", "best_effort")
Open = Callable[..., AppTest]


@pytest.fixture
def open_page(monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """Opens a page, by its file's name, on the API of a world that is really served."""
    with ExitStack() as servers:

        def opened(page: str, world: World, /, **params: str) -> AppTest:
            st.cache_data.clear()
            server = servers.enter_context(Server(world.app, "127.0.0.1", 0))
            monkeypatch.setitem(os.environ, data.API_URL, server.url)
            app = AppTest.from_file(str(APP), default_timeout=60)
            app.switch_page(f"views/{page}.py")
            for name, value in params.items():
                app.query_params[name] = value
            return app.run()

        yield opened
        st.cache_data.clear()


@pytest.fixture(params=STORIES)
def pair(request: pytest.FixtureRequest, pair_of: PairOf) -> Pair:
    return pair_of(request.param)


def test_home_shows_the_changed_figures_and_no_others(pair: Pair, open_page: Open) -> None:
    before, after = (rendering(open_page("home", world)) for world in (pair.before, pair.after))
    was, now = _home_figures(pair.before), _home_figures(pair.after)
    assert {name: before.tiles[name].split(" | ")[0] for name in was} == was
    assert {name: after.tiles[name].split(" | ")[0] for name in now} == now
    assert changed(before.tiles, after.tiles) == changed(was, now)
    held = sum(pod["gpus"] for pod in held_now(pair.truth))
    assert (
        bool(held) == ("Free, GPUs #1" in changed(was, now)) == ("Held by pods, GPUs #1" in changed(was, now))
    )
    assert waits_now(pair.truth) == ("Waiting, workloads #1" in changed(was, now))
    assert before.choices == after.choices
    name = _name(pair)
    others = [row for row in before.rows if row != name]
    assert after.rows == others
    assert {row for row, _ in changed(before.cells, after.cells)} == (
        {name} if name in before.rows else set()
    )
    assert (name in before.rows) == waits_now(pair.truth)
    assert _depth(pair.before) - _depth(pair.after) == waits_now(pair.truth)
    lost, gained = before.texts - after.texts, after.texts - before.texts
    if waits_now(pair.truth):  # the only one: what tells of the waiting gives way to one sentence
        assert others == []
        assert lost == Counter(
            {
                ("caption", f"1 of 1 waiting workload · {AS_OF}"): 1,
                ("subheader", "Queue depth by class, workloads"): 1,
                ("caption", AS_OF): 1,
            }
        )
        assert gained == Counter({("success", "Nobody waits for GPUs."): 1})
        assert (len(before.points), len(after.points)) == (1, 0)
    else:  # its wait of 70 minutes was the only broken promise
        assert lost == Counter({("error", "Past target: batch (p99)."): 1})
        assert gained == Counter({("success", "Every class is within its target."): 1})
        assert before.points == after.points


def test_queues_show_other_figures_in_the_jobs_own_line_only(pair: Pair, open_page: Open) -> None:
    pages = [open_page("queues", world, order="name") for world in (pair.before, pair.after)]
    before, after = (rendering(page, row_name=2, table=0) for page in pages)
    was, now = _queue_figures(pair.before), _queue_figures(pair.after)
    assert {cell: seen(before.cells[cell]) for cell in was} == was
    assert {cell: seen(after.cells[cell]) for cell in now} == now
    assert changed(before.cells, after.cells) == changed(was, now)
    line = f"{pair.truth['namespace']} · {text.class_name(pair.truth['service_class'])}"
    assert {row for row, _ in changed(was, now)} == {line}
    # What is waited for, most first; where the time goes by line; how sure percentiles are by class; flows.
    queue, service_class = line.split(" · ")
    for table, row_name, its_own in ((1, 1, queue), (2, 2, line), (3, 1, service_class), (4, 1, queue)):
        more, less = (rendering(page, row_name=row_name, table=table) for page in pages)
        assert {row for row, _ in changed(more.cells, less.cells)} == {its_own}
        assert Counter(more.rows) == Counter(less.rows)
    assert before.rows == after.rows
    assert before.choices == after.choices
    lost, gained = (_but_hours(texts) for texts in (before.texts - after.texts, after.texts - before.texts))
    expected_lines = {line}
    if waits_now(pair.truth):
        assert lost == Counter({("subheader", "GPUs asked by waiting workloads, now"): 1})
        expected_lines.add(pair.truth["namespace"])  # the queue's bar of GPUs asked
    else:
        assert not lost
    assert not gained
    assert {drawn for _, drawn in changed(before.points, after.points)} == expected_lines


def _but_hours(texts: Counter[tuple[str, str]]) -> Counter[tuple[str, str]]:
    """Without the sentence that sums the hours waited, which the job's own are part of."""
    return Counter({text: n for text, n in texts.items() if "hours waited" not in text[1]})


def test_jobs_lose_that_row_and_no_other(pair: Pair, open_page: Open) -> None:
    asked = {
        "queue": pair.truth["namespace"],
        "class": pair.truth["service_class"],
        "sort": "-queue_wait_seconds",
    }
    before, after = (rendering(open_page("jobs", world, **asked)) for world in (pair.before, pair.after))
    name = _name(pair)
    assert name in before.rows
    others = [row for row in before.rows if row != name]
    # What stood on the second page moves up; no row changes, and the order stays.
    assert after.rows[: len(others)] == others
    moved_up = after.rows[len(others) :]
    assert len(moved_up) <= 1
    assert {row for row, _ in changed(before.cells, after.cells)} == {name, *moved_up}
    assert before.choices == after.choices
    total = sum(
        all(one[key] == pair.truth[key] for key in ("namespace", "service_class")) for one in truth().values()
    )
    assert before.texts - after.texts == Counter({("caption", _range(len(before.rows), total)): 1})
    assert after.texts - before.texts == Counter({("caption", _range(len(after.rows), total - 1)): 1})


def test_a_page_of_jobs_that_does_not_hold_it_changes_its_count_only(pair: Pair, open_page: Open) -> None:
    before, after = (rendering(open_page("jobs", world)) for world in (pair.before, pair.after))
    assert _name(pair) not in before.rows  # newest first, and it is old
    assert (before.cells, before.rows, before.tiles) == (after.cells, after.rows, after.tiles)
    total = len(truth())
    assert before.texts - after.texts == Counter({("caption", _range(25, total)): 1})
    assert after.texts - before.texts == Counter({("caption", _range(25, total - 1)): 1})


def test_sources_do_not_change(pair: Pair, open_page: Open) -> None:
    before, after = (
        rendering(open_page("sources", world), row_name=2) for world in (pair.before, pair.after)
    )
    assert len(before.rows) > 5
    assert before == after


def test_the_jobs_own_page_says_that_there_is_none(pair: Pair, open_page: Open) -> None:
    before, after = (rendering(open_page("job", world, uid=pair.uid)) for world in (pair.before, pair.after))
    assert not [told for kind, told in before.texts if kind == "warning"]
    assert ("title", _name(pair)) in before.texts
    (warning,) = [told for kind, told in after.texts if kind == "warning"]
    assert warning.startswith(f"**Not found.** workload '{pair.uid}': there is none that you may see")
    assert not after.tiles
    assert not after.cells


def test_the_page_of_its_neighbour_in_the_queue_does_not_change(pair: Pair, open_page: Open) -> None:
    ordered = sorted(
        (one for one in truth().values() if one["namespace"] == pair.truth["namespace"]),
        key=lambda one: float(one["submitted"]),
    )
    neighbour = next(later for one, later in pairwise(ordered) if one["uid"] == pair.uid)
    before, after = (
        rendering(open_page("job", world, uid=neighbour["uid"])) for world in (pair.before, pair.after)
    )
    assert before.cells
    assert before == after


# ------------------------------------------------------------ what must be shown, from the API


def _rows(world: World, metric: str, by: str = "") -> list[dict[str, Json]]:
    rows: list[dict[str, Json]] = world.get(f"metrics/{metric}", by=by)["rows"]
    return rows


def _shown(row: dict[str, Json], unit: str) -> str:
    return text.bounded(row["value"], unit, lower_bound=row["lower_bound"], few=row["few"])


def _depth(world: World) -> float:
    return float(sum(row["value"] for row in _rows(world, "queue_depth_workloads")))


def _home_figures(world: World) -> dict[str, str]:
    """Values of the tiles: of the cluster, and of each class."""
    tiles = {
        "Waiting, workloads #1": "queue_depth_workloads",
        "Free, GPUs #1": "free_gpus",
        "Held by pods, GPUs #1": "held_gpus",
        "Quota reserved, GPUs #1": "reserved_gpus",
        "Preemptions, last 24 h #1": "preemptions_total",
    }
    found = {tile: _shown(_rows(world, metric)[0], "gpus") for tile, metric in tiles.items()}
    for row in _rows(world, "queue_wait_seconds", "service_class"):
        if (row["labels"]["quantile"], row["labels"]["estimator"]) == ("0.99", "censored"):
            number = CLASSES.index(row["labels"]["service_class"]) + 1
            found[f"p99 queue wait #{number}"] = _shown({**row, "few": False}, "seconds")
    for row in _rows(world, "starvation_index_seconds", "service_class"):
        number = CLASSES.index(row["labels"]["service_class"]) + 1
        found[f"Longest wait now #{number}"] = _shown(row, "seconds")
    return found


def _queue_figures(world: World) -> dict[tuple[str, str], str]:
    """Cells of the table of queues, by line and column."""
    columns = {
        "Waiting": ("queue_depth_workloads", "workloads"),
        "GPUs asked": ("queue_depth_gpus", "gpus"),
        "Longest wait now": ("starvation_index_seconds", "seconds"),
        "Past target": ("past_target_workloads", "workloads"),
    }
    by = "queue,service_class"
    found = {
        (_line(row), column): _shown(row, unit)
        for column, (metric, unit) in columns.items()
        for row in _rows(world, metric, by)
    }
    waits = {
        ("0.5", "censored"): "p50 wait",
        ("0.9", "censored"): "p90 wait",
        ("0.99", "censored"): "p99 wait",
        ("0.99", "started"): "p99 of started",
    }
    for row in _rows(world, "queue_wait_seconds", by):
        column = waits.get((row["labels"]["quantile"], row["labels"]["estimator"]))
        if column is not None:
            found[_line(row), column] = _shown(row, "seconds")
    return found


def _line(row: dict[str, Json]) -> str:
    return f"{row['labels']['queue'] or '(no queue)'} · {text.class_name(row['labels']['service_class'])}"


def _name(pair: Pair) -> str:
    return f"{pair.truth['namespace']}/{pair.truth['name']}"


def _range(rows: int, total: int) -> str:
    return f"1 to {rows} of {total} workloads · {AS_OF}"
