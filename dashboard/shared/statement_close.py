"""Whether a month is open or closed, whether its books balance, and the button that closes it."""

from typing import Final

import streamlit as st

from dashboard.shared import data, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.statement_text import amount, hours
from dashboard.shared.tables import Cell, Column
from domain.errors import ProductError
from domain.money import MICRO_GPU_MS_PER_GPU_HOUR

# The roles that the API lets close a month.
MAY_CLOSE: Final = frozenset({"finance", "admin"})
_UNKNOWN_SHOWN: Final = 20
_UNKNOWN: Final = (
    Column(key="node", title="Node"),
    Column(key="from", title="From"),
    Column(key="to", title="To"),
    Column(key="because", title="What is not known"),
)
_CHECKS: Final = (
    Column(key="holds", title="Balances"),
    Column(key="words", title="What must be equal"),
    Column(key="left", title="Left", number=True),
    Column(key="right", title="Right", number=True),
)


def state(statement: dict[str, Json]) -> str:
    """
    Open or closed, in a line.

    >>> state({"closed": None, "over": True})
    '**Open.** The month is over and not closed: late facts still change it.'
    """
    closed = statement["closed"]
    if closed is None:
        if statement["over"]:
            return "**Open.** The month is over and not closed: late facts still change it."
        return "**Open.** The month still runs."
    at = text.instant(text.parse_instant(closed["closed_at"]))
    because = f", in spite of its checks: {text.literal(closed['reason'])}" if closed["reason"] else ""
    by = text.literal(closed["closed_by"])
    return f"**Closed** {at} by {by}{because} · SHA-256 `{closed['sha256']}`"


def books(statement: dict[str, Json]) -> None:
    """Whether capacity is what was held, idle and unavailable, and what is not known."""
    st.subheader("Do the books balance?", anchor="books")
    found = statement["books"]
    if found is None:
        st.caption("The books close over whole clusters; you see the lines of your teams.")
        return
    part = {name.removesuffix("_gpu_hours"): hours(value) for name, value in found.items()}
    st.markdown(
        f"Capacity {part['capacity']} = held {part['held']} + idle {part['idle']} + unavailable"
        f" {part['unavailable']} - overlap {part['overlap']} GPU-hours; difference {part['difference']}."
    )
    unknown = statement["unknown"]
    if not unknown:
        return
    st.warning(
        f"{text.count(len(unknown), 'stretch', 'stretches')} on nodes are not known: there the figures are "
        "lower bounds, and capacity counts as what was held."
    )
    tables.show(
        _UNKNOWN,
        [
            {
                "node": f"{each['cluster']}/{each['node']}",
                "from": text.instant(text.parse_instant(each["start_at"])),
                "to": text.instant(text.parse_instant(each["end_at"])),
                "because": each["because"],
            }
            for each in unknown[:_UNKNOWN_SHOWN]
        ],
        caption="what is not known",
    )
    if len(unknown) > _UNKNOWN_SHOWN:
        st.caption(f"The first {_UNKNOWN_SHOWN} of {len(unknown):,}; the API gives all.")


def reconciliation(statement: dict[str, Json]) -> None:
    """What must agree before the month is signed, and whether it does; nothing while the month runs."""
    checks = statement["checks"]
    if not checks:
        return
    failing = [check for check in checks if not check["holds"]]
    do = "does" if len(failing) == 1 else "do"
    said = (
        f"{len(failing)} of {len(checks)} checks {do} not hold."
        if failing
        else f"All {len(checks)} checks hold."
    )
    st.markdown(f"**Reconciliation.** {said}")
    tables.show(
        _CHECKS,
        [
            {
                "holds": Cell(shown=_verdict(check), bad=not check["holds"]),
                "words": check["words"].replace("micro-GPU-ms", "GPU-hours"),
                "left": _figure(check["left"], of=check["name"]),
                "right": _figure(check["right"], of=check["name"]),
            }
            for check in checks
        ],
        caption="the reconciliation",
    )


def close(statement: dict[str, Json]) -> None:
    """The button that closes an open month that is over, with why it would refuse; for whom may close."""
    if statement["closed"] is not None or not statement["checks"] or data.role() not in MAY_CLOSE:
        return
    month, failing = statement["month"], [check for check in statement["checks"] if not check["holds"]]
    st.subheader(f"Close {month}", anchor=False)
    if refused := [check for check in failing if not check["may_be_forced"]]:
        st.error(
            f"**{month} cannot be closed yet.** {text.count(len(refused), 'check')} above must hold first: "
            + "; ".join(text.literal(check["name"]) for check in refused)
            + "."
        )
        return
    reason = ""
    if failing:
        names = "; ".join(text.literal(check["name"]) for check in failing)
        st.warning(f"These checks do not hold: {names}. Say why the month is closed all the same.")
        reason = st.text_input("Reason, kept with the statement", key=f"reason-{month}")
    sure = st.checkbox(
        f"I have checked {month}. From now on it never changes; what is learnt later is a correction.",
        key=f"sure-{month}",
    )
    ready = sure and (not failing or bool(reason.strip()))
    if st.button(f"Close {month} for good", type="primary", disabled=not ready, key=f"close-{month}"):
        try:
            data.close_month(month, reason=reason)
        except ProductError as refusal:
            st.error(f"**Not closed.** {text.literal(str(refusal))}")
        else:
            st.rerun()


def _figure(told: str, *, of: str) -> Cell:
    """
    A figure of a check as people read it, with all its digits on hover.

    GPU-time is in whole micro-GPU-milliseconds, coverage is a ratio, and an amount has decimals.

    >>> [_figure(told, of="").shown for told in ("7200000000000", "207548.23", "none")]
    ['2.000', '207,548.23', 'none']
    >>> _figure("0.403826317", of="coverage").shown
    '40 %'
    """
    whole, _, decimals = told.removeprefix("-").partition(".")
    if not (whole.isdecimal() and (decimals.isdecimal() or not decimals)):
        return Cell(shown=told)
    if of == "coverage":
        return Cell(shown=text.share(float(told)), note=told)
    if not decimals:
        return Cell(shown=f"{int(told) / MICRO_GPU_MS_PER_GPU_HOUR:,.3f}", note=f"{told} micro-GPU-ms")
    return Cell(shown=amount(told))


def _verdict(check: dict[str, Json]) -> str:
    if check["holds"]:
        return "yes"
    return "no, with a reason" if check["forced"] else "no"
