"""What a runbook says of its alert by itself: when it fires, how urgent it is, and where it is shown."""

from collections.abc import Mapping
from typing import Final

from alerts.declared import Declared, factor
from alerts.exporter import PREFIX
from alerts.wording import prometheus_duration
from domain.alert import AlertRule, Comparison
from domain.metric import Metric
from domain.policy import Policy

BEGIN: Final = "<!-- From the declaration, by `make docs`; do not edit. -->"
END: Final = "<!-- End of the declaration. -->"
_SIDES: Final = {
    Comparison.ABOVE: "above", Comparison.AT_LEAST: "at or above", Comparison.BELOW: "below"
}  # fmt: skip


def facts(alert: Declared, registry: Mapping[str, Metric], policy: Policy) -> str:
    """The table, Markdown, between its two marks; limits as the policy has them."""
    rule = alert.rule
    rows = [("Fires", f"{_value(alert)} {_limit(alert, registry, policy)}{_hold(alert)}")]
    rows.append(("Severity", str(rule.severity)))
    if alert.metric is not None:
        rows.append(
            (
                "Without data",
                _without_data(rule),
            )
        )
        told_by = dict.fromkeys((*rule.identity, *rule.match))
        by = ",".join(name for name in told_by if name in alert.metric.dimensions)
        rows.append(("To see it", f"`gpuledger metrics {alert.metric.name} --by {by}`; {_page(alert)}"))
        rows.append(
            ("Series", f"`{PREFIX}{alert.metric.series}`; [definition](../metrics.md#{alert.metric.name})")
        )
    else:
        rows.append(("To see it", f"`gpuledger doctor`; {_page(alert)}"))
        rows.append(("Expression", f"`{alert.expression}`"))
    if rule.inhibited_by:
        louder = ", ".join(f"[{name}]({name}.md)" for name in rule.inhibited_by)
        rows.append(("Not told while", f"{louder} fires for the same"))
    table = "\n".join(f"| {name} | {text} |" for name, text in rows)
    return f"{BEGIN}\n\n| | |\n|---|---|\n{table}\n\n{END}"


def renewed(book: str, alert: Declared, registry: Mapping[str, Metric], policy: Policy) -> str:
    """The runbook with its table as the declaration has it now."""
    before, _, rest = book.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{facts(alert, registry, policy)}{after}"


def _without_data(rule: AlertRule) -> str:
    window, keep = prometheus_duration(rule.window), prometheus_duration(rule.keep)
    when = "the ledger is silent" if rule.fine_if_undefined else "it is unknown or the ledger silent"
    stands = f"the last value stands for {window}, and as long as {when}"
    return f"{stands}; the alert stays {keep} after the last breach"


def _value(alert: Declared) -> str:
    """What is looked at, and of what there is one alert each."""
    each = f", one alert per {', '.join(alert.identity)}," if alert.identity else ""
    if alert.metric is None:
        return f"its value{each}"
    picked = ", ".join(f"{name} {value}" for name, value in alert.rule.match.items())
    return f"`{alert.metric.name}`{f' ({picked})' if picked else ''}{each}"


def _limit(alert: Declared, registry: Mapping[str, Metric], policy: Policy) -> str:
    limit, known = alert.rule.limit, factor(alert, policy)
    side = _SIDES[alert.rule.comparison]
    if limit.is_own:
        where = f" (`policy.alert_limits.{alert.rule.name}`)" if alert.metric else ""
        return f"{side} {alert.words.write(known)}{where}"
    setting = f" (`policy.{limit.setting}`)" if limit.setting else ""
    if not limit.gauge:
        return f"{side} {alert.words.write(known)}{setting}"
    times = "" if known == 1 else f"{known:g}{setting} times "
    gauge = registry[limit.gauge]
    return f"{side} {times}`{gauge.name}`" + (f" of its {', '.join(limit.on)}" if limit.on else "")


def _hold(alert: Declared) -> str:
    return f", for {prometheus_duration(alert.rule.hold)}" if alert.rule.hold else ""


def _page(alert: Declared) -> str:
    return f"page `/{alert.rule.link.partition('?')[0]}`"
