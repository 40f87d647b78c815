"""That `/metrics` does not show all is an alarm: an alert on what is left out can neither begin nor end."""

from collections.abc import Mapping
from typing import Final

from service.alarms import Alarms

_ALARM: Final = "series_left_out"


def say(left_out: Mapping[str, int], alarms: Alarms) -> None:
    """
    Sound or end the alarm.

    Args:
        left_out: how many values of which metrics have no series.
    """
    if not left_out:
        alarms.end(_ALARM)
        return
    named = ", ".join(f"{name} ({number})" for name, number in sorted(left_out.items()))
    alarms.sound(_ALARM, f"there are too many series, and /metrics leaves out: {named}; the API tells them")
