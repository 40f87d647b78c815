"""How much of a window was observed, and what is said where nothing was: one rule for every figure."""

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import polars as pl
import pytest

from analytics.metrics import REGISTRY
from api.answers import ListQuestion, Question
from api.scope import scoped
from api.viewer import Role, Viewer
from collector.recording import import_recording
from domain.calendar import Period
from domain.errors import UsageError
from domain.facts import Batch, ObjectKind, SourceMark
from domain.observed import Stretch
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import MS_PER_HOUR, FixedClock, Window, parse_instant
from sample_data.fortnight import END, FORTNIGHT
from service.answers import Answers
from service.observation import share_of_window
from service.quota_evidence import evidence
from store.embedded import Store
from store.gpu_samples import Read
from tests.build import Books, at, busy_morning, make_workload
from tests.quota_site import END as WEEK_END
from tests.quota_site import MONDAY, POOL, site
from tests.service.test_activity import COLUMNS, sample

HOUR = timedelta(hours=1)
WEEK = Period(label="2026-W10", start_ms=MONDAY, end_ms=WEEK_END)


@pytest.fixture
def store() -> Iterator[Store]:
    store = Store.open(None)
    yield store
    store.close()


def seen(store: Store, kind: ObjectKind, *minutes: tuple[float, float], cluster: str = "north") -> None:
    stretches = [Stretch(start_ms=at(start), end_ms=at(end)) for start, end in minutes]
    mark = SourceMark(kind=kind, resource_version="1", epoch=0, seen_ms=stretches[-1].end_ms)
    store.append(Batch(cluster=cluster, marks={kind: mark}, sights={kind: stretches}))


def share(
    store: Store, start: float, end: float, *, samples: bool = False, clusters: tuple[str, ...] = ()
) -> Fraction | None:
    window = Window(start_ms=at(start), end_ms=at(end))
    return share_of_window(store, window, policy=Policy(), samples=samples, clusters=clusters)


def answers(store: Store, minutes: float = 180) -> Answers:
    return Answers(store, Tenancy(), Policy(), FixedClock(at(minutes)))


# ------------------------------------------------------------ how much


def test_a_window_that_begins_before_the_first_reading_was_observed_in_part(store: Store) -> None:
    seen(store, ObjectKind.POD, (60, 120))
    assert share(store, 0, 120) == Fraction(1, 2)
    assert share(store, 60, 120) == 1
    assert share(store, 0, 61) == Fraction(1, 61)
    # Of clusters that nobody knows, or knew by then, nothing can be said.
    assert share(store, 0, 60) is None
    assert share(store, 0, 120, clusters=("south",)) is None


def test_a_gap_between_two_lists_is_missing_and_one_within_the_patience_is_none(store: Store) -> None:
    seen(store, ObjectKind.POD, (0, 20), (22, 40), (50, 60))
    # It counts as stale 3 minutes after the sight of minute 40: 7 of 60 minutes are missing.
    assert share(store, 0, 60) == Fraction(53, 60)
    assert share(store, 0, 41) == 1


def test_all_that_tells_must_be_observed_at_once_and_what_tells_nothing_of_work_need_not(
    store: Store,
) -> None:
    seen(store, ObjectKind.POD, (0, 27), (60, 60))
    seen(store, ObjectKind.NODE, (30, 60))
    seen(store, ObjectKind.RESOURCE_FLAVOR, (0, 0))
    assert share(store, 0, 60) == 0
    seen(store, ObjectKind.POD, (45, 60))
    assert share(store, 0, 60) == Fraction(15, 60)


def test_a_kind_that_may_not_be_read_leaves_nothing_observed(store: Store) -> None:
    seen(store, ObjectKind.POD, (0, 60))
    never = SourceMark(kind=ObjectKind.WORKLOAD, resource_version="", epoch=0, seen_ms=0, last_error="no")
    store.append(Batch(cluster="north", marks={ObjectKind.WORKLOAD: never}))
    assert share(store, 0, 60) == 0
    absent = SourceMark(
        kind=ObjectKind.WORKLOAD, resource_version="", epoch=0, seen_ms=0, last_error="not_installed: it"
    )
    store.append(Batch(cluster="north", marks={ObjectKind.WORKLOAD: absent}))
    assert share(store, 0, 60) == 1


def test_clusters_count_alike(store: Store) -> None:
    seen(store, ObjectKind.POD, (0, 60))
    seen(store, ObjectKind.POD, (45, 60), cluster="south")
    assert share(store, 0, 60) == Fraction(60 + 15, 120)
    assert share(store, 0, 60, clusters=("south",)) == Fraction(1, 4)


def test_what_gpus_did_is_covered_where_a_source_told_of_their_node(store: Store) -> None:
    books = Books()
    for node in ("n1", "n2"):
        books.add(
            "node_span", node=node, gpu_model="A100", start_ms=at(0), end_ms=None, schedulable=True,
            capacity_micro_gpus=8_000_000, allocatable_micro_gpus=8_000_000,
        )  # fmt: skip
    make_workload(books, "w", submitted=0)
    books.write(store)  # read from minute 0 to 180
    assert share(store, 0, 60, samples=True) == 1  # nobody samples this cluster
    frame = pl.DataFrame(
        [sample(0, 0.5) | {"at_ms": at(minute), "node": "n1", "step_ms": 60_000} for minute in range(30)],
        schema=COLUMNS,
    )
    store.append_samples("north", "exporter/n1", frame, Read(until_ms=at(30), seen_ms=at(30)))
    # The last sample stands for a minute and a half; of the other node there is none.
    assert share(store, 0, 60, samples=True) == Fraction(30 * 60 + 30, 2 * 3600)
    assert share(store, 0, 60) == 1


def test_what_moves_a_quota_has_the_coverage_of_the_same_figure_elsewhere() -> None:
    """Without samples of half of the week, on less than 90 % of it nothing moves."""
    week = site()
    step_ms = MS_PER_HOUR // 2
    half = [sample(0, 0.5) | {"at_ms": MONDAY + i * step_ms, "step_ms": step_ms} for i in range(168)]
    read = Read(until_ms=half[-1]["at_ms"], seen_ms=half[-1]["at_ms"])
    assert evidence(week.store, "c", WEEK, week.policy).of(POOL, "red").coverage == 1
    week.store.append_samples("c", "exporter/n1", pl.DataFrame(half, schema=COLUMNS), read)
    found = evidence(week.store, "c", WEEK, week.policy).of(POOL, "red")
    told = Answers(week.store, Tenancy(), Policy(), FixedClock(WEEK.end_ms)).metric(
        "hell_ratio", Question(as_of_ms=WEEK.end_ms, window=timedelta(days=7), filters={"queue": ("red",)})
    )
    assert told.coverage == float(found.coverage) == pytest.approx(84.25 / 168)
    assert [row.value for row in told.rows] == [pytest.approx(float(found.ratio or 0))]
    assert week.proposer.refresh("c", WEEK.end_ms + 1) == 0


def test_asked_later_a_figure_has_the_coverage_that_it_had(store: Store) -> None:
    seen(store, ObjectKind.POD, (0, 30))
    whole = answers(store, 60)
    asked = Question(as_of_ms=at(60), window=HOUR)
    names = [name for name, metric in REGISTRY.items() if metric.dimensions]
    first = {name: whole.metric(name, asked).coverage for name in names}
    # After 33 minutes it was stale.
    assert {first["queue_wait_seconds"], first["held_gpus"]} == {33 / 60, 0.0}
    resumed = Stretch(start_ms=at(90), end_ms=at(120), resumed=True)
    mark = SourceMark(kind=ObjectKind.POD, resource_version="9", epoch=0, seen_ms=at(120))
    store.append(Batch(cluster="north", marks={ObjectKind.POD: mark}, sights={ObjectKind.POD: [resumed]}))
    later = answers(store, 120)
    assert {name: later.metric(name, asked).coverage for name in names} == first
    # At 120 it is known that the watch had gone on, and had missed nothing.
    assert later.metric("queue_wait_seconds", Question(window=2 * HOUR)).coverage == 1.0


def test_a_sight_at_the_very_instant_of_the_question_counts_as_on_the_page_of_sources(store: Store) -> None:
    seen(store, ObjectKind.POD, (0, 0))
    resumed = [Stretch(start_ms=at(minute), end_ms=at(minute), resumed=True) for minute in (60, 120)]
    windowed, instant = Question(as_of_ms=at(60), window=HOUR), Question(as_of_ms=at(60))

    def told(minutes: float) -> tuple[float | None, float | None, float | None]:
        asked = answers(store, minutes)
        [source] = [row for row in asked.sources(at(60)).rows if row["kind"] == ObjectKind.POD]
        coverage = (asked.metric(name, ask).coverage for name, ask in (
            ("queue_wait_seconds", windowed), ("held_gpus", instant)))  # fmt: skip
        return (*coverage, source["lag_seconds"])

    for sight in resumed:
        mark = SourceMark(kind=ObjectKind.POD, resource_version="9", epoch=0, seen_ms=sight.end_ms)
        store.append(Batch(cluster="north", marks={ObjectKind.POD: mark}, sights={ObjectKind.POD: [sight]}))
        # First asked at that instant, then an hour later: what was known is the same.
        assert told((sight.end_ms - at(0)) / 60_000) == (1.0, 1.0, 0.0)
    # One that begins there tells nothing of the time before.
    seen(store, ObjectKind.POD, (60, 120), cluster="south")
    assert share(store, 0, 60, clusters=("south",)) is None


def test_half_of_four_weeks_is_said_of_a_recording_of_two(store: Store, tmp_path: Path) -> None:
    for name in ("nodes", "clusterqueues"):
        for file in FORTNIGHT.glob(f"{name}.*"):
            shutil.copy(file, tmp_path)
    import_recording(tmp_path, "sample", store)
    asked = Question(as_of_ms=parse_instant(END), window=timedelta(days=28))
    answer = Answers(store, Tenancy(), Policy(), FixedClock(parse_instant(END))).metric(
        "queue_wait_seconds", asked
    )
    # The watch begins with its first bookmark, two minutes after the start.
    assert answer.coverage == pytest.approx(0.5, abs=0.0001)
    recent = Question(as_of_ms=parse_instant(END), window=HOUR)
    told = Answers(store, Tenancy(), Policy(), FixedClock(parse_instant(END)))
    assert told.metric("queue_wait_seconds", recent).coverage == 1.0
    # Of any instant of the past too, sources were read in time: bookmarks come well within the patience.
    for hours in (1.77, 50.3, 301.01):
        past = Question(as_of_ms=parse_instant(END) - int(hours * 3_600_000))
        assert told.metric("held_gpus", past).coverage == 1.0


# ------------------------------------------------------------ where nothing is known


def test_before_the_first_reading_of_a_cluster_a_figure_is_undefined_and_not_zero(store: Store) -> None:
    busy_morning().write(store)  # read from 9:00 on
    for name in ("held_gpus", "capacity_gpus", "queue_depth_workloads", "queue_depth_gpus"):
        [row] = answers(store).metric(name, Question(as_of_ms=at(0), by=())).rows
        assert row.value is None
        assert row.undefined_because == (
            "nothing had been read of cluster north by then: the first reading was at"
            " 2026-03-02T09:00:00.000Z"
        )
        [row] = answers(store).metric(name, Question(as_of_ms=at(1), by=())).rows
        assert row.value is not None or "read" not in row.undefined_because


def test_of_two_clusters_only_the_one_that_was_read_tells(store: Store) -> None:
    for cluster in ("north", "south"):
        books = Books(cluster=cluster)
        make_workload(books, f"w-{cluster}", submitted=0)
        store.write_lives(cluster, [f"w-{cluster}"], books.tables, ("lives", 1))
    seen(store, ObjectKind.POD, (10, 180))
    seen(store, ObjectKind.POD, (60, 180), cluster="south")

    def clusters(minutes: float) -> set[str]:
        asked = Question(as_of_ms=at(minutes), by=("cluster",))
        return {row.labels["cluster"] for row in answers(store).metric("held_gpus", asked).rows if row.labels}

    assert (clusters(5), clusters(30), clusters(61)) == (set(), {"north"}, {"north", "south"})


@pytest.mark.parametrize("ask", ["metric", "workloads", "workload", "teams", "sources", "chargeback"])
def test_no_question_is_answered_for_the_future(store: Store, ask: str) -> None:
    busy_morning().write(store)
    late = at(182)
    told = answers(store)
    asked: dict[str, Callable[[], object]] = {
        "metric": lambda: told.metric("held_gpus", Question(as_of_ms=late)),
        "workloads": lambda: told.workloads(ListQuestion(as_of_ms=late)),
        "workload": lambda: told.workload("r-wait", late),
        "teams": lambda: told.teams(late),
        "sources": lambda: told.sources(late),
        "chargeback": lambda: told.chargeback("2026-03", Question(as_of_ms=late)),
    }
    with pytest.raises(UsageError, match=r"as_of 2026-03-02T12:02:00.000Z: nothing is known of the time"):
        asked[ask]()


# ------------------------------------------------------------ names that nobody bears


def test_a_misspelt_name_is_told_with_the_nearest_one(store: Store) -> None:
    busy_morning().write(store)
    told = answers(store)
    asked = {"team": ("bleu", "blue"), "cluster": ("noth",)}
    expected = (
        "no team 'bleu' is known; did you mean 'blue'?",
        "no cluster 'noth' is known; did you mean 'north'?",
    )
    assert told.metric("held_gpus", Question(filters=asked)).hints == expected
    assert told.metric("held_gpus", Question(filters=asked)).document()["hints"] == list(expected)
    assert told.workloads(ListQuestion(filters=asked)).hints == expected
    assert told.chargeback("2026-03", Question(filters=asked))["hints"] == list(expected)
    assert told.metric("held_gpus", Question(filters={"team": ("red",), "queue": ("",)})).hints == ()
    [far] = told.metric("held_gpus", Question(filters={"team": ("xyz",)})).hints
    assert far == "no team 'xyz' is known; known are blue, red, unassigned"
    # A class is known before any work has it; the pages write it with a hyphen.
    [misspelt] = told.metric("held_gpus", Question(filters={"service_class": ("best-effort",)})).hints
    assert misspelt == "no service class 'best-effort' is known; did you mean 'best_effort'?"
    assert told.metric("held_gpus", Question(filters={"service_class": ("best_effort",)})).hints == ()


def test_a_researcher_is_told_of_no_foreign_team_or_queue(store: Store) -> None:
    books = Books()
    make_workload(books, "own", team="red", queue="red-queue")
    make_workload(books, "foreign", team="blue", queue="blue-queue")
    books.write(store)
    viewer = Viewer(name="ada", role=Role.RESEARCHER, teams=frozenset({"red", "blues"}))
    told = scoped(answers(store), viewer)
    # A queue of others looks like one that does not exist, and none of theirs is suggested.
    for name in ("blue-queue", "blue-quoue"):
        asked = {"queue": (name,)}
        found = {
            *told.metric("held_gpus", Question(filters=asked)).hints,
            *told.workloads(ListQuestion(filters=asked)).hints,
        }
        assert len(found) == 1
        assert not any("blue-queue" in hint.replace(repr(name), "") for hint in found)
    # What priority classes there are is told to nobody who may not see everything.
    misspelt = Question(filters={"priority_class": ("bacht",)})
    assert told.metric("held_gpus", misspelt).hints == ()
    assert "did you mean 'batch'?" in answers(store).metric("held_gpus", misspelt).hints[0]
    # An own team without work is no misspelling of a foreign one.
    for hints in (
        told.metric("held_gpus", Question(filters={"team": ("blues",)})).hints,
        told.workloads(ListQuestion()).hints,
        told.chargeback("2026-03", Question())["hints"],
    ):
        assert not list(hints)
