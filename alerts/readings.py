"""What an alert finds in what was measured, and how it is told: without Prometheus, as Prometheus would."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Final

from alerts.declared import Declared, factor, labels
from alerts.wording import Links, Words, filled, in_words, quoted
from domain.alert import Comparison
from domain.metric import Sample
from domain.policy import Policy

UNKNOWN_LIMIT: Final = "what it is held against is not known"
NO_LIMIT: Final = "there is nothing any more that it is held against"


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """
    What an alert found for one identity.

    `labels` are those that are sent; `identity` is the part that differs. `breaches` is None, with
    the reason, where the value or its limit is not known. `count` is how many it is about, and `example`
    names one of them, where the alert tells that and it is known. `is_gone`: what it was held against is
    measured, and there is none for this identity.
    """

    labels: Mapping[str, str]
    identity: Mapping[str, str]
    value: float | None
    limit: float | None
    breaches: bool | None
    because: str = ""
    count: float | None = None
    example: str = ""
    is_gone: bool = False


def readings(alert: Declared, samples: Mapping[str, Sequence[Sample]], policy: Policy) -> list[Reading]:
    """
    What the alert finds, per identity, those that do not breach included.

    Of several samples the worst counts; undefined ones only where there is no other.

    Args:
        samples: the newest, by metric; of an alert about the ledger by the alert's name.
    """
    rule, names = alert.rule, alert.identity
    found: dict[tuple[str, ...], list[Sample]] = {}
    for sample in samples.get(alert.source, ()):
        if rule.match.items() <= sample.labels.items() and sample.labels.keys() >= set(rule.identity):
            found.setdefault(tuple(sample.labels.get(name, "") for name in names), []).append(sample)
    limits, counts = _limits(alert, samples, policy), _counts(alert, samples)
    # An undefined value may be one of none that is there, and then of all.
    gauges = samples.get(rule.limit.gauge, ())
    are_known = bool(gauges) and all({*rule.limit.on} <= sample.labels.keys() for sample in gauges)
    return [
        replace(
            _reading(alert, dict(zip(names, key, strict=True)), members, limits, are_known=are_known),
            count=counts.get(key),
        )
        for key, members in found.items()
    ]


def _counts(alert: Declared, samples: Mapping[str, Sequence[Sample]]) -> dict[tuple[str, ...], float]:
    """How many each alert is about, by its identity; of several the most, as the rules record it."""
    found: dict[tuple[str, ...], float] = {}
    for sample in samples.get(alert.rule.counted, ()):
        if sample.value is not None:
            key = tuple(sample.labels.get(name, "") for name in alert.identity)
            found[key] = max(found.get(key, sample.value), sample.value)
    return found


def _limits(
    alert: Declared, samples: Mapping[str, Sequence[Sample]], policy: Policy
) -> dict[tuple[str, ...], float | None]:
    """By the labels on which they are joined, None where undefined; of several the one breached first."""
    limit, known = alert.rule.limit, factor(alert, policy)
    if not limit.gauge:
        return {(): known}
    found: dict[tuple[str, ...], float | None] = {}
    strictest = max if alert.rule.comparison is Comparison.BELOW else min
    for sample in samples.get(limit.gauge, ()):
        key = tuple(sample.labels.get(name, "") for name in limit.on)
        before, value = found.get(key), None if sample.value is None else sample.value * known
        found[key] = before if value is None else value if before is None else strictest(before, value)
    return found


def _reading(
    alert: Declared,
    identity: Mapping[str, str],
    members: Sequence[Sample],
    limits: Mapping[tuple[str, ...], float | None],
    *,
    are_known: bool,
) -> Reading:
    rule = alert.rule
    known = [(sample.value, sample.example) for sample in members if sample.value is not None]
    worst = min if rule.comparison is Comparison.BELOW else max
    value, example = worst(known, key=itemgetter(0)) if known else (None, "")
    key = tuple(identity[name] for name in rule.limit.on)
    limit, is_gone = limits.get(key), are_known and key not in limits
    unlimited = NO_LIMIT if is_gone else UNKNOWN_LIMIT
    breaches, because = None, members[0].undefined_because if value is None else unlimited
    if value is not None and limit is not None:
        breaches, because = rule.comparison.breaches(value, limit), ""
    elif value is None and rule.fine_if_undefined:
        breaches = False
    return Reading(
        labels=labels(alert, identity),
        identity=identity,
        value=value,
        limit=limit,
        breaches=breaches,
        because=because,
        example=example,
        is_gone=is_gone and value is not None,
    )


def annotations(alert: Declared, found: Reading, links: Links) -> dict[str, str]:
    """The annotations of an alert that breaches, as Prometheus would fill them in; and an example."""
    assert found.value is not None, "a breach has a value"
    assert found.limit is not None, "a breach has a limit"
    rule, words = alert.rule, alert.words
    numbers = {
        "value": words.write(found.value),
        "limit": words.write(found.limit),
        "number": Words.WHOLE.write(found.value),
        "count": "" if found.count is None else Words.NUMBER.write(found.count),
    }
    fill = in_words(found.identity, numbers)
    return {
        "summary": filled(rule.summary, fill),
        "description": filled(alert.meaning, fill),
        "runbook_url": links.runbook(alert.rule.name),
        "dashboard_url": f"{links.dashboard_url}/{filled(rule.link, quoted(found.identity))}",
        **{name: filled(text, fill) for name, text in rule.facts.items()},
        **({rule.example: found.example} if rule.example and found.example else {}),
    }
