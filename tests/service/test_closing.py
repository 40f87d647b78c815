"""Closing a month: what is refused, what never changes, and who wins."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

import pytest

from analytics.chargeback.agreement import CostCentre
from analytics.chargeback.canonical import decode
from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.line import CORRECTION, About
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.quota_lines import QuotaTime
from analytics.chargeback.reconcile import reconciled
from domain.calendar import billing_zone, month
from domain.errors import RefusedError, StoreError, UsageError
from domain.money import Price, PriceBook
from domain.policy import Policy
from domain.tenant import Rule, Tenancy
from domain.window import FixedClock
from service.chargeback import of_nobodys_quota
from service.closing import Closer
from service.held_days import keep_days
from service.statements import statement_of, whole_month
from store import statements as kept
from store.derived import Replacement
from store.embedded import Store
from store.retention import drop_before
from tests.service.closing_world import (
    REASON,
    as_before,
    closed,
    closer,
    learn,
    look,
    pieces,
    read,
    site,
    told,
)
from tests.service.test_chargeback import AGREED, caused, hours

MONTH, NEXT = 31 * 24, 61 * 24
PLACES = replace(
    AGREED,
    zone=billing_zone("UTC"),
    cost_centres={"red": (CostCentre(code="1"), CostCentre(code="2", from_ms=hours(740)))},
)


@pytest.fixture(scope="module")
def october() -> Iterator[tuple[Store, MonthStatement]]:
    """A site whose October was closed five hours after its end, and is only read."""
    store = site()
    yield store, closed(store, "2026-10", MONTH + 5, PLACES)
    store.close()


@pytest.fixture(scope="module")
def kept_site() -> Iterator[Store]:
    store = site()
    yield store
    store.close()


@pytest.fixture
def store(kept_site: Store) -> Store:
    """A site without a closed month; it takes long to make, so each test begins with the same one."""
    as_before(kept_site)
    return kept_site


def test_a_closed_month_is_read_as_it_was_closed(october: tuple[Store, MonthStatement]) -> None:
    store, signed = october
    assert signed.closing is not None
    assert replace(decode(signed.closing.content), exact_costs=signed.exact_costs) == signed
    before = told(store, "2026-10", MONTH + 6, "team", "day")
    dearer = replace(
        AGREED, book=PriceBook((Price(listed=Decimal(9), valid_from_ms=0),)), idle=IdlePolicy.BY_USE
    )
    assert told(store, "2026-10", NEXT, "team", "day", agreed=dearer) == before
    again = read(store, "2026-10", NEXT, dearer)
    assert again.closing == signed.closing
    assert (signed.closing.closed_by, signed.closing.closed_ms, signed.as_of_ms, signed.closing.reason) == (
        "fin", hours(MONTH + 5), hours(MONTH + 5), REASON,
    )  # fmt: skip
    assert {"price_book", "policy", "tenancy", "gpuledger"} == signed.versions.keys()
    assert before["closed"]["sha256"] == signed.closing.sha256
    # What the team was booked on when the month ended.
    assert {row["team"]: row["cost_centre"] for row in before["rows"]}["red"] == "2"
    # Its part before its end was never closed.
    assert read(store, "2026-10", 100).closing is None


def test_a_month_is_closed_once(october: tuple[Store, MonthStatement]) -> None:
    store, signed = october
    assert signed.closing is not None
    with pytest.raises(RefusedError, match=f"by fin, with sha256 {signed.closing.sha256}"):
        closed(store, "2026-10", NEXT)


def test_a_month_begins_after_its_first_instant_and_is_over_at_its_end(store: Store) -> None:
    october, november = month("2026-10", AGREED.zone), month("2026-11", AGREED.zone)
    assert october.end_ms == november.start_ms

    def at(instant_ms: int) -> Closer:
        return replace(closer(store, 0), clock=FixedClock(instant_ms))

    with pytest.raises(RefusedError, match="month 2026-10 is not over"):
        at(october.end_ms - 1).close("2026-10", who="fin", reason=REASON)
    assert at(october.end_ms).close("2026-10", who="fin", reason=REASON).closing is not None
    end_ms = october.end_ms
    known = statement_of(store, AGREED, Policy(), label="2026-10", as_of_ms=end_ms, tenancy=Tenancy())
    assert known.closing is not None
    with pytest.raises(UsageError, match="month '2026-11' has not begun"):
        whole_month("2026-11", AGREED, november.start_ms)
    assert whole_month("2026-11", AGREED, november.start_ms + 1) == november


def test_what_was_changed_in_the_store_is_noticed(store: Store) -> None:
    closed(store, "2026-10", MONTH + 5)
    with store.transaction() as connection:
        connection.execute("update closed_month set content = content || '\\x20'::blob")
    with pytest.raises(StoreError, match="it was changed in the store"):
        kept.closed_month(store, "2026-10")


def refused(store: Store, at: float, says: str, *, reason: str = REASON, **terms: object) -> None:
    usual = closer(store, at)
    with pytest.raises(RefusedError, match=says):
        replace(usual, **terms).close("2026-11", who="fin", reason=reason)  # type: ignore[arg-type]
    assert [head.month for head in kept.closed_months(store)] == ["2026-10"]


def test_what_cannot_be_signed_is_refused(october: tuple[Store, MonthStatement]) -> None:
    store, _ = october
    refused(store, NEXT - 1, "month 2026-11 is not over")
    refused(
        store, NEXT, "coverage: at least 99 % of the month was observed: 0.00 %; give a reason", reason=" "
    )
    refused(store, NEXT, "prices: everything has a price: no prices are set",
            agreement=replace(AGREED, book=PriceBook(())))  # fmt: skip
    none = replace(AGREED, book=PriceBook((Price(listed=Decimal(1), gpu_model="H100", valid_from_ms=0),)))
    refused(store, NEXT, "no price for model 'A100'", agreement=none)
    with pytest.raises(UsageError, match="expected year and month"):
        closer(store, NEXT).close("November", who="fin")


def test_a_namespace_without_a_team_is_refused_where_teams_are_mapped(
    october: tuple[Store, MonthStatement],
) -> None:
    store, _ = october
    learn(store, "stray", MONTH + 50, MONTH + 51, team="unassigned", namespace="tmp")
    mapped = Tenancy(teams=(Rule(namespace="nlp-*", value="nlp"),))
    refused(store, NEXT, "teams: no namespace that held GPUs is unassigned: tmp", tenancy=mapped)


def test_held_time_without_a_cause_yet_is_refused_unless_somebody_says_why(store: Store) -> None:
    store.replace("north", [Replacement(table="waste_piece", rows=pieces("b0"))])
    with pytest.raises(RefusedError, match=r"causes_known: all held time has a cause: 5.50 GPU-hours"):
        closer(store, MONTH + 5, replace(AGREED, close_coverage=0)).close("2026-10", who="fin")
    checks = {each.name: each for each in closed(store, "2026-10", MONTH + 5).checks}
    assert (checks["causes_known"].forced, checks["coverage"].forced, checks["causes"].forced) == (
        True, True, False,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("name", "change"),
    [("held_lines", {"micro_gpu_ms": 1}), ("list_cost", {"list_cost": Decimal("0.01")}),
     ("billed_cost", {"billed_cost": Decimal("-0.01")})],
)  # fmt: skip
def test_a_line_that_is_a_unit_or_a_cent_off_does_not_balance(
    october: tuple[Store, MonthStatement], name: str, change: dict[str, object]
) -> None:
    whole = statement_of(
        october[0], AGREED, closer(october[0], 0).policy, label="2026-11", as_of_ms=hours(NEXT),
        tenancy=Tenancy(),
    )  # fmt: skip
    held = next(line for line in whole.lines if line.row.kind == "held")
    row = replace(held.row, **{key: getattr(held.row, key) + value for key, value in change.items()})
    off = replace(whole, lines=(*(line for line in whole.lines if line is not held), replace(held, row=row)))
    sound, broken = (
        {each.name for each in reconciled(each, unassigned=(), set_aside="") if not each.holds}
        for each in (whole, off)
    )
    assert name in broken - sound


def test_more_cause_than_held_time_does_not_balance(october: tuple[Store, MonthStatement]) -> None:
    store, _ = october
    whole = read(store, "2026-11", NEXT)
    held = next(line for line in whole.lines if line.row.kind == "held")
    more = replace(held, causes={"useful": held.row.micro_gpu_ms + 1})
    lines = tuple(more if line is held else line for line in whole.lines)
    checks = reconciled(replace(whole, lines=lines), unassigned=(), set_aside="")
    assert [each.name for each in checks if not each.holds and not each.may_be_forced] == ["causes"]


def test_of_two_who_close_at_once_one_wins(store: Store) -> None:
    closers: list[Closer] = [closer(store, MONTH + 5) for _ in range(2)]
    gate, said = threading.Barrier(2), list[str]()

    def close(one: Closer, who: str) -> None:
        gate.wait()
        try:
            one.close("2026-10", who=who, reason=REASON)
            said.append(who)
        except RefusedError as error:
            said.append(str(error))

    threads = [threading.Thread(target=close, args=pair) for pair in zip(closers, "ab", strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    [head] = kept.closed_months(store)
    assert head.closed_by in said
    assert [each for each in said if head.sha256 in each and "never closed twice" in each]


def test_what_is_learnt_later_is_booked_in_the_open_month_and_the_closed_one_stays(store: Store) -> None:
    signed = closed(store, "2026-10", MONTH + 5)
    learn(store, "late", 30, 35, team="green")
    assert look(store, MONTH + 30) == []
    assert look(store, MONTH + 31) == []
    assert read(store, "2026-10", NEXT).closing == signed.closing
    november = told(store, "2026-11", MONTH + 40, "kind", "team", "day")
    [green] = [row for row in november["rows"] if row["team"] == "green"]
    assert (green["kind"], green["day"], green["gpu_hours"], green["useful_gpu_hours"]) == (
        CORRECTION, "2026-11-02", 5, 5,
    )  # fmt: skip
    assert green["billed_cost"] == Decimal("9.95")
    assert november["books"]["difference_gpu_hours"] == 0
    [corrections] = november["corrections"]
    # Green holds five hours on a full node: what is idle and what is held twice take it up.
    assert (corrections["of_month"], corrections["gpu_hours"], corrections["billed_cost"]) == (
        "2026-10",
        0,
        0,
    )
    # It is told at the instant at which it was found, and nobody knew of it before.
    assert told(store, "2026-11", MONTH + 30)["corrections"]
    assert told(store, "2026-11", MONTH + 29)["corrections"] == []
    final = closed(store, "2026-11", NEXT + 5)
    assert final.corrected == (("2026-10", 1),)
    assert {line.about.day for line in final.lines if line.about is not None} == {"2026-10-02"}
    assert told(store, "2026-12", NEXT + 9)["corrections"] == []
    assert all(each.booked_in == "2026-11" for each in kept.corrections(store))


def test_a_close_books_what_was_learnt_since_somebody_last_looked(store: Store) -> None:
    closed(store, "2026-10", MONTH + 5)
    assert look(store, NEXT + 1) == []
    learn(store, "late", 30, 35, team="green")
    # Minutes later.
    assert closed(store, "2026-11", NEXT + 1.1).corrected == (("2026-10", 1),)


def test_days_that_are_kept_under_other_terms_make_no_other_correction(store: Store) -> None:
    # Red holds a GPU on the second day, before and after it became dearer.
    dearer = (*AGREED.book.prices, Price(listed=Decimal(9), valid_from_ms=hours(26)))
    signed, found = replace(AGREED, book=PriceBook(dearer)), []
    for terms in ((), (signed,), (AGREED,)):
        as_before(store)
        closed(store, "2026-10", MONTH + 5, signed)
        for each in terms:
            assert keep_days(store, each, as_of_ms=hours(MONTH + 6)) > 30
        learn(store, "late", 50, 53, team="green")
        assert len(store.held_days(start_ms=0, end_ms=hours(NEXT))) >= 30 * len(terms)
        look(store, MONTH + 30)
        found.append([each.content for each in kept.corrections(store)])
    assert found[0]
    assert found[0] == found[1] == found[2]


def test_what_is_lent_is_what_is_borrowed_in_corrections_too(october: tuple[Store, MonthStatement]) -> None:
    line = october[1].lines[0]
    about = About(month="2026-09", day="2026-09-02", kind="quota", number=1)
    notes = QuotaTime(lent=2, borrowed=7, unused_commitment=1)
    lines = (replace(line, quota=notes), replace(line, quota=notes, about=about))
    assert of_nobodys_quota(replace(october[1], lines=lines, from_nobody=4)) == 9
    assert of_nobodys_quota(replace(october[1], lines=lines, from_nobody=None)) is None


def test_a_correction_is_booked_once(store: Store) -> None:
    closed(store, "2026-10", MONTH + 5)
    learn(store, "late", 30, 35, team="green")
    closed(store, "2026-11", NEXT + 5)
    november = kept.closed_month(store, "2026-11")
    assert november is not None
    # Another close that had read it before it was booked.
    with pytest.raises(RefusedError, match="correction 1 of 2026-10 was booked by another close meanwhile"):
        kept.close(store, replace(november, month="2026-12"), books=[("2026-10", 1)])
    assert [head.month for head in kept.closed_months(store)] == ["2026-10", "2026-11"]


def test_what_is_learnt_of_a_month_is_booked_in_the_next_one_that_is_open(store: Store) -> None:
    closed(store, "2026-10", MONTH + 5)
    closed(store, "2026-11", NEXT + 5)
    learn(store, "late", 30, 35, team="green")
    look(store, NEXT + 6)
    assert read(store, "2026-11", NEXT + 9).corrected == ()
    assert read(store, "2026-12", NEXT + 9).corrected == (("2026-10", 1),)


def test_a_cause_that_is_learnt_late_corrects_its_day_and_a_loss_of_later_stays_a_loss_adjustment(
    store: Store,
) -> None:
    closed(store, "2026-10", MONTH + 5)
    idle = caused("r0", hours(0), hours(10), "idle")
    store.replace("north", [Replacement(table="waste_piece", rows=[*pieces("r0"), idle])])
    look(store, MONTH + 6)
    [row] = told(store, "2026-11", MONTH + 7)["corrections"]
    assert (row["useful_gpu_hours"], row["idle_gpu_hours"], row["billed_cost"]) == (-10, 10, 0)
    # A crash of November loses what October booked as useful: October knew what it knew.
    lost = caused("b1", hours(26), hours(31.5), "crash_lost", hours(MONTH + 9))
    store.replace("north", [Replacement(table="waste_piece", rows=[*pieces("r0", "b1"), idle, lost])])
    look(store, MONTH + 12)
    november = told(store, "2026-11", MONTH + 13, "kind")
    assert [each["useful_gpu_hours"] for each in november["corrections"]] == [-10]
    assert november["total"]["loss_adjustment_gpu_hours"] == 5.5


def test_a_team_that_is_renamed_later_keeps_its_name_in_what_was_signed_and_is_found_by_both(
    store: Store,
) -> None:
    closed(store, "2026-10", MONTH + 5)
    renamed = Tenancy(renamed={"red": "ruby"})
    later = replace(closer(store, MONTH + 30), tenancy=renamed)
    whole = statement_of(store, AGREED, later.policy, label="2026-10", as_of_ms=hours(NEXT), tenancy=renamed)
    assert "red" in {line.row.team for line in whole.lines}
    from service.corrections import find_corrections
    from service.statements import fitting

    assert {line.row.team for line in fitting(whole, {"team": ("ruby",)}, renamed).lines} == {"red"}
    with store.transaction() as connection:
        connection.execute("update workload set team = 'ruby' where team = 'red'")
    find_corrections(store, renamed, now_ms=hours(MONTH + 30))
    assert kept.corrections(store) == []


def test_of_what_was_dropped_nothing_more_is_learnt() -> None:
    books = site()
    closed(books, "2026-10", MONTH + 5)
    with books.transaction() as connection:
        connection.execute(
            "update workload set ended_ms = $end where workload_uid = 'r0'", {"end": hours(10)}
        )
    assert drop_before(books, ["north"], hours(100)) == 1
    look(books, MONTH + 30)
    assert kept.corrections(books) == []
    assert read(books, "2026-10", NEXT).closing is not None
    # And closed months are none of what is dropped.
    assert [head.month for head in kept.closed_months(books)] == ["2026-10"]
    books.close()


def test_a_month_of_which_something_was_dropped_is_closed_with_a_reason_only() -> None:
    books = site()
    sure = replace(AGREED, close_coverage=0)
    drop_before(books, ["north"], hours(0))
    assert {each.name: each.holds for each in read(books, "2026-10", MONTH + 5, sure).checks}["facts"]
    # What r0 held is idle from now on, and all that is left balances.
    drop_before(books, ["north"], hours(100))
    with pytest.raises(RefusedError, match=r"facts: .*dropped work that ended before 2026-10-05T04:00"):
        closer(books, MONTH + 5, sure).close("2026-10", who="fin")
    checks = {each.name: each for each in closed(books, "2026-10", MONTH + 5).checks}
    assert checks["facts"].forced
    assert {each.name for each in checks.values() if each.holds} >= {"capacity", "held_lines", "list_cost"}
    # November lost nothing.
    assert {each.name: each.holds for each in closed(books, "2026-11", NEXT + 5).checks}["facts"]
    books.close()


def test_corrections_in_another_currency_are_not_mixed_in(store: Store) -> None:
    from domain.money import Currency

    closed(store, "2026-10", MONTH + 5)
    learn(store, "late", 30, 35, team="green")
    look(store, MONTH + 30)
    dollars = replace(AGREED, currency=Currency.of("USD"), close_coverage=0)
    assert told(store, "2026-11", NEXT, agreed=dollars)["corrections"] == []
    with pytest.raises(RefusedError, match="correction 1 of 2026-10 is in another currency than USD"):
        Closer(
            store=store, agreement=dollars, policy=closer(store, 0).policy, tenancy=Tenancy(),
            clock=FixedClock(hours(NEXT)),
        ).close("2026-11", who="fin")  # fmt: skip
