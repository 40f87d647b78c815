"""
The words of an alert, filled in here or by Prometheus: one template, and the same text both ways.

Prometheus gets a template of its own, with the functions that write a number as those here do.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from string import Formatter
from typing import Final
from urllib.parse import quote_plus

from domain.metric import Unit

# Stands in a sentence for a label without a value, as the queue of work that is in none.
NO_VALUE: Final = "(none)"
_SECONDS: Final = ((86_400, "d"), (3600, "h"), (60, "m"), (1, "s"))


class Words(StrEnum):
    """How a number is written; the value is what Prometheus calls it in a pipe."""

    DURATION = "humanizeDuration"
    PERCENTAGE = "humanizePercentage"
    NUMBER = 'printf "%.6g"'
    WHOLE = 'printf "%.0f"'

    @classmethod
    def of(cls, unit: Unit) -> "Words":
        """How the numbers of a metric are written."""
        return {Unit.SECONDS: cls.DURATION, Unit.RATIO: cls.PERCENTAGE}.get(unit, cls.NUMBER)

    def write(self, value: float) -> str:
        """
        The number as people read it, as Prometheus 2.42 writes it.

        >>> Words.DURATION.write(390), Words.DURATION.write(0.0125), Words.PERCENTAGE.write(0.85)
        ('6m 30s', '12.5ms', '85%')
        >>> Words.NUMBER.write(1234.5), Words.DURATION.write(-90061)
        ('1234.5', '-1d 1h 1m 1s')
        >>> Words.DURATION.write(math.inf), Words.PERCENTAGE.write(-math.inf), Words.NUMBER.write(math.nan)
        ('+Inf', '-Inf%', 'NaN')
        """
        if not math.isfinite(value):
            name = "NaN" if math.isnan(value) else "+Inf" if value > 0 else "-Inf"
            return f"{name}%" if self is Words.PERCENTAGE else name
        if self is Words.PERCENTAGE:
            return f"{value * 100:.4g}%"
        if self is Words.DURATION:
            return _duration(value)
        return f"{value:.0f}" if self is Words.WHOLE else f"{value:.6g}"


def _duration(seconds: float) -> str:
    """Whole units from a second on, and parts of one below it."""
    if seconds == 0:
        return "0s"
    if abs(seconds) < 60:
        prefixes = iter(("", "m", "u", "n"))
        prefix = next(prefixes)
        while abs(seconds) < 1 and (smaller := next(prefixes, None)):
            prefix, seconds = smaller, seconds * 1000
        return f"{seconds:.4g}{prefix}s"
    sign, rest, parts = "-" if seconds < 0 else "", int(abs(seconds)), list[str]()
    for size, letter in _SECONDS:
        whole, rest = divmod(rest, size)
        if parts or whole:
            parts.append(f"{whole}{letter}")
    return sign + " ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Where an alert points, both without a slash at the end; runbooks by default on the page of alerts."""

    dashboard_url: str
    runbooks_url: str = ""

    def runbook(self, alert: str) -> str:
        """
        The runbook of the alert of this name.

        >>> Links(dashboard_url="https://gpu.example.org/tools").runbook("GpuIdle")
        'https://gpu.example.org/tools/alerts?runbook=GpuIdle'
        """
        if self.runbooks_url:
            return f"{self.runbooks_url}/{alert}.md"
        return f"{self.dashboard_url}/alerts?runbook={alert}"


Fill = Callable[[str], str]


def filled(template: str, fill: Fill) -> str:
    """
    The template with what `fill` gives for each name in braces.

    >>> filled("{queue} of {cluster}", str.upper)
    'QUEUE of CLUSTER'
    """
    return "".join(text + (fill(name) if name else "") for text, name, _, _ in Formatter().parse(template))


def names_in(template: str) -> set[str]:
    """
    The names in braces.

    >>> sorted(names_in("{queue}: {value}"))
    ['queue', 'value']
    """
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def quoted(labels: Mapping[str, str]) -> Fill:
    """What fills a link: a label as part of an address."""
    return lambda name: quote_plus(labels[name])


def in_words(labels: Mapping[str, str], numbers: Mapping[str, str]) -> Fill:
    """What fills a sentence: its numbers in words, and the labels, of which some may have no value."""
    return {**{name: value or NO_VALUE for name, value in labels.items()}, **numbers}.__getitem__


def asked_label(name: str) -> str:
    """
    The same of a label for Prometheus to fill in.

    >>> asked_label("queue")
    '{{ or $labels.queue "(none)" }}'
    """
    return f'{{{{ or $labels.{name} "{NO_VALUE}" }}}}'


def prometheus_duration(length: timedelta) -> str:
    """
    As Prometheus' rules have it, in the largest unit that is whole.

    >>> prometheus_duration(timedelta(hours=1)), prometheus_duration(timedelta(seconds=1.5))
    ('1h', '1500ms')
    """
    length_ms = length // timedelta(milliseconds=1)
    for unit, size in (("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1000)):
        if length_ms % size == 0:
            return f"{length_ms // size}{unit}"
    return f"{length_ms}ms"
