"""Nothing that a researcher gets changes when foreign work moves among foreign teams and queues."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from alerts.whose import LEDGER_LABEL
from analytics.evaluate import evaluate, parameters
from analytics.folding import OTHERS, evaluate_seen, seen
from analytics.metrics import REGISTRY
from api.app import Api, create_app
from api.reports import REPORTS
from domain.errors import PolicyError
from domain.metric import LABELS, Ask, Metric, Row, Sample, Tells
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.view import View
from domain.window import FixedClock, Window, parse_duration, parse_instant
from service.answers import Answers
from store.embedded import Store
from tests.api.conftest import HEADER_AUTH, as_member
from tests.api.two_worlds import AS_OF, NAMES, world
from tests.golden.cases import fill

MOST_LABELS = 3
NOW_MS = parse_instant(AS_OF)
WINDOW = Window.before(NOW_MS, parse_duration("24h"))
# A value of each label in either world, an own one first; what is foreign is asked for all the same.
ASKED_FOR = {
    "team": ("red", "green"),
    "user_name": ("ada", "gustav"),
    "queue": ("main", "q-side", "q-far"),
    "pool": ("all/a100", "q-far/a100"),
    "priority_class": ("batch", "blue-only"),
    "gang_size": ("1", "5-8", "33+"),
    "node": ("n1", "n2"),
    "device": ("GPU-0", "GPU-8"),
    "service_class": ("interactive",),
}
Rows = Mapping[str, Sequence[Row]]


@dataclass(frozen=True, slots=True)
class World:
    """A store with the rows of each metric, and red's client of its API."""

    store: Store
    view: View
    rows: Rows
    red: TestClient
    admin: TestClient

    def told(self, name: str, ask: Ask) -> list[Sample]:
        """What red is told."""
        return evaluate_seen(REGISTRY[name], self.rows[name], ask, self.view)


@pytest.fixture(scope="module")
def worlds() -> Iterator[tuple[World, World]]:
    first, second = made(moved=False), made(moved=True)
    yield first, second
    first.store.close()
    second.store.close()


def made(*, moved: bool) -> World:
    store = Store.open(None)
    fill(store, world(moved=moved))
    answers = Answers(store, Tenancy(), Policy(), FixedClock(NOW_MS))
    app = create_app(Api(answers=answers, auth=HEADER_AUTH, metrics_text=lambda: b""))
    clients = [
        TestClient(app, base_url="http://127.0.0.1", headers=as_member(group))
        for group in ("red-people", "gpu-admins")
    ]
    rows = {
        name: store.rows(metric.sql, parameters(metric, Ask(window=WINDOW, by=())))
        for name, metric in REGISTRY.items()
    }
    return World(store, answers.view({"red"}, NOW_MS), rows, *clients)


def label_sets(metric: Metric) -> Iterator[tuple[str, ...]]:
    return chain.from_iterable(combinations(metric.dimensions, size) for size in range(MOST_LABELS + 1))


def questions(metric: Metric) -> Iterator[Ask]:
    """Every set of labels; and by nothing and by each label, filtered by each one."""
    for by in label_sets(metric):
        yield Ask(window=WINDOW, by=by)
    for label in metric.dimensions:
        for value in ASKED_FOR.get(label, ()):
            for by in ((), *((other,) for other in metric.dimensions)):
                yield Ask(window=WINDOW, by=by, filters={label: (value,)})


def named(samples: Sequence[Sample]) -> set[str]:
    """Foreign names among the labels."""
    return {value for sample in samples for value in sample.labels.values() if value.split("/")[0] in NAMES}


@pytest.mark.long
def test_foreign_work_that_moves_changes_no_answer(worlds: tuple[World, World]) -> None:
    first, second = worlds
    for name, metric in REGISTRY.items():
        for ask in questions(metric):
            told = first.told(name, ask)
            assert told == second.told(name, ask), (name, ask.by, ask.filters)
            assert not named(told), (name, ask.by, ask.filters)


def test_the_worlds_differ_in_every_metric_that_tells_whose_work_it_is(worlds: tuple[World, World]) -> None:
    # Else the test above could not fail.
    same = {
        name
        for name, metric in REGISTRY.items()
        if "team" in metric.dimensions
        and all(
            evaluate(metric, worlds[0].rows[name], ask) == evaluate(metric, worlds[1].rows[name], ask)
            for ask in questions(metric)
        )
    }
    assert same == set()


def test_others_are_computed_from_their_own_rows(worlds: tuple[World, World]) -> None:
    first, _ = worlds
    for name, metric in REGISTRY.items():
        if "team" not in metric.dimensions:
            continue
        foreign = [row for row in first.rows[name] if row["team"] not in {"red", None}]
        expected = evaluate_seen(metric, foreign, Ask(window=WINDOW, by=()), View(teams=frozenset()))
        told = [each for each in first.told(name, Ask(window=WINDOW, by=("team",)))
                if each.labels.get("team") == OTHERS]  # fmt: skip
        plain = [replace(each, labels={k: v for k, v in each.labels.items() if k != "team"}) for each in told]
        assert plain == (expected if foreign else []), name


def test_own_work_is_told_in_full(worlds: tuple[World, World]) -> None:
    first, _ = worlds
    for name, metric in REGISTRY.items():
        if "team" not in metric.dimensions:
            continue
        for by in label_sets(metric):
            if "team" not in by:
                continue
            everything = evaluate(metric, first.rows[name], Ask(window=WINDOW, by=by))
            # Examples are for whoever is paged, and for no viewer.
            own = [replace(each, example="") for each in everything if each.labels.get("team") == "red"]
            told = [each for each in first.told(name, Ask(window=WINDOW, by=by))
                    if each.labels.get("team") == "red"]  # fmt: skip
            assert told == own, (name, by)


def figures(world: World, name: str, *by: str) -> dict[tuple[str, ...], float | None]:
    return {tuple(each.labels.values()): each.value for each in world.told(name, Ask(window=WINDOW, by=by))}


def test_who_shares_a_queue_sees_how_many_wait_in_it(worlds: tuple[World, World]) -> None:
    # r1, r2 and b2 have left one waiting in main; b1 and g1 one each elsewhere.
    assert figures(worlds[0], "queue_depth_workloads", "queue") == {("main",): 3.0, (OTHERS,): 2.0}
    assert figures(worlds[0], "queue_depth_workloads", "queue", "team") == {
        ("main", OTHERS): 1.0,
        ("main", "red"): 2.0,
        (OTHERS, OTHERS): 2.0,
    }


def test_the_others_may_be_asked_for_as_a_sum_and_not_by_name(worlds: tuple[World, World]) -> None:
    path = "/api/v1/metrics/queue_depth_workloads"
    asked = {"by": "queue", "team": OTHERS}
    rows = worlds[0].red.get(path, params=asked).json()["rows"]
    assert {row["labels"]["queue"]: row["value"] for row in rows} == {"main": 1.0, OTHERS: 2.0}
    assert worlds[0].red.get(path, params={"team": "blue"}).status_code == 403
    assert worlds[0].red.get("/api/v1/workloads", params={"team": OTHERS}).status_code == 403


def test_waste_in_a_shared_queue_is_that_of_own_teams(worlds: tuple[World, World]) -> None:
    # Red's two idled for 1.5 h each, and the three others too.
    assert figures(worlds[0], "wasted_gpu_hours", "queue") == {("main",): 3.0, (OTHERS,): 4.5}


def test_what_is_free_or_held_on_a_node_is_told_without_whose_and_of_which_class(
    worlds: tuple[World, World],
) -> None:
    assert figures(worlds[0], "free_gpus", "node") == {("n1",): 5.0, ("n2",): 7.0, ("n3",): 7.0}
    assert figures(worlds[0], "held_gpus", "node") == {("n1",): 3.0, ("n2",): 1.0, ("n3",): 1.0}
    by_class = figures(worlds[0], "held_gpus", "node", "service_class")
    assert by_class == {
        ("n1", "batch"): 1.0,
        ("n1", "interactive"): 1.0,
        ("n1", OTHERS): 1.0,
        ("n2", OTHERS): 1.0,
        ("n3", OTHERS): 1.0,
    }


def test_fairness_of_an_own_pool_is_told_and_that_of_a_foreign_queue_is_not(
    worlds: tuple[World, World],
) -> None:
    assert figures(worlds[0], "jains_index_ratio", "pool") == {("all/a100",): 0.5, (OTHERS,): 0.5}
    assert figures(worlds[0], "quota_gpus", "pool", "queue") == {
        ("all/a100", "main"): 1.0,
        ("all/a100", OTHERS): 2.0,
        (OTHERS, OTHERS): 4.0,
    }


ROUTES = (
    *(f"metrics/{name}" for name in REGISTRY),
    *(f"reports/{name}" for name in REPORTS),
    "chargeback/2026-01",
    "chargeback/2026-01?by=queue",
    "chargeback/2026-01?queue=q-far",
    "quota/proposals",
    "teams",
    "workloads",
    "workloads?queue=q-far",
    "workloads/r1",
    "workloads/b1",
    "workloads/r1-waits/why",
    "workloads/r2-waits/why?as_of=2026-01-02T10:45:00Z",
    "workloads/b1-waits/why",
    "metrics/held_gpus?by=team,queue,node",
    "metrics/wasted_gpu_hours?by=node&queue=q-side",
    "metrics/queue_depth_workloads/range?by=team,queue&start=2026-01-02T08:00:00Z&end=2026-01-02T11:00:00Z&step=1h",
    "metrics/held_gpus/range?by=team,node&start=2026-01-02T08:00:00Z&end=2026-01-02T11:00:00Z&step=1h",
)  # fmt: skip


TABLES = ("chargeback/2026-01", "workloads", "teams", "metrics/wasted_gpu_hours?by=queue,node")


@pytest.mark.long
@pytest.mark.parametrize(("media_type", "routes"), [("application/json", ROUTES), ("text/csv", TABLES)])
def test_every_route_keeps_foreign_work_to_itself(
    worlds: tuple[World, World], media_type: str, routes: Sequence[str]
) -> None:
    first, second = worlds
    for route in routes:
        path, headers = f"/api/v1/{route}", {"Accept": media_type}
        told = first.red.get(path, headers=headers)
        assert told.text == second.red.get(path, headers=headers).text, route
        asked_for = route.partition("?")[2] + route.rpartition("/")[2]
        leaked = [name for name in NAMES if name in told.text and name not in asked_for]
        assert not leaked, (route, leaked)


def test_what_an_admin_was_told_is_kept_for_nobody_else(worlds: tuple[World, World]) -> None:
    world, _ = worlds
    for route in (one for one in ROUTES if "/why" in one):
        path = f"/api/v1/{route}"
        before = world.red.get(path).text
        assert world.admin.get(path).status_code == 200
        assert world.red.get(path).text == before, route


# The others have no section by team or queue, or nobody set a budget.
@pytest.mark.parametrize("name", sorted(REPORTS.keys() - {"budgets", "capacity", "fragmentation", "nodes"}))
def test_an_admin_sees_in_reports_what_the_worlds_differ_in(worlds: tuple[World, World], name: str) -> None:
    first, second = (world.admin.get(f"/api/v1/reports/{name}").text for world in worlds)
    assert first != second


def test_a_researcher_of_no_team_is_told_sums(worlds: tuple[World, World]) -> None:
    nobody = View(teams=frozenset())
    for name, metric in REGISTRY.items():
        ask = Ask(window=WINDOW, by=metric.labels)
        assert not named(evaluate_seen(metric, worlds[0].rows[name], ask, nobody)), name


def test_every_label_says_what_it_tells_of_whose_work_it_is() -> None:
    of_metrics = {
        label for metric in REGISTRY.values() for label in (*metric.dimensions, *metric.extra_labels)
    }
    # Alerts about the ledger itself have one that no metric has.
    assert of_metrics | {LEDGER_LABEL} == LABELS.keys()
    with pytest.raises(PolicyError, match="labels \\['rack'\\] are not in LABELS"):
        replace(REGISTRY["free_gpus"], dimensions=("cluster", "gpu_model", "node", "rack"))


def test_only_a_label_that_hides_something_is_opened_or_shared() -> None:
    for metric in REGISTRY.values():
        for label in (*metric.open_labels, *metric.shared_labels):
            assert label in metric.dimensions, metric.name
            assert LABELS[label] in {Tells.WHOSE, Tells.WHERE}, metric.name
        assert {*metric.shared_labels} <= {"queue", "pool"}, metric.name


def test_of_foreign_work_a_node_tells_only_how_much_of_it_is_held(worlds: tuple[World, World]) -> None:
    first, _ = worlds
    of_work = {
        name for name, metric in REGISTRY.items() if {"node", "team"} <= {*metric.dimensions}
    }  # fmt: skip
    assert {name for name in of_work if "node" in REGISTRY[name].open_labels} == {"held_gpus"}
    # Of which kind it is stays hidden there: only the number that capacity and free GPUs tell anyway.
    told = first.told("held_gpus", Ask(window=WINDOW, by=("team", "node", "service_class")))
    others = [one.labels for one in told if one.labels["team"] == OTHERS and one.value]
    assert others
    assert all(labels["node"] != OTHERS and labels["service_class"] == OTHERS for labels in others)
    promised = " ".join((Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8").split())
    assert "how many GPUs of each node are held and free" in promised


def test_a_row_that_says_nothing_of_a_label_does_not_begin_to() -> None:
    metric = REGISTRY["held_gpus"]
    row = dict.fromkeys(metric.dimensions) | {"cluster": "east", "value": 0}
    ask = Ask(window=WINDOW, by=("team", "queue"))
    assert seen(metric, [row], ask, View(teams=frozenset({"red"}))) == [row]
