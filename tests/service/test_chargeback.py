"""A month's statement through the store: sums, closed books, causes, and what is not known."""

from dataclasses import replace
from decimal import Decimal
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.statement import COSTS, Billing
from api.answers import Question, Record
from domain.calendar import billing_zone
from domain.errors import UsageError
from domain.money import Currency, Price, PriceBook
from domain.policy import Policy
from domain.window import MS_PER_HOUR, parse_instant
from service.chargeback import document
from service.settlement import NO_PRICES
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books, make_workload
from tests.laws import law

FIRST = parse_instant("2026-10-01T00:00:00Z")
END = parse_instant("2026-11-01T00:00:00Z")
EUR = Currency.of("EUR")
AGREED = Agreement(
    currency=EUR,
    book=PriceBook((Price(listed=Decimal("2.37"), contracted=Decimal("1.99"), valid_from_ms=0),)),
    billing=Billing.CHARGEBACK,
)
HELD = {
    "attempt": 1, "gpu_model": "A100", "bound_earliest_ms": None, "bound_source": "condition",
    "started_ms": None, "released_earliest_ms": None, "phase": "Running", "restarts": 0,
}  # fmt: skip


def hours(number: float) -> int:
    return FIRST + round(number * MS_PER_HOUR)


def hold(
    books: Books,
    uid: str,
    start_ms: int,
    end_ms: int | None,
    *,
    micro_gpus: int | None = 1_000_000,
    node: str = "n1",
    **columns: Any,
) -> None:
    """A workload with one pod that holds GPUs."""
    make_workload(books, uid, **columns)
    books.add("holding", **HELD, workload_uid=uid, pod_uid=f"{uid}-p", pod_name=uid, node=node,
              micro_gpus=micro_gpus, bound_ms=start_ms, released_ms=end_ms)  # fmt: skip


def node(books: Books, start_ms: int, end_ms: int | None, *, gpus: int | None = 8, **columns: Any) -> None:
    quantity = None if gpus is None else gpus * 1_000_000
    usual = {"node": "n1", "gpu_model": "A100", "schedulable": True, "allocatable_micro_gpus": quantity}
    books.add(
        "node_span", **(usual | columns), start_ms=start_ms, end_ms=end_ms, capacity_micro_gpus=quantity
    )


def stored(books: Books) -> Store:
    store = Store.open(None)
    books.write(store)
    return store


def told(
    store: Store,
    *by: str,
    agreed: Agreement = AGREED,
    month: str = "2026-10",
    as_of_ms: int = END + 1,
    **of: str,
) -> Record:
    """The statement by these dimensions, filtered by others; every line where none is given."""
    question = Question(by=by or None, filters={name: (value,) for name, value in of.items()})
    return document(store, agreed, Policy(), label=month, question=question, as_of_ms=as_of_ms)


@st.composite
def months(draw: st.DrawFn) -> Books:
    """Lives and nodes on a grid of quarter hours around the month's edges and the clock change."""
    books, steps = Books(), st.integers(-8, 31 * 96 + 8)
    for number in range(draw(st.integers(0, 6))):
        start, end = sorted((draw(steps), draw(steps)))
        hold(
            books, f"w{number}", hours(start / 4), draw(st.sampled_from([hours(end / 4), None])),
            micro_gpus=draw(st.sampled_from([None, 142_857, 333_333, 1_000_000, 8_000_000])),
            node=draw(st.sampled_from(["n1", "n2", "gone"])),
            team=draw(st.sampled_from(["ash", "birch"])), user_name=draw(st.sampled_from(["", "ada"])),
            skewed=draw(st.sampled_from(["", "", "bound before it was submitted"])),
        )  # fmt: skip
    for name in ("n1", "n2"):
        edges = sorted(draw(st.lists(steps, min_size=2, max_size=4, unique=True)))
        for left, right in pairwise(edges):
            node(books, hours(left / 4), hours(right / 4), node=name,
                 gpus=draw(st.sampled_from([None, 1, 8])), schedulable=draw(st.booleans()),
                 allocatable_micro_gpus=draw(st.sampled_from([None, 0, 1_000_000])))  # fmt: skip
    return books


zones = st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"])
policies = st.sampled_from([IdlePolicy.NONE, IdlePolicy.BY_USE, IdlePolicy.EVENLY])


@law(12, suppress_health_check=[HealthCheck.too_slow])
@given(books=months(), idle=policies, unavailable_too=st.booleans(), zone=zones)
def test_rows_sum_to_the_total_to_the_cent_and_the_books_close(
    books: Books, idle: IdlePolicy, *, unavailable_too: bool, zone: str
) -> None:
    agreed = replace(AGREED, idle=idle, unavailable_too=unavailable_too, zone=billing_zone(zone))
    store = stored(books)
    whole = told(store, agreed=agreed)
    for by in ((), ("team",), ("day",), ("team", "gpu_model", "user")):
        part = told(store, *by, agreed=agreed)
        for cost in COSTS:
            assert sum((row[cost] for row in part["rows"]), Decimal()) == whole["total"][cost]
        assert sum(row["gpu_hours"] for row in part["rows"]) == pytest.approx(whole["total"]["gpu_hours"])
    # The parts are measured on their own, in whole micro-GPU-milliseconds: the difference is 0, not nearly.
    assert whole["books"]["difference_gpu_hours"] == 0
    assert whole["total"]["held_gpu_hours"] == whole["books"]["held_gpu_hours"]
    store.close()


@law(12, suppress_health_check=[HealthCheck.too_slow])
@given(months(), st.integers(1, 31 * 24))
def test_held_time_by_team_is_what_a_look_at_every_quarter_finds(books: Books, until: int) -> None:
    store = stored(books)
    found = {
        row["team"]: row["held_gpu_hours"]
        for row in told(store, "team", as_of_ms=hours(until))["rows"]
        if row["held_gpu_hours"]
    }
    expected: dict[str, int] = {}
    teams = {str(row["workload_uid"]): row for row in books.tables.get("workload", ())}
    for row in books.tables.get("holding", ()):
        held: dict[str, Any] = {**row}
        owner: dict[str, Any] = {**teams[held["workload_uid"]]}
        team = "__set_aside__" if owner["skewed"] else owner["team"]
        start_ms, end_ms = int(held["bound_ms"]), held["released_ms"]
        for quarter in range(until * 4):
            at_ms = hours(quarter / 4)
            if start_ms <= at_ms < int(end_ms or END):
                expected[team] = expected.get(team, 0) + int(held["micro_gpus"] or 0)
    assert found == pytest.approx({team: amount / 4e6 for team, amount in expected.items() if amount})
    store.close()


def morning() -> Books:
    """A node of two GPUs for a day; red holds one for ten hours, blue one for five."""
    books = Books()
    node(books, FIRST, hours(24), gpus=2)
    hold(books, "r", FIRST, hours(10), team="red")
    hold(books, "b", hours(2), hours(7), team="blue", user_name="bob", queue="side", project="p")
    return books


def test_a_line_has_a_team_a_user_a_queue_a_model_and_a_day() -> None:
    rows = told(stored(morning()))["rows"]
    [blue] = [row for row in rows if row["team"] == "blue"]
    named = ("day", "kind", "cluster", "team", "project", "user", "queue", "gpu_model")
    assert [blue[name] for name in named] == [
        "2026-10-01",
        "held",
        "north",
        "blue",
        "p",
        "bob",
        "side",
        "A100",
    ]
    # 5 GPU-hours at 2.37 and 1.99.
    assert [blue[cost] for cost in COSTS] == [
        Decimal("11.85"),
        Decimal("9.95"),
        Decimal("9.95"),
        Decimal("9.95"),
    ]


def test_capacity_is_held_and_idle_and_who_bears_idle_is_an_agreement() -> None:
    store = stored(morning())
    books = told(store)["books"]
    assert (books["capacity_gpu_hours"], books["held_gpu_hours"], books["idle_gpu_hours"]) == (48, 15, 33)
    idle = {row["team"]: row["gpu_hours"] for row in told(store, "team")["rows"]}
    assert idle == {"red": 10, "blue": 5, "__idle__": 33}
    shared = told(store, "team", agreed=replace(AGREED, idle=IdlePolicy.BY_USE))["rows"]
    assert {row["team"]: row["gpu_hours"] for row in shared} == {"red": 10 + 22, "blue": 5 + 11}


def test_in_a_showback_nobody_is_billed() -> None:
    total = told(stored(morning()), agreed=replace(AGREED, billing=Billing.SHOWBACK))["total"]
    assert (total["billed_cost"], total["effective_cost"]) == (Decimal("0.00"), Decimal("95.52"))


def test_without_prices_there_are_gpu_hours_and_a_reason() -> None:
    found = told(stored(morning()), "team", agreed=Agreement())
    assert (found["currency"], found["no_money_because"]) == (None, NO_PRICES)
    assert [found["total"][cost] for cost in COSTS] == [None] * 4
    assert found["total"]["held_gpu_hours"] == 15


def test_a_model_without_a_price_makes_no_money_rather_than_a_wrong_sum() -> None:
    book = PriceBook((Price(listed=Decimal(1), gpu_model="H100", valid_from_ms=0),))
    found = told(stored(morning()), agreed=replace(AGREED, book=book))
    assert "no price for model 'A100'" in found["no_money_because"]
    assert found["total"]["list_cost"] is None
    assert found["total"]["held_gpu_hours"] == 15


def test_a_price_for_spot_or_for_a_flavor_is_that_of_the_nodes_labels() -> None:
    import msgspec

    from domain.facts import Batch, Description, ObjectKind
    from domain.objects import Node, ResourceFlavor

    store = stored(morning())
    labels = {"karpenter.sh/capacity-type": "spot", "pool": "a"}
    said = {
        ObjectKind.NODE: ("n1", Node(labels=labels, gpu_capacity={}, gpu_allocatable={}, unschedulable=False,
                                     ready="True", taints=())),
        ObjectKind.RESOURCE_FLAVOR: ("a100", ResourceFlavor(node_labels={"pool": "a"}, taints=(),
                                                             topology="")),
    }  # fmt: skip
    store.append(Batch(cluster="north", descriptions=[
        Description(uid=name, kind=kind, namespace="", name=name, from_ms=0, observed_ms=0,
                    body=msgspec.json.encode(body)) for kind, (name, body) in said.items()
    ]))  # fmt: skip

    def cost(**conditions: Any) -> Decimal:
        dearer = Price(listed=Decimal(3), valid_from_ms=0)
        book = PriceBook((dearer, Price(listed=Decimal(1), valid_from_ms=0, **conditions)))
        listed: Decimal = told(store, agreed=replace(AGREED, book=book))["total"]["list_cost"]
        return listed

    # 48 GPU-hours of capacity.
    assert (
        cost(capacity_type="spot")
        == cost(flavor="a100")
        == cost(node_labels=frozenset({("pool", "a")}))
        == 48
    )
    assert (
        cost(capacity_type="reserved")
        == cost(flavor="h100")
        == cost(node_labels=frozenset({("pool", "b")}))
        == 144
    )


def test_the_clock_change_gives_a_month_of_745_hours() -> None:
    books = Books()
    node(books, FIRST - 48 * MS_PER_HOUR, None, gpus=1)
    agreed = replace(AGREED, zone=billing_zone("Europe/Berlin"), zone_name="Europe/Berlin")
    found = told(stored(books), "day", agreed=agreed)
    assert found["books"]["capacity_gpu_hours"] == 745
    assert {row["day"]: row["gpu_hours"] for row in found["rows"]}["2026-10-25"] == 25


def test_facts_after_as_of_change_nothing() -> None:
    books = morning()
    hold(books, "later", hours(8), hours(9), team="green")
    early = hours(7.5)
    assert told(stored(books), as_of_ms=early)["rows"] == told(stored(morning()), as_of_ms=early)["rows"]


def test_a_month_that_runs_is_called_current_and_says_that_it_is_not_complete() -> None:
    found = told(stored(morning()), month="current", as_of_ms=hours(12))
    assert (found["month"], found["complete"], found["end_at"]) == (
        "2026-10",
        False,
        "2026-10-01T12:00:00.000Z",
    )


@pytest.mark.parametrize(
    ("month", "by", "says"),
    [("2026-13", "team", "expected year and month"), ("2026-12", "team", "has not begun"),
     ("2026-10", "colour", "label 'colour'")],
)  # fmt: skip
def test_a_wrong_question_says_what_is_wrong(month: str, by: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        told(stored(morning()), by, month=month)


def test_held_twice_is_taken_off_and_an_unknown_node_is_told() -> None:
    books = Books()
    node(books, FIRST, hours(2), gpus=1)
    hold(books, "old", FIRST, hours(1.5), team="red")
    hold(books, "new", hours(1), hours(3), team="red")
    found = told(stored(books))
    assert [found["books"][f"{part}_gpu_hours"] for part in ("capacity", "held", "overlap", "idle")] == [
        3,
        3.5,
        0.5,
        0,
    ]
    assert [(each["node"], each["because"]) for each in found["unknown"]] == [
        ("n1", "GPUs are held on a node that is not known then")
    ]


# ---------------------------------------------------------------- causes


def with_causes(*pieces: tuple[int, int | None, str, int | None]) -> Store:
    """Red holds a GPU through October; pieces are start, end, cause and when a loss became known."""
    books = Books()
    hold(books, "r", FIRST, None, team="red")
    store = stored(books)
    rows = [caused("r", start_ms, end_ms, cause, known_ms) for start_ms, end_ms, cause, known_ms in pieces]
    store.replace("north", [Replacement(table="waste_piece", rows=rows)])
    return store


def caused(
    uid: str, start_ms: int, end_ms: int | None, cause: str, known_ms: int | None = None, **columns: object
) -> dict[str, object]:
    """Why the pod of a workload held its GPU in a stretch."""
    return {
        "cluster": "north", "workload_uid": uid, "pod_uid": f"{uid}-p", "attempt": 1, "node": "n1",
        "gpu_model": "A100", "device": "", "micro_gpus": 1_000_000, "start_ms": start_ms, "end_ms": end_ms,
        "cause": cause, "known_ms": known_ms, "earlier_cause": "useful" if known_ms else "", "may_be": "",
        "charged": cause != "useful", "restart": False,
    } | columns  # fmt: skip


def by_day(store: Store, as_of_ms: int) -> dict[tuple[str, str], dict[str, float]]:
    """GPU-hours that are not 0, by day and kind of line."""
    shown = ("useful", "crash_lost", "idle", "unattributed", "held", "not_useful")
    return {
        (row["day"], row["kind"]): {
            name: row[f"{name}_gpu_hours"] for name in shown if row[f"{name}_gpu_hours"]
        }
        for row in told(store, "day", "kind", as_of_ms=as_of_ms)["rows"]
    }


def test_held_time_is_split_by_cause_and_what_has_none_yet_is_told() -> None:
    store = with_causes((FIRST, hours(6), "useful", None), (hours(6), hours(10), "idle", None))
    [found] = by_day(store, hours(12)).values()
    assert found == {"held": 12, "useful": 6, "idle": 4, "not_useful": 4, "unattributed": 2}


def test_where_nobody_saw_the_gpus_useful_is_not_0_but_unknown() -> None:
    total = told(with_causes((FIRST, hours(12), "unknown", None)), as_of_ms=hours(12))["total"]
    assert (total["useful_gpu_hours"], total["unit_cost"], total["causes_lower_bound"]) == (None, None, True)
    partly = with_causes((FIRST, hours(6), "unknown", None), (hours(6), hours(12), "useful", None))
    total = told(partly, as_of_ms=hours(12))["total"]
    assert (total["useful_gpu_hours"], total["causes_lower_bound"]) == (6, True)


def test_a_loss_that_becomes_known_on_the_same_day_counts_on_that_day() -> None:
    store = with_causes((hours(1), hours(3), "crash_lost", hours(3)), (hours(3), hours(24), "useful", None))
    [found] = by_day(store, hours(24)).values()
    assert (found["crash_lost"], found["useful"]) == (2, 21)


def test_a_loss_that_becomes_known_later_leaves_the_closed_day_and_is_booked_as_an_adjustment() -> None:
    # Twenty hours of the first day and one of the second were lost in a crash at one o'clock.
    pieces = (hours(4), hours(25), "crash_lost", hours(25))
    store = with_causes(pieces)
    closed = ("2026-10-01", "held")
    before, after = by_day(store, hours(24)), by_day(store, hours(26))
    assert before[closed]["useful"] == after[closed]["useful"] == 20
    assert after["2026-10-02", "held"]["crash_lost"] == 1
    assert after["2026-10-02", "loss_adjustment"] == {"useful": -20, "crash_lost": 20, "not_useful": 20}
    total = told(store, as_of_ms=hours(26))["total"]
    assert (total["useful_gpu_hours"], total["crash_lost_gpu_hours"]) == (0, 21)


def test_a_loss_of_an_earlier_month_is_booked_in_the_month_in_which_it_became_known() -> None:
    late = (hours(31 * 24 - 2), hours(31 * 24 + 1), "crash_lost", hours(31 * 24 + 1))
    store = with_causes(late)
    october = told(store, as_of_ms=hours(32 * 24))["total"]
    november = told(store, month="2026-11", as_of_ms=hours(32 * 24))["total"]
    assert (october["useful_gpu_hours"], october["crash_lost_gpu_hours"]) == (2, 0)
    assert (november["useful_gpu_hours"], november["crash_lost_gpu_hours"]) == (-2, 3)


def test_the_price_of_a_useful_gpu_hour_bears_idle_capacity_too() -> None:
    store = with_causes((FIRST, hours(6), "useful", None))
    assert told(store, as_of_ms=hours(12))["total"]["unit_cost"] == pytest.approx(12 * 1.99 / 6, abs=0.01)
    assert told(stored(morning()))["total"]["unit_cost"] is None
