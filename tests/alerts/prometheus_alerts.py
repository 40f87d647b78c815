"""
What Prometheus does with an alert rule over `last_over_time`, as plainly as it can be written.

After rules/alerting.go of Prometheus 2.42, one label set; test_standing.py holds it against promtool.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

# At each evaluation: whether the value breaches, or None where the series has no sample.
Schedule = Sequence[bool | None]


@dataclass(slots=True, kw_only=True)
class Rule:
    """Lengths in evaluations: `for`, `keep_firing_for`, and the range of `last_over_time`."""

    hold: int
    keep: int
    window: int
    # Whether what fires goes on while there is no sample, which is where we differ from Prometheus.
    keeps_unknown: bool = False
    _active: int | None = field(default=None, init=False)
    _fires: bool = field(default=False, init=False)
    _fine: int | None = field(default=None, init=False)

    def firing(self, schedule: Schedule) -> list[bool]:
        """Whether the alert fires after each evaluation."""
        return [
            True
            if self.keeps_unknown and self._fires and schedule[at] is None
            else self._after(at, self._seen(schedule, at))
            for at in range(len(schedule))
        ]

    def _seen(self, schedule: Schedule, at: int) -> bool | None:
        """The last sample in the range, which in 2.42 holds both its ends."""
        known = [value for value in schedule[max(0, at - self.window) : at + 1] if value is not None]
        return known[-1] if known else None

    def _after(self, at: int, breaches: bool | None) -> bool:  # noqa: FBT001
        if breaches:
            self._active = at if self._active is None else self._active
            self._fine = None
            self._fires = self._fires or at - self._active >= self.hold
            return self._fires
        if self._fires:
            self._fine = at if self._fine is None else self._fine
            if at - self._fine < self.keep:
                return True
        self._active, self._fires, self._fine = None, False, None
        return False
