"""What a closed month rests on: whatever of it changes, the month is settled anew."""

from service.corrections import _basis
from tests.service.closing_world import site
from tests.service.test_chargeback import hours

MONTH, NEXT = 31 * 24, 61 * 24
SHARE = """
insert into share_span by name select
    'north' as cluster, 'p' as pool, 'q' as entity, 'red' as team, 'A100' as gpu_model, $at_ms as start_ms,
    $at_ms + 1 as until_ms, 1 as quota, 0 as demand, 0 as held, 0 as entitled, 0 as lent, 0 as borrowed,
    0 as over_quota, 0 as opening_debt
"""
SHARING = """
insert into team_share_span by name select
    'north' as cluster, 'p' as pool, 'q' as entity, 'blue' as team, 'A100' as gpu_model, $at_ms as start_ms,
    $at_ms + 1 as until_ms, 0 as demand, 0 as held, 0 as entitled, 0 as opening_debt
"""
EVICTION = """
insert into eviction by name select
    'north' as cluster, 'r0' as workload_uid, $at_ms as at_ms, true as preempted, '' as reason,
    '' as mechanism, '' as preemptor_uid, 1 as attempt, 0 as missed, '' as detail
"""
NODE = """
insert into description by name select
    'north' as cluster, 'n' as uid, 'Node' as kind, '' as namespace, 'n1' as name, $at_ms as from_ms,
    $at_ms as observed_ms, '{}' as body, 10 as seq
"""


def test_whatever_a_month_rests_on_is_looked_at() -> None:
    books = site()
    found = [_basis(books, hours(0), hours(MONTH))]
    for change in (
        "update holding set released_ms = released_ms + 1 where workload_uid = 'r0'",
        "update workload set team = 'green' where workload_uid = 'b0'",
        "update workload set project = 'p' where workload_uid = 'r1'",
        "update workload set skewed = 'bound before the submission' where workload_uid = 'b1'",
        "update waste_piece set cause = 'idle' where workload_uid = 'r1'",
        "update waste_piece set known_ms = $at_ms where workload_uid = 'r1'",
        "update node_span set schedulable = false",
        SHARE,
        SHARING,
        EVICTION,
        "update eviction set preemptor_uid = 'b1'",
        NODE,
    ):
        with books.transaction() as connection:
            connection.execute(change, {"at_ms": hours(9)} if "$at_ms" in change else {})
        found.append(_basis(books, hours(0), hours(MONTH)))
    assert len(set(found)) == len(found)
    # The month after it rests on none of what lies in this one alone.
    ended = "update workload set open_until_ms = $at_ms where workload_uid = 'r0'"
    with books.transaction() as connection:
        connection.execute(ended, {"at_ms": hours(11)})
    later = _basis(books, hours(MONTH), hours(NEXT))
    with books.transaction() as connection:
        connection.execute("delete from share_span")
        connection.execute("delete from team_share_span")
        connection.execute("delete from eviction")
        connection.execute("delete from waste_piece where workload_uid = 'r0'")
        connection.execute("delete from holding where workload_uid = 'r0'")
        connection.execute("update workload set team = 'blue' where workload_uid = 'r0'")
    assert _basis(books, hours(MONTH), hours(NEXT)) == later
    # But on whose work it was of which something became known in it.
    with books.transaction() as connection:
        connection.execute(
            "update waste_piece set known_ms = $at_ms where workload_uid = 'r1'", {"at_ms": hours(MONTH + 1)}
        )
    known = _basis(books, hours(MONTH), hours(NEXT))
    with books.transaction() as connection:
        connection.execute("update workload set team = 'blue' where workload_uid = 'r1'")
    assert len({later, known, _basis(books, hours(MONTH), hours(NEXT))}) == 3
    books.close()
