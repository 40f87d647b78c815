"""Instants and durations from outside are refused in a sentence, never by an overflow."""

from datetime import timedelta

import pytest

from domain.errors import UsageError
from domain.window import Window, format_instant, parse_duration, parse_instant


@pytest.mark.parametrize(
    "text",
    ["99999999999999d", "9" * 400 + "d", "36526d", "0s", "0.4ms", "", "d", "1", "-1h", "nan"],
)
def test_a_duration_that_makes_no_sense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"^duration .*: expected "):
        parse_duration(text)


def test_a_duration_may_be_a_millisecond_or_a_century() -> None:
    assert parse_duration("1ms") == timedelta(milliseconds=1)
    assert parse_duration("36525d") == timedelta(days=36_525)


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"])
def test_an_instant_that_no_calendar_has_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="outside the years 1 to 9999"):
        parse_instant(text)


@pytest.mark.parametrize(
    "text",
    ["0001-01-01T00:00:00.000Z", "0987-06-05T04:03:02.001Z", "1969-12-31T23:59:59.999Z",
     "2026-03-02T09:00:00.120Z", "9999-12-31T23:59:59.999Z"],
)  # fmt: skip
def test_an_instant_of_any_year_is_written_as_it_is_read(text: str) -> None:
    assert format_instant(parse_instant(text)) == text


def test_a_window_does_not_begin_before_the_calendar() -> None:
    with pytest.raises(UsageError, match="begins before the year 1"):
        Window.before(parse_instant("0001-01-01T12:00:00Z"), timedelta(days=1))
