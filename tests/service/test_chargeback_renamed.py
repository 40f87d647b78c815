"""A team under two names is one: one line, one even share, and no correction where a name is handed on."""

from collections import Counter
from dataclasses import replace
from decimal import Decimal

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.canonical import decode_lines
from analytics.chargeback.distribution import IdlePolicy
from analytics.chargeback.extras import BorneBy, Preempted, SharedBy, SharedCost
from analytics.chargeback.month_statement import MonthStatement
from analytics.chargeback.statement import DIMENSIONS
from api.exports.focus_charge import charges
from domain.policy import Policy
from domain.tenant import Tenancy
from service.corrections import find_corrections
from service.statements import statement_of
from store import statements as kept
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books
from tests.service.closing_world import closer, learn, site
from tests.service.test_chargeback import AGREED, END, FIRST, caused, hold, hours, node, stored
from tests.service.test_chargeback_quota import span, user, written

RENAMED = Tenancy(renamed={"red": "ruby"})


def halfway() -> Store:
    """Red became ruby at noon: on that day work of before, and of after, holds a GPU; so does blue's."""
    books = Books()
    node(books, FIRST, hours(24), gpus=4)
    hold(books, "before", FIRST, hours(24), team="red", user_name="rita")
    hold(books, "after", hours(12), hours(24), team="ruby", user_name="rita")
    hold(books, "b", FIRST, hours(24), team="blue", user_name="bob")
    store = stored(books)
    pieces = [
        caused("before", FIRST, hours(24), "useful"),
        caused("after", hours(12), hours(24), "idle"),
        caused("b", FIRST, hours(23), "useful"),
        caused("b", hours(23), hours(24), "preempted_lost", hours(24)),
    ]
    store.replace("north", [Replacement(table="waste_piece", rows=pieces)])
    shares = [
        span("main", FIRST, hours(12), team="red", quota=2),
        span("main", hours(12), hours(24), team="ruby", quota=2),
        span("side", FIRST, hours(24), team="blue", quota=2),
    ]
    users = [user("main", "red"), user("side", "blue")]
    return written(store, [each | {"end_ms": each["until_ms"]} for each in shares], [], users)


def month(store: Store, agreed: Agreement, tenancy: Tenancy = RENAMED) -> MonthStatement:
    return statement_of(store, agreed, Policy(), label="2026-10", as_of_ms=END + 1, tenancy=tenancy)


def costs(found: MonthStatement, kind: str) -> dict[str, Decimal]:
    sums: Counter[str] = Counter()
    for line in found.lines:
        if line.row.kind == kind:
            sums[line.row.team] += line.row.effective_cost  # type: ignore[assignment]
    return dict(sums)  # type: ignore[arg-type]


def test_a_team_that_was_renamed_bears_one_even_share() -> None:
    store = halfway()
    agreed = replace(AGREED, idle=IdlePolicy.EVENLY, shared_costs=(
        SharedCost(name="net", monthly=Decimal(3100), by=SharedBy.EVENLY),
    ))  # fmt: skip
    found = month(store, agreed)
    by_quota = month(store, replace(agreed, idle=IdlePolicy.BY_QUOTA))
    store.close()
    # 96 GPU-hours less 60 that were held, at 1.99.
    for each in (found, by_quota):
        assert costs(each, "idle_share") == {"ruby": Decimal("35.82"), "blue": Decimal("35.82")}
    shared = costs(found, "shared")
    assert (shared["ruby"], shared["blue"]) == (Decimal(50), Decimal(50))


def test_a_team_that_was_renamed_has_one_line_of_a_kind() -> None:
    store = halfway()
    agreed = replace(AGREED, idle=IdlePolicy.EVENLY)
    found = month(store, agreed)
    store.close()
    keys = Counter(tuple(getattr(line.row, name) for name in DIMENSIONS) for line in found.lines)
    assert [key for key, count in keys.items() if count > 1] == []
    ids = Counter((each.origin, each.allocated_to) for each in charges(found) if each.origin)
    assert max(ids.values()) == 1
    [ruby] = [line for line in found.lines if (line.row.kind, line.row.team) == ("held", "ruby")]
    assert {name: amount / 3.6e12 for name, amount in ruby.causes.items()} == {"useful": 24, "idle": 12}
    [quota] = [line for line in found.lines if (line.row.kind, line.row.team) == ("quota", "ruby")]
    assert quota.quota is not None
    assert quota.quota.unused_commitment / 3.6e12 == 48
    assert {each.name: each.holds for each in found.checks}["causes"]


def test_who_preempted_under_an_earlier_name_is_charged_under_the_present_one() -> None:
    store = halfway()
    with store.transaction() as connection:
        connection.execute(
            "insert into member by name select 'north' as cluster, 'before' as workload_uid,"
            " 'o' as object_uid, 'Workload' as kind"
        )
        connection.execute(
            "insert into eviction by name select 'north' as cluster, 'b' as workload_uid, $at as at_ms,"
            " true as preempted, '' as reason, '' as mechanism, 'o' as preemptor_uid, 1 as attempt,"
            " 0 as missed, '' as detail", {"at": hours(24)},
        )  # fmt: skip
    agreed = replace(AGREED, preempted=Preempted.CREDITED, preempted_borne_by=BorneBy.PREEMPTOR)
    found = month(store, agreed)
    store.close()
    assert costs(found, "preemption_credit") == {"blue": Decimal("-1.99")}
    assert costs(found, "preemption_charge") == {"ruby": Decimal("1.99")}


def test_what_was_lost_under_both_names_is_one_credit() -> None:
    store = halfway()
    lost = [caused(uid, hours(23), hours(24), "preempted_lost", hours(24)) for uid in ("before", "after")]
    store.replace("north", [Replacement(table="waste_piece", rows=lost)])
    found = month(store, replace(AGREED, preempted=Preempted.CREDITED))
    store.close()
    [credit] = [line.row for line in found.lines if line.row.kind == "preemption_credit"]
    assert (credit.team, credit.effective_cost) == ("ruby", Decimal("-3.98"))


def test_a_name_that_is_handed_on_moves_no_money_of_a_closed_month() -> None:
    # In November red became blue, and who was blue became green: the store has their present names.
    handed_on = Tenancy(
        renamed={"red": "blue", "blue": "green"}, renamed_ms=dict.fromkeys(("red", "blue"), hours(45 * 24))
    )
    store = site()
    with store.transaction() as connection:
        connection.execute("update workload set team = 'green' where user_name = 'bob'")
        connection.execute("update workload set team = 'blue' where user_name = 'rita'")
    signed = closer(store, 31 * 24 + 5, tenancy=handed_on).close("2026-10", who="fin", reason="made up")
    assert {(line.row.team, line.row.user) for line in signed.lines} >= {("red", "rita"), ("blue", "bob")}
    learn(store, "late", 30, 35, team="grey")
    assert find_corrections(store, handed_on, now_ms=hours(31 * 24 + 9)) == []
    [late] = kept.corrections(store)
    store.close()
    assert {line.row.team for line in decode_lines(late.content)} == {"grey", "__idle__", "__overlap__"}
