"""What a statement says of days that nobody observed: nothing, and how much of it that is."""

from dataclasses import replace

import pytest

from analytics.chargeback.distribution import IdlePolicy
from domain.facts import Batch, Description, ObjectKind, SourceMark
from domain.observed import Stretch
from domain.policy import Policy, patience_ms
from store.embedded import Store
from tests.build import Books
from tests.service.test_chargeback import AGREED, FIRST, hours, node, stored, told
from tests.service.test_chargeback_quota import FOREVER, span, unassigned, user, written

LONG_AGO = hours(-9000)


def first_read(store: Store, at_ms: int) -> Store:
    """A node of long standing, read for the first time at that instant."""
    seen = Description(
        uid="n1", kind=ObjectKind.NODE, namespace="", name="n1", from_ms=LONG_AGO,
        observed_ms=at_ms, body=b'{"labels":{},"gpu_capacity":{},"gpu_allocatable":{},'
        b'"unschedulable":false,"ready":"True","taints":[]}',
    )  # fmt: skip
    store.append(Batch(cluster="north", descriptions=[seen]))
    return store


def observed(store: Store, until_ms: int) -> None:
    """Read from the first of October until then; of the time before, since March, a morning only."""
    mark = SourceMark(kind=ObjectKind.POD, resource_version="2", epoch=0, seen_ms=until_ms)
    sights = {ObjectKind.POD: [Stretch(start_ms=FIRST, end_ms=until_ms)]}
    store.append(Batch(cluster="north", marks={ObjectKind.POD: mark}, sights=sights))


def quotas_of_old() -> Store:
    """Quotas, a loan, and one from nobody's quota that stand since long before the first reading."""
    books = Books()
    node(books, hours(48), None, gpus=4)
    shares = [
        span("main", LONG_AGO, FOREVER, team="red", quota=4, held=1, lent=1),
        span("side", LONG_AGO, FOREVER, team="blue", held=2, borrowed=2),
    ]
    users = [user("main", "red"), user("side", "blue")]
    return first_read(written(stored(books), shares, [unassigned(LONG_AGO, FOREVER, 1)], users), hours(48))


def test_no_quota_is_unused_lent_or_borrowed_at_a_time_that_nobody_observed() -> None:
    store = quotas_of_old()
    statement = told(store, "day", as_of_ms=hours(72))
    store.close()
    unused = {row["day"]: row["unused_commitment_gpu_hours"] for row in statement["rows"]}
    assert unused == {"2026-10-03": 2 * 24}
    total = statement["total"]
    assert (total["lent_gpu_hours"], total["borrowed_gpu_hours"]) == (24, 48)
    assert statement["from_unassigned_gpu_hours"] == 24


def test_idle_capacity_is_borne_by_quotas_for_as_long_as_somebody_looked() -> None:
    books = Books()
    node(books, hours(60), None, gpus=5)
    shares = [
        span("main", LONG_AGO, FOREVER, team="red", quota=1),
        span("new", hours(66), FOREVER, team="green", quota=3),
    ]
    store = first_read(written(stored(books), shares, [], []), hours(60))
    agreed = replace(AGREED, idle=IdlePolicy.BY_QUOTA)
    rows = told(store, "team", "kind", agreed=agreed, as_of_ms=hours(72))["rows"]
    store.close()
    borne = {row["team"]: row["gpu_hours"] for row in rows if row["kind"] == "idle_share"}
    # Of the day of the first reading twelve hours count: one GPU for twelve, three for six.
    assert borne == pytest.approx({"red": 60 * 12 / 30, "green": 60 * 18 / 30})


@pytest.mark.parametrize("filters", [{}, {"team": "red"}, {"cluster": "north"}])
def test_a_month_before_the_first_reading_is_undefined_and_not_zero(filters: dict[str, str]) -> None:
    store = quotas_of_old()
    month = told(store, month="2026-02", as_of_ms=hours(72), **filters)  # type: ignore[arg-type]
    store.close()
    assert month["nothing_because"] == (
        "nothing of 2026-02 was observed: clusters were first read at 2026-10-03T00:00:00.000Z; ask for that"
        " month or a later one"
    )
    figures = {value for value in month["total"].values() if not isinstance(value, bool)}
    assert (figures, month["books"], month["coverage"], month["rows"]) == ({None}, None, 0, [])
    assert month["unused_commitment_gpu_hours"] is None


def test_where_no_cluster_was_read_a_month_is_undefined() -> None:
    store = Store.open(None)
    month = told(store)
    store.close()
    assert (month["total"]["held_gpu_hours"], month["total"]["list_cost"], month["coverage"]) == (None,) * 3
    assert month["nothing_because"] == "no cluster was read yet: import a recording, or let serve read one"


def test_a_month_of_which_a_part_was_observed_is_over_and_not_complete() -> None:
    books = Books()
    node(books, FIRST, None)
    store = stored(books)

    def told_of(**asked: int) -> tuple[bool, bool, float]:
        found = told(store, **asked)  # type: ignore[arg-type]
        return found["over"], found["complete"], found["coverage"]

    observed(store, hours(31 * 12) - patience_ms(ObjectKind.POD, Policy()))
    assert told_of() == (True, False, 0.5)
    assert told_of(as_of_ms=hours(31 * 6)) == (False, False, 1)
    observed(store, hours(31 * 24))
    assert told_of() == (True, True, 1)
    store.close()
