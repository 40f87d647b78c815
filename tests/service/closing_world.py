"""A small site whose months are closed: two teams on a node, and what is learnt of them late."""

from typing import Any

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.month_statement import MonthStatement
from api.answers import Question, Record
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.chargeback import document
from service.closing import Closer
from service.corrections import find_corrections
from service.statements import statement_of
from store.derived import Replacement
from store.embedded import Store
from tests.build import Books
from tests.service.test_chargeback import AGREED, FIRST, caused, hold, hours, node, stored

NOBODY = Tenancy()
# Nothing tells what was observed of these made-up books: closing them needs a reason.
REASON = "made up"


def site(node_hours: float = 24 * 92) -> Store:
    """Red holds a GPU of two for ten hours of each of the first days of October and November, blue one."""
    books = Books()
    node(books, FIRST, hours(node_hours), gpus=2)
    for number, start in enumerate((0, 24, 31 * 24, 32 * 24)):
        hold(books, f"r{number}", hours(start), hours(start + 10), team="red", user_name="rita")
        hold(books, f"b{number}", hours(start + 2), hours(start + 7.5), team="blue", user_name="bob")
    store = stored(books)
    store.replace("north", [Replacement(table="waste_piece", rows=pieces())])
    return store


def pieces(*without: str) -> list[dict[str, object]]:
    """Why the pods of the site held their GPUs: all of it useful."""
    return [
        caused(f"{who}{number}", hours(start + a), hours(start + b), "useful")
        for number, start in enumerate((0, 24, 31 * 24, 32 * 24))
        for who, a, b in (("r", 0, 10), ("b", 2, 7.5))
        if f"{who}{number}" not in without
    ]


def learn(store: Store, uid: str, start: float, end: float, **columns: Any) -> None:
    """A stay on a GPU that nobody knew of, hours since the first of October; useful."""
    books = Books()
    hold(books, uid, hours(start), hours(end), **columns)
    books.write(store)
    rows = store.rows("select waste_piece.* from waste_piece")
    piece = caused(uid, hours(start), hours(end), "useful")
    store.replace("north", [Replacement(table="waste_piece", rows=[*rows, piece])])


def closer(store: Store, at: float, agreed: Agreement = AGREED, tenancy: Tenancy = NOBODY) -> Closer:
    """Who closes at an hour since the first of October."""
    return Closer(
        store=store, agreement=agreed, policy=Policy(), tenancy=tenancy, clock=FixedClock(hours(at))
    )


def closed(store: Store, label: str, at: float, agreed: Agreement = AGREED) -> MonthStatement:
    return closer(store, at, agreed).close(label, who="fin", reason=REASON)


def read(store: Store, label: str, at: float, agreed: Agreement = AGREED) -> MonthStatement:
    return statement_of(store, agreed, Policy(), label=label, as_of_ms=hours(at), tenancy=NOBODY)


def told(store: Store, label: str, at: float, *by: str, agreed: Agreement = AGREED) -> Record:
    return document(
        store, agreed, Policy(), label=label, question=Question(by=by or None), as_of_ms=hours(at)
    )


def look(store: Store, at: float) -> list[str]:
    """Look for what was learnt of closed months."""
    return find_corrections(store, NOBODY, now_ms=hours(at))


def as_before(store: Store) -> None:
    """Open all months of a site again, and forget what was learnt of it: the next test begins anew."""
    with store.transaction() as connection:
        for table in ("closed_month", "month_correction", "month_basis", "held_day"):
            connection.execute(f"delete from {table}")  # noqa: S608 (names from here)
        for table in ("holding", "workload"):
            connection.execute(
                f"delete from {table} where workload_uid not similar to '[rb][0-3]'"  # noqa: S608
            )
        connection.execute("update workload set team = 'red' where user_name = 'rita'")
    store.replace("north", [Replacement(table="waste_piece", rows=pieces())])
