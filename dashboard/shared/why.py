"""Why a workload waits: the sentence first, then what to do, the evidence, and who holds what it needs."""

from typing import Final

import streamlit as st

from dashboard.shared import filters, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.tables import Cell, Column

# In which there is a reason to tell.
STATES: Final = ("held", "queued", "checking", "placing", "starting", "backoff")
SOURCES: Final = {
    "stated": "its own state, or a machine-readable reason",
    "message": "the scheduler's message",
    "placement": "our search for a place",
    "quota": "our arithmetic of quota",
    "order": "the order of the queue",
}
_FURTHER: Final = (
    Column(key="reason", title="Reason"),
    Column(key="what", title="What", help="All that is true besides, in the order in which it would count."),
    Column(key="remedy", title="What to do"),
    Column(key="source", title="By"),
)
_HOLDERS: Final = (
    Column(key="workload", title="Workload"),
    Column(key="team", title="Team"),
    Column(key="user", title="User"),
    Column(key="amount", title="Holds", number=True),
    Column(key="since", title="Since", number=True),
    Column(
        key="ends",
        title="May end at",
        help="Half of the runs like it, that lasted as long, had ended by then; or its own limit.",
        number=True,
    ),
    Column(key="nodes", title="Nodes"),
)
_HOLDERS_SHOWN: Final = 10
_STRETCHES: Final = (
    Column(key="reason", title="Reason"),
    Column(key="blocker", title="In the way"),
    Column(key="start", title="From", number=True),
    Column(key="length", title="For", number=True),
)


def sentence(found: Json) -> str:
    """
    The answer with what to do.

    >>> sentence({"verdict": "It waits for quota.", "primary": {"remedy": "Ask for less."}})
    'It waits for quota. What to do: Ask for less.'
    """
    remedy = found["primary"]["remedy"]
    return f"{found['verdict']}{f' What to do: {remedy}' if remedy else ''}"


def show(found: Json | None) -> None:
    """The section of a page; nothing for work that waits for nothing, or where the API does not tell."""
    if found is None or found["primary"] is None:
        return
    primary = found["primary"]
    never = primary["reason"] == "NEVER_FITS"
    st.subheader("Why it waits" if found["waits"] else "Why it does not run", anchor=False)
    (st.error if never else st.info)(f"**{primary['reason']}** · {text.literal(sentence(found))}")
    since = f"since {text.instant(text.parse_instant(primary['since']))}, " if primary["since"] else ""
    st.caption(f"{since}by {SOURCES[primary['source']]}: {text.literal(evidence(primary))}".rstrip(": "))
    if primary["text"]:
        st.caption(f"In the scheduler's words: {text.literal(primary['text'])}")
    _eta(found["eta"])
    if found["further"]:
        tables.show(_FURTHER, [_further(one) for one in found["further"]], caption="further reasons")
    _holders(found)
    _timeline(found)
    _priority(found["priority"])


def _priority(made: Json | None) -> None:
    if made is None:
        return
    above = ""
    if made["outranks_at"]:
        at = text.instant(text.parse_instant(made["outranks_at"]))
        above = f"; outranks {text.literal(made['next_class'])} ({made['next_value']:,}) at {at}"
    value = f"{text.literal(made['class'])} {made['class_value']:,}, {made['ageing_bonus']:+,.0f} for its age"
    st.caption(f"Priority by the policy: {value}{above}.")


def _eta(told: Json | None) -> None:
    """When it starts."""
    if told is None:
        return
    st.markdown(f"**When it starts.** {text.literal(told['sentence'])}")
    if not told["because"]:
        first, last = (
            text.instant(text.parse_instant(told[name])) for name in ("starts_earliest", "starts_latest")
        )
        st.caption(f"In 8 of 10 cases between {first} and {last}.")
    if told["sooner"]:
        st.markdown("**Start sooner**, the best way first:")
        st.markdown("\n".join(f"- {text.literal(one['sentence'])}" for one in told["sooner"]))


def evidence(finding: Json) -> str:
    """
    Evidence in a line.

    >>> evidence({"evidence": {"asked": 8, "taints": ["a", "b"]}})
    'asked 8, taints a b'
    """
    return ", ".join(
        f"{name.replace('_', ' ')} {' '.join(map(str, value)) if isinstance(value, list) else value}"
        for name, value in finding["evidence"].items()
        # One flavor and resource stand there already, each by itself.
        if name != "kinds" or len(value) > 1
    )


def _further(finding: Json) -> dict[str, Cell | str]:
    return {
        "reason": finding["reason"],
        "what": Cell(shown=finding["sentence"], note=evidence(finding)),
        "remedy": finding["remedy"],
        "source": SOURCES[finding["source"]],
    }


def _holders(found: Json) -> None:
    others = found["other_holders"]
    if not found["holders"] and not others["workloads"]:
        return
    st.caption(f"Who holds the {'quota' if found['holds'] == 'quota' else 'GPUs'} that it needs:")
    rows: list[dict[str, Cell | str]] = [
        {
            "workload": Cell(
                shown=f"{one['namespace']}/{one['name']}", href=filters.link("job", uid=one["uid"])
            ),
            "team": one["team"],
            "user": one["user"] or text.UNDEFINED,
            "amount": f"{one['amount']:g}",
            "since": text.instant(text.parse_instant(one["since"])),
            "ends": _ends(one),
            "nodes": ", ".join(one["nodes"]),
        }
        for one in found["holders"]
    ]
    columns = [column for column in _HOLDERS if column.key != "nodes" or any(row["nodes"] for row in rows)]
    if rows:
        tables.show(columns, rows[:_HOLDERS_SHOWN], caption="who holds what it needs")
    if rest := rows[_HOLDERS_SHOWN:]:
        with st.expander(f"{text.count(len(rest), 'more holder')}"):
            tables.show(columns, rest, caption="who else holds what it needs")
    if others["workloads"]:
        first = others["first_ends_at"]
        ends = f"; the first may end at about {text.instant(text.parse_instant(first))}" if first else ""
        count = text.count(others["workloads"], "other workload")
        st.caption(f"{count} with {others['amount']:g} together{ends}.")


def _ends(holder: Json) -> Cell:
    if not holder["ends_at"]:
        return Cell(shown=text.UNDEFINED, note="too few runs like it, and no limit")
    at, low, high = (
        text.instant(text.parse_instant(told)) if told else ""
        for told in (holder["ends_at"], holder["ends_earliest"], holder["ends_latest"])
    )
    between = f"between {low} and {high} in 8 of 10 cases: " if low else ""
    return Cell(shown=at, note=f"{between}{holder['ends_because']}")


def _timeline(found: Json) -> None:
    """For what it has waited, and in which order."""
    if not found["hours_by_reason"]:
        return
    parts = ", ".join(
        f"{text.duration(one['hours'] * 3600)} {one['reason']}" for one in found["hours_by_reason"]
    )
    waited = text.duration(sum(one["hours"] for one in found["hours_by_reason"]) * 3600)
    st.caption(f"Waited {waited} so far: {parts}.")
    rows: list[dict[str, Cell | str]] = []
    for one in reversed(found["timeline"]):
        start, end = text.parse_instant(one["start_at"]), text.parse_instant(one["end_at"])
        rows.append(
            {
                "reason": one["reason"],
                "blocker": one["blocker"],
                "start": text.instant(start),
                "length": text.duration((end - start).total_seconds()),
            }
        )
    if len(rows) > 1:
        with st.expander("Its reasons so far, the newest first"):
            tables.show(_STRETCHES, rows, caption="reasons so far")
