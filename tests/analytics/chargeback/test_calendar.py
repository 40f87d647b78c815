"""The billing calendar: where days and months begin."""

from datetime import UTC, tzinfo
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.calendar import Unit, billing_zone, cut, month, week
from domain.errors import UsageError
from domain.window import MS_PER_HOUR, Window, format_instant, from_ms, parse_instant
from tests.analytics.chargeback.worlds import ZONES

BERLIN = billing_zone("Europe/Berlin")
# 2026 and 2027, whole years with every clock change.
moments = st.integers(parse_instant("2026-01-01T00:00:00Z"), parse_instant("2027-12-31T00:00:00Z"))


@pytest.mark.parametrize(
    ("label", "zone", "hours"),
    [
        ("2026-03", "Europe/Berlin", 743),  # 29 March has 23 hours
        ("2026-10", "Europe/Berlin", 745),  # 25 October has 25
        ("2026-10", "UTC", 744),
        ("2028-02", "UTC", 696),
        # Lord Howe turns its clocks by half an hour.
        ("2026-10", "Australia/Lord_Howe", 743.5),
    ],
)
def test_a_month_has_the_hours_that_its_clocks_show(label: str, zone: str, hours: float) -> None:
    assert month(label, billing_zone(zone)).hours == hours


@pytest.mark.parametrize(
    ("zone", "day", "begins"),
    [
        ("Europe/Berlin", "2026-10-26", "2026-10-25T23:00:00.000Z"),
        # Midnight does not exist in Santiago on 6 September 2026: the day begins at one o'clock.
        ("America/Santiago", "2026-09-06", "2026-09-06T04:00:00.000Z"),
        # Midnight comes twice in Havana on 1 November 2026: the day begins with the first.
        ("America/Havana", "2026-11-01", "2026-11-01T04:00:00.000Z"),
    ],
)
def test_a_day_begins_at_its_first_instant(zone: str, day: str, begins: str) -> None:
    noon = parse_instant(f"{day}T12:00:00Z")
    around = Window(start_ms=noon - 36 * MS_PER_HOUR, end_ms=noon + 24 * MS_PER_HOUR)
    starts = {found.label: found.start_ms for found in cut(around, billing_zone(zone), Unit.DAY)}
    assert format_instant(starts[day]) == begins


def test_a_date_that_a_zone_skipped_is_left_out() -> None:
    # Samoa crossed the date line: there was no 30 December 2011.
    window = Window(
        start_ms=parse_instant("2011-12-29T12:00:00Z"), end_ms=parse_instant("2011-12-31T12:00:00Z")
    )
    labels = [day.label for day in cut(window, billing_zone("Pacific/Apia"), Unit.DAY)]
    assert labels == ["2011-12-29", "2011-12-31", "2012-01-01"]


@given(moments, st.integers(0, 200 * 24), st.sampled_from(ZONES), st.sampled_from(Unit))
def test_periods_cover_the_window_without_hole_or_overlap(
    start_ms: int, hours: int, zone: tzinfo, unit: Unit
) -> None:
    window = Window(start_ms=start_ms, end_ms=start_ms + hours * MS_PER_HOUR)
    found = cut(window, zone, unit)
    assert sum(period.end_ms - period.start_ms for period in found) == window.end_ms - window.start_ms
    for before, after in pairwise(found):
        assert before.end_ms == after.start_ms
        assert before.label < after.label


@given(moments, st.sampled_from(ZONES))
def test_an_instant_lies_on_the_date_that_its_clock_shows(at_ms: int, zone: tzinfo) -> None:
    (day,) = cut(Window(start_ms=at_ms, end_ms=at_ms + 1), zone, Unit.DAY)
    (whole,) = cut(Window(start_ms=at_ms, end_ms=at_ms + 1), zone, Unit.MONTH)
    assert day.label == from_ms(at_ms).astimezone(zone).date().isoformat()
    assert whole.label == day.label[:7]


@given(moments, st.sampled_from(ZONES))
def test_the_days_of_a_month_are_the_month(at_ms: int, zone: tzinfo) -> None:
    whole = month(from_ms(at_ms).astimezone(zone).strftime("%Y-%m"), zone)
    days = cut(whole.window, zone, Unit.DAY)
    assert (days[0].start_ms, days[-1].end_ms) == (whole.start_ms, whole.end_ms)
    assert {day.label[:7] for day in days} == {whole.label}


@pytest.mark.parametrize("text", ["2026-13", "October", "2026", "2026-10-01", "9999-12"])
def test_what_is_no_month_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="for example 2026-10"):
        month(text, BERLIN)


@pytest.mark.parametrize("name", ["Berlin", "", "../etc/passwd", "Europe"])
def test_what_is_no_zone_is_told(name: str) -> None:
    with pytest.raises(UsageError, match="IANA"):
        billing_zone(name)


def test_a_week_goes_from_monday_to_monday_and_has_an_hour_more_in_autumn() -> None:
    found = week("2026-W43", billing_zone("Europe/Berlin"))
    assert (found.label, found.hours) == ("2026-W43", 169.0)
    assert found.start_ms == parse_instant("2026-10-18T22:00:00Z")


def test_the_days_around_new_year_belong_to_the_iso_week_of_their_thursday() -> None:
    start_ms = parse_instant("2026-12-31T00:00:00Z")
    parts = cut(Window(start_ms=start_ms, end_ms=start_ms + 5 * 24 * MS_PER_HOUR), UTC, Unit.WEEK)
    assert [(part.label, part.hours) for part in parts] == [("2026-W53", 96.0), ("2027-W01", 24.0)]


@pytest.mark.parametrize("text", ["2026-48", "W48", "2026-W60", "2026-W48-1"])
def test_what_is_no_week_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="expected an ISO week"):
        week(text, UTC)
