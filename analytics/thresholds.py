"""The thresholds of the site's policy as figures, so that pages, reports and alerts show those that apply."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from analytics.evaluate import grouped
from domain.metric import Ask, Row, Sample
from domain.policy import Policy


def told(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    """The policy's value of each rule asked for; its name is that of the setting."""
    samples = []
    for labels, members in grouped(rows, ask.by):
        values = {_value(ask.policy, str(row["rule"])) for row in members}
        if len(values) > 1:
            samples.append(Sample.undefined(labels, "rules have different thresholds: ask by rule"))
        else:
            samples.append(Sample(labels=labels, value=values.pop()))
    return samples


def policy_of(samples: Sequence[Sample]) -> Policy:
    """A policy with these thresholds, the others at their defaults."""
    given: dict[str, float | int | timedelta] = {}
    for sample in samples:
        name = sample.labels["rule"]
        if sample.value is not None:
            usual = getattr(Policy(), name)
            given[name] = (
                timedelta(seconds=sample.value) if isinstance(usual, timedelta) else type(usual)(sample.value)
            )
    return replace(Policy(), **given)  # type: ignore[arg-type]  # each has the type of its default


def _value(policy: Policy, rule: str) -> float:
    value = getattr(policy, rule)
    return value / timedelta(seconds=1) if isinstance(value, timedelta) else float(value)
