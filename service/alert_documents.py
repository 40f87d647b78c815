"""Alerts for the API: what fires, what is pending, and what fired in a window, with what that rests on."""

import json
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from alerts.declared import LEDGER, WORK, declared
from alerts.inhibition import inhibited_by, inhibitions
from alerts.standing import State
from api.alerts import BEFORE_THE_LAST, NEVER_EVALUATED
from api.answers import Filters, Listing, Record
from domain.alert import Severity
from domain.metric import Metric
from domain.window import Window, format_instant
from store import alerts as kept
from store.embedded import Store

HISTORY: Final = timedelta(hours=24)
_HEAD: Final = ("alertname", "severity")
_STATES: Final = (State.FIRING, State.PENDING, State.RESOLVED)


def listing(
    store: Store,
    registry: Mapping[str, Metric],
    *,
    as_of_ms: int,
    is_newest: bool,
    window: timedelta | None,
    filters: Filters,
) -> Listing:
    """
    One row per alert that fires or is pending at an instant, and per time that one fired in the window.

    What is pending is known of now only, and since when a value breaches no more; of an earlier instant a
    hint says so.

    Args:
        is_newest: the newest is asked for. That is never before the last evaluation, even where the last
            reading was: of a store that nobody serves, "now" is when it was read last.
    """
    evaluated_ms = kept.evaluated_ms(store)
    if evaluated_ms is None:
        return Listing(as_of_ms=as_of_ms, rows=(), total=0, page_size=1, hints=(NEVER_EVALUATED,))
    if is_newest:
        as_of_ms = max(as_of_ms, evaluated_ms)
    asked = Window.before(as_of_ms, window or HISTORY)
    fired = kept.firings(store, start_ms=asked.start_ms, end_ms=asked.end_ms + 1)
    is_now = as_of_ms >= evaluated_ms
    now = {row["labels"]: row for row in kept.states(store)} if is_now else {}
    units = {one.rule.name: str(one.unit) for one in declared(registry)}
    rows = [_record(now.get(row["labels"], {}), row, units) for row in _known(fired, now)]
    rows = _ordered(row for row in _with_inhibitors(rows, registry) if _passes(row, filters))
    return Listing(
        as_of_ms=as_of_ms,
        rows=rows,
        total=len(rows),
        page_size=max(len(rows), 1),
        hints=() if is_now else (BEFORE_THE_LAST,),
    )


def _known(
    fired: Iterable[Mapping[str, Any]], now: Mapping[object, Mapping[str, Any]]
) -> Iterable[Mapping[str, Any]]:
    """What fires or fired, and what is only pending."""
    yield from fired
    not_fired = {"fired_ms": None, "resolved_ms": None}
    yield from ({**row, **not_fired} for row in now.values() if row["state"] == State.PENDING)


def _record(now: Mapping[str, Any], row: Mapping[str, Any], units: Mapping[str, str]) -> Record:
    """
    Of one that goes on, the newest that is known of it; of another one what was known then.

    Args:
        now: columns of `alert_state` of the same alert; empty where it does not stand now.
        row: columns of `alert_firing`, without an instant of firing where it is pending.
    """
    goes_on = row["resolved_ms"] is None and bool(now)
    newest = {**row, **now} if goes_on else row
    labels, annotations = json.loads(row["labels"]), json.loads(newest["annotations"])
    state = State.PENDING if row["fired_ms"] is None else State.FIRING
    return {
        "alert": labels["alertname"],
        "state": str(state if row["resolved_ms"] is None else State.RESOLVED),
        "severity": labels.get("severity", ""),
        "about": WORK if row["metric"] else LEDGER,
        "labels": {name: value for name, value in labels.items() if name not in _HEAD},
        "metric": row["metric"],
        "unit": units.get(labels["alertname"], ""),
        "value": newest["value"],
        "worst_value": newest["worst_value"],
        "threshold": newest["threshold"],
        "coverage": row["coverage"],
        "active_at": format_instant(newest["active_ms"]),
        "fired_at": _instant(row["fired_ms"]),
        "resolved_at": _instant(row["resolved_ms"]),
        "value_at": _instant(now["heard_ms"] if goes_on else row["fired_ms"]),
        "fine_since": _instant(now["fine_ms"] if goes_on else None),
        "because": newest["because"],
        **{name: annotations.get(name, "") for name in ("summary", "description")},
        **{name: annotations.get(name, "") for name in ("dashboard_url", "runbook_url")},
    }


def _with_inhibitors(rows: Iterable[Record], registry: Mapping[str, Metric]) -> list[Record]:
    """What fires, with the names of those that fire too and say the same louder."""
    rules, known = inhibitions(declared(registry)), list(rows)
    louder = {rule.louder for rule in rules}
    firing = [_labels(row) for row in known if row["state"] == State.FIRING and row["alert"] in louder]
    return [
        row
        | {
            "inhibited_by": ", ".join(inhibited_by(_labels(row), firing, rules))
            if row["state"] == State.FIRING
            else ""
        }
        for row in known
    ]


def _labels(row: Record) -> dict[str, str]:
    return {"alertname": row["alert"], **row["labels"]}


def _passes(row: Record, filters: Filters) -> bool:
    return all(row["labels"].get(name, "") in wanted for name, wanted in filters.items())


def _ordered(rows: Iterable[Record]) -> list[Record]:
    """What fires, the most urgent of it first, then what is pending; of each what began last first."""
    by_time = sorted(rows, key=lambda row: (row["alert"], *row["labels"].values()))
    by_time.sort(key=lambda row: str(row["fired_at"] or row["active_at"]), reverse=True)
    return sorted(by_time, key=_urgency)


def _urgency(row: Record) -> tuple[int, int]:
    state, known = State(row["state"]), [*map(str, Severity)]
    rank = known.index(row["severity"]) if row["severity"] in known else len(known)
    return _STATES.index(state), 0 if state is State.RESOLVED else rank


def _instant(at_ms: int | None) -> str | None:
    return None if at_ms is None else format_instant(at_ms)
