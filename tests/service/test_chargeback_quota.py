"""Lines of quota in a statement: lent, borrowed and unused, by team and day, and what they were worth."""

from dataclasses import replace
from decimal import Decimal
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.quota_lines import NOTE_COSTS, NOTES
from analytics.chargeback.statement import COSTS
from domain.calendar import billing_zone
from service.caused_time import LOSS_ADJUSTMENT
from service.chargeback import NO_QUOTA
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books
from tests.laws import law
from tests.service.test_chargeback import AGREED, END, FIRST, hold, hours, node, stored, told, with_causes

FOREVER = 2**63 - 1
GPU = 1_000_000
BERLIN = replace(AGREED, zone=billing_zone("Europe/Berlin"), zone_name="Europe/Berlin")


def span(queue: str, start_ms: int, until_ms: int, *, team: str = "", **gpus: int) -> dict[str, object]:
    """A holder's quota of A100 in a stretch, whole GPUs."""
    amounts = dict.fromkeys(("quota", "held", "lent", "borrowed"), 0) | gpus
    return {
        "cluster": "north", "pool": "p", "entity": queue, "team": team, "gpu_model": "A100",
        "start_ms": start_ms, "end_ms": None if until_ms == FOREVER else until_ms, "until_ms": until_ms,
        "demand": 0, "entitled": 0, "over_quota": 0, "opening_debt": 0.0,
        **{name: amount * GPU for name, amount in amounts.items()},
    }  # fmt: skip


def user(queue: str, team: str) -> dict[str, object]:
    return {
        "cluster": "north", "pool": "p", "entity": queue, "team": team, "gpu_model": "A100", "start_ms": 0,
        "end_ms": None, "until_ms": FOREVER, "demand": 0, "held": 0, "entitled": 0, "opening_debt": 0.0,
        "opening_forgiven": 0.0,
    }  # fmt: skip


def unassigned(start_ms: int, until_ms: int, gpus: int) -> dict[str, object]:
    return {
        "cluster": "north", "pool": "p", "gpu_model": "A100", "start_ms": start_ms,
        "end_ms": None if until_ms == FOREVER else until_ms, "until_ms": until_ms, "capacity": 0,
        "without_quota": 0, "error_ratio": None, "jain": None, "undefined_because": "",
        "from_unassigned": gpus * GPU,
    }  # fmt: skip


def written(store: Store, shares: list[Any], pools: list[Any], users: list[Any]) -> Store:
    store.replace("north", [
        Replacement(table="share_span", rows=shares), Replacement(table="pool_span", rows=pools),
        Replacement(table="team_share_span", rows=users),
    ])  # fmt: skip
    return store


def lent_out() -> Store:
    """
    A node of four GPUs for two days. Red has a quota of three, holds one, and lends two for ten hours.

    The queue of blue and green borrows these two, and one more from nobody's quota; nobody has used the queue
    `new` with its quota of one.
    """
    books = Books()
    node(books, FIRST, hours(48), gpus=4)
    hold(books, "r", FIRST, hours(48), team="red")
    shares = [
        span("main", FIRST, hours(10), team="red", quota=3, held=1, lent=2),
        span("main", hours(10), hours(48), team="red", quota=3, held=1),
        span("common", FIRST, hours(10), held=3, borrowed=3),
        span("new", FIRST, hours(48), quota=1),
        # Who has no quota and borrows nothing has no line.
        span("none", FIRST, hours(48), team="grey"),
    ]
    users = [user("main", "red"), user("common", "green"), user("common", "blue")]
    return written(stored(books), shares, [unassigned(FIRST, hours(10), 1)], users)


def test_a_line_says_what_was_lent_borrowed_and_left_unused_and_what_that_was_worth() -> None:
    rows = {row["team"]: row for row in told(lent_out(), "team")["rows"]}
    notes = {team: tuple(row[f"{name}_gpu_hours"] for name in NOTES) for team, row in rows.items()}
    assert notes == {
        "red": (20, 0, 76),
        "shared by blue, green": (0, 30, 0),
        "__no_team__": (0, 0, 48),
        "__idle__": (None, None, None),
    }
    # At 1.99, the effective price.
    assert [rows["red"][name] for name in NOTE_COSTS] == [
        Decimal("39.80"),
        Decimal("0.00"),
        Decimal("151.24"),
    ]
    assert [rows["__idle__"][name] for name in NOTE_COSTS] == [None] * 3
    # A note is charged nothing: red held 48 GPU-hours.
    assert rows["red"]["effective_cost"] == Decimal("95.52")
    assert [rows["shared by blue, green"][cost] for cost in COSTS] == [0, 0, 0, 0]


def test_what_is_lent_is_what_is_borrowed_less_what_comes_from_nobodys_quota() -> None:
    found = told(lent_out(), "team")
    total = found["total"]
    parts = (total["lent_gpu_hours"], total["borrowed_gpu_hours"], found["from_unassigned_gpu_hours"])
    assert parts == (20, 30, 10)
    assert (found["unused_commitment_gpu_hours"], found["no_commitment_because"]) == (124, None)


def test_a_filter_keeps_the_lines_of_quota_that_fit_and_says_why_there_are_none() -> None:
    store = lent_out()
    red = told(store, "team", team="red")
    assert (red["unused_commitment_gpu_hours"], red["from_unassigned_gpu_hours"]) == (76, None)
    ada = told(store, "team", user="ada")
    assert ada["unused_commitment_gpu_hours"] is None
    assert "no line of quota fits the filters" in ada["no_commitment_because"]
    nothing = told(stored(Books()), "team")
    assert (nothing["total"]["lent_gpu_hours"], nothing["no_commitment_because"]) == (None, NO_QUOTA)


def test_without_prices_a_note_has_hours_and_no_worth() -> None:
    [red] = [row for row in told(lent_out(), "team", agreed=Agreement())["rows"] if row["team"] == "red"]
    assert (red["lent_gpu_hours"], [red[name] for name in NOTE_COSTS]) == (20, [None] * 3)


def test_where_one_models_quota_has_no_price_the_sum_has_no_worth_and_the_others_keep_theirs() -> None:
    store = lent_out()
    # No H100 was there on these days, so nothing says what its quota was worth.
    unpriced = span("main", FIRST, hours(10), team="red", quota=1) | {"pool": "q", "gpu_model": "H100"}
    store.replace("north", [Replacement(table="share_span", rows=[unpriced], keys=("pool", {"q"}))])
    found = told(store, "gpu_model")
    store.close()
    worth = {row["gpu_model"]: row["unused_commitment_cost"] for row in found["rows"]}
    assert worth == {"A100": Decimal("246.76"), "H100": None}
    assert (found["total"]["unused_commitment_cost"], found["total"]["lent_cost"]) == (None, Decimal("39.80"))


def test_days_of_quota_and_causes_are_those_of_the_billing_zone() -> None:
    # In Berlin the second of October begins at 22:00 UTC.
    store = with_causes((hours(0), hours(20), "idle", None), (hours(20), hours(30), "useful", None))
    share = span("main", hours(20), hours(30), team="red", quota=2, held=1)
    written(store, [share], [], [user("main", "red")])
    agreed = replace(BERLIN, idle=IdlePolicy.BY_QUOTA)
    rows = told(store, "day", "kind", agreed=agreed, as_of_ms=hours(30))["rows"]
    unused = {row["day"]: row["unused_commitment_gpu_hours"] for row in rows if row["kind"] == "quota"}
    assert unused == {"2026-10-01": 2, "2026-10-02": 8}
    useful = {row["day"]: row["useful_gpu_hours"] for row in rows if row["kind"] == "held"}
    assert useful == {"2026-10-01": 2, "2026-10-02": 8}
    assert {row["unattributed_gpu_hours"] for row in rows if row["day"] == "2026-10-02"} == {0}


def test_idle_capacity_is_borne_by_the_quotas_of_the_day_in_the_billing_zone() -> None:
    books = Books()
    node(books, hours(22), hours(46), gpus=1)  # The whole second of October in Berlin.
    shares = [
        span("main", hours(22), hours(24), team="red", quota=1),
        span("side", hours(24), hours(46), team="blue", quota=1),
    ]
    store = written(stored(books), shares, [], [])
    rows = told(store, "day", "team", "kind", agreed=replace(BERLIN, idle=IdlePolicy.BY_QUOTA))["rows"]
    borne = {(row["day"], row["team"]): row["gpu_hours"] for row in rows if row["kind"] == "idle_share"}
    assert borne == pytest.approx({("2026-10-02", "red"): 2, ("2026-10-02", "blue"): 22})


def test_a_quota_without_a_limit_bears_no_idle_capacity() -> None:
    books = Books()
    node(books, FIRST, hours(24), gpus=1)
    shares = [
        span("main", FIRST, hours(24), team="red", quota=1),
        span("side", FIRST, hours(24), team="blue"),
    ]
    store = written(stored(books), [shares[0], shares[1] | {"quota": FOREVER}], [], [])
    rows = told(store, "team", agreed=replace(AGREED, idle=IdlePolicy.BY_QUOTA))["rows"]
    assert {row["team"]: row["gpu_hours"] for row in rows if row["gpu_hours"]} == {"red": 24}


def test_a_loss_of_earlier_days_is_told_apart_and_the_kinds_sum_to_the_invoice() -> None:
    store = with_causes(
        (hours(4), hours(25), "crash_lost", hours(25)), (hours(25), hours(26), "useful", None)
    )
    found = told(store, "team", as_of_ms=hours(26))
    [red] = found["rows"]
    # Twenty hours of the first day were taken back; one of the second was lost on its own day.
    assert (red["loss_adjustment_gpu_hours"], red["useful_gpu_hours"], red["crash_lost_gpu_hours"]) == (
        20,
        1,
        21,
    )
    kinds = {row["kind"]: row for row in found["by_kind"]}
    adjustment = kinds[LOSS_ADJUSTMENT]
    assert (adjustment["useful_gpu_hours"], adjustment["not_useful_gpu_hours"]) == (-20, 20)
    assert [adjustment[cost] for cost in COSTS] == [0, 0, 0, 0]
    assert kinds["held"]["useful_gpu_hours"] == 21
    before = told(store, "team", as_of_ms=hours(24))["total"]
    assert (before["loss_adjustment_gpu_hours"], before["useful_gpu_hours"]) == (0, 20)


@law(15, suppress_health_check=[HealthCheck.too_slow])
@given(
    steps=st.lists(
        st.tuples(st.integers(19, 200), st.integers(0, 9), st.integers(0, 9), st.integers(0, 3)),
        min_size=1,
        max_size=6,
    ),
    zone=st.sampled_from(["UTC", "Europe/Berlin", "America/St_Johns"]),
    cents=st.integers(1, 999),
)
def test_lines_of_quota_sum_to_the_total_and_close_whatever_they_are_kept_apart_by(
    steps: list[tuple[int, int, int, int]], zone: str, cents: int
) -> None:
    books = Books()
    node(books, FIRST, END, gpus=40)
    edges = list(accumulate((quarters for quarters, *_ in steps), initial=-8))
    shares, pools = [], []
    for (_, lent, unused, extra), left, right in zip(steps, edges, edges[1:], strict=False):
        stretch = (hours(left / 4), hours(right / 4))
        shares.append(span("main", *stretch, team="red", quota=lent + unused, lent=lent))
        shares.append(span("side", *stretch, team="blue", held=lent + extra, borrowed=lent + extra))
        pools.append(unassigned(*stretch, extra))
    store = written(stored(books), shares, pools, [])
    price = replace(AGREED.book.prices[0], listed=Decimal(cents) / 100, contracted=None)
    agreed = replace(AGREED, zone=billing_zone(zone), book=type(AGREED.book)((price,)))
    whole = told(store, agreed=agreed)
    total = whole["total"]
    if not any(amount for _, *amounts in steps for amount in amounts):
        # A quota of nothing makes no line.
        assert total["lent_gpu_hours"] is None
        assert whole["no_commitment_because"]
        return
    assert total["lent_gpu_hours"] == pytest.approx(
        total["borrowed_gpu_hours"] - whole["from_unassigned_gpu_hours"]
    )
    for by in (("team",), ("day",), ("queue", "gpu_model")):
        rows = [row for row in told(store, *by, agreed=agreed)["rows"] if row["lent_gpu_hours"] is not None]
        for name in NOTES:
            assert sum(row[f"{name}_gpu_hours"] for row in rows) == pytest.approx(total[f"{name}_gpu_hours"])
            assert sum((row[f"{name}_cost"] for row in rows), Decimal()) == total[f"{name}_cost"]
    for cost in COSTS:
        assert sum((row[cost] for row in whole["by_kind"]), Decimal()) == total[cost]
    store.close()
