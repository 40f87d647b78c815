"""A month that is closed in another zone than its neighbour: hours in both, or in none, are told first."""

from dataclasses import replace

import pytest

from domain.calendar import billing_zone
from domain.errors import RefusedError
from tests.service.closing_world import REASON, closed, closer, read, site
from tests.service.test_chargeback import AGREED

SURE = replace(AGREED, close_coverage=0)


@pytest.mark.parametrize(
    ("zone", "label", "says"),
    [
        ("Europe/Berlin", "2026-11", "1 h are in 2026-10 too"),
        ("Europe/Berlin", "2026-09", "2 h between it and 2026-10 are in none"),
        ("America/New_York", "2026-11", "4 h between it and 2026-10 are in none"),
        ("America/New_York", "2026-09", "4 h are in 2026-10 too"),
    ],
)
def test_an_hour_in_two_months_or_in_none_needs_a_reason(zone: str, label: str, says: str) -> None:
    store = site()
    closed(store, "2026-10", 31 * 24 + 5)
    moved = replace(SURE, zone=billing_zone(zone), zone_name=zone)
    with pytest.raises(RefusedError, match=f"calendar: no hour is in two months or in none: {says}"):
        closer(store, 62 * 24, moved).close(label, who="fin")
    checks = closer(store, 62 * 24, moved).close(label, who="fin", reason=REASON).checks
    store.close()
    assert [each.name for each in checks if each.forced] == ["calendar"]


def test_months_of_one_zone_follow_one_another_in_whichever_order_they_are_closed() -> None:
    store = site()
    closed(store, "2026-10", 62 * 24)
    for label in ("2026-12", "2026-08", "2026-11", "2026-09"):
        checks = {each.name: each for each in read(store, label, 93 * 24).checks}
        assert checks["calendar"].holds
        closed(store, label, 93 * 24)
    store.close()
