"""Quota: which quotas should change, why, whom it exposes, and the patch to apply it with."""

import json

import streamlit as st

from dashboard.shared import data, filters, frame, tables
from dashboard.shared import format as text
from dashboard.shared.data import Json
from dashboard.shared.tables import Cell, Column

LEAD = (
    "What a finished week's waste, and the debts at its end, say about quotas. Nothing is changed until"
    " somebody applies a patch."
)
OPEN = ("proposed", "approved")
WAYS = {
    "cut": "cut: waste above what is tolerated",
    "withdrawal": "gift taken back",
    "spare_down": "the cohort's own, taken back",
    "return": "given back after good weeks",
    "gift": "gift: the cluster owes it",
    "spare_up": "the cohort's own: what was cut and given to nobody",
}
# Name, what it is called, its unit, and what it is of; a debt is of an instant.
EVIDENCE = (
    ("agreed_gpus", "Agreed quota, GPUs", "gpus", "When the proposal was made"),
    ("hell_ratio", "Hell ratio", "ratio", "Over week {week}, {start} to {end}"),
    ("wastage_ratio", "Wastage ratio", "ratio", "Over week {week}, {start} to {end}"),
    ("penalty_gpus", "Penalty, GPUs", "gpus", "Of week {week}, {start} to {end}"),
    (
        "debt_gpu_hours",
        "Owed at week's end, GPU-h",
        "gpu_hours",
        "What the cluster owed when week {week} ended, {end}",
    ),
    ("gpu_hours", "Held in the week, GPU-h", "gpu_hours", "Over week {week}, {start} to {end}"),
    ("coverage", "Coverage", "ratio", "The part of week {week} that was observed, {start} to {end}"),
)
COLUMNS = (
    Column(key="id", title="Proposal"),
    Column(key="pool", title="Pool"),
    Column(key="holder", title="Holder"),
    Column(key="week", title="Week", help="Whose waste and debts it rests on."),
    Column(key="from", title="From, GPUs", number=True),
    Column(key="to", title="To, GPUs", number=True),
    Column(key="used", title="Used now", help="GPUs of the quota that are reserved now.", number=True),
    Column(key="exposed", title="Exposed", help="Running workloads that may be reclaimed.", number=True),
    Column(key="why", title="Why"),
    Column(key="expires", title="Expires"),
)
EXPOSED = (
    Column(key="name", title="Workload"),
    Column(key="team", title="Team"),
    Column(key="gpus", title="GPUs", number=True),
    Column(key="priority", title="Priority", number=True),
)
DECIDED = (
    Column(key="id", title="Proposal"),
    Column(key="week", title="Week"),
    Column(key="pool", title="Pool"),
    Column(key="holder", title="Holder"),
    Column(key="from", title="From, GPUs", number=True),
    Column(key="to", title="To, GPUs", number=True),
    Column(key="state", title="State"),
)
DECIDED_SHOWN = 50


def main() -> None:
    """Draw the page."""
    frame.page("Quota", LEAD, _draw)


def _draw() -> None:
    as_of = filters.from_url("as_of")
    reply = data.get("quota/proposals", {"as_of": as_of})
    rows = reply["rows"]
    waiting = [row for row in rows if row["state"] in OPEN]
    sentence = verdict(waiting)
    (st.warning if waiting else st.success)(sentence)
    st.caption(text.age(text.parse_instant(reply["as_of"]), data.now()))
    if not rows:
        st.info(
            "Proposals are made when a week has ended, of queues of which enough was observed in it, and "
            "made anew when more is known of it."
        )
    if waiting:
        tables.show(COLUMNS, [_row(row) for row in waiting], caption="proposals that wait for a decision")
        for row in waiting:
            _proposal(data.get(f"quota/proposals/{row['id']}", {"as_of": as_of}))
    decided = [row for row in rows if row["state"] not in OPEN]
    if decided:
        st.subheader("Decided, or too old", anchor=False)
        tables.show(DECIDED, [_row(row) for row in decided[:DECIDED_SHOWN]], caption="earlier proposals")


def verdict(waiting: list[dict[str, Json]]) -> str:
    """What waits for a decision, in a sentence."""
    if not waiting:
        return "No quota change waits for a decision."
    lowered = sum(max(row["before_gpus"] - row["after_gpus"], 0) for row in waiting)
    raised = sum(max(row["after_gpus"] - row["before_gpus"], 0) for row in waiting)
    exposed = len({each["uid"] for row in waiting for each in row["exposed"]})
    risk = f"; {text.count(exposed, 'running workload')} may be reclaimed" if exposed else ""
    wait = "waits" if len(waiting) == 1 else "wait"
    return (
        f"{text.count(len(waiting), 'quota change')} {wait} for a decision:"
        f" {lowered} GPUs less, {raised} GPUs more{risk}."
    )


def _row(row: dict[str, Json]) -> dict[str, Cell | str]:
    used = row["used_gpus"]
    return {
        "id": Cell(shown=row["id"], href=f"#{row['id']}" if row["state"] in OPEN else ""),
        "week": row["week"],
        "pool": row["pool"],
        "holder": row["holder"] or "(the cohort itself)",
        "from": text.gpus(row["before_gpus"]),
        "to": text.gpus(row["after_gpus"]),
        "used": Cell(shown=text.gpus(used), note="" if used is not None else "not known for this scheduler"),
        "exposed": Cell(shown=str(len(row["exposed"])), bad=bool(row["exposed"])),
        "why": WAYS.get(row["kind"], row["kind"]),
        "expires": text.instant(text.parse_instant(row["expires_at"])),
        "state": text.words(row["state"]),
    }


def _proposal(row: dict[str, Json]) -> None:
    holder = row["holder"] or "the cohort itself"
    st.subheader(f"{holder}: {row['before_gpus']} to {row['after_gpus']} GPUs", anchor=row["id"])
    st.markdown(row["because"])
    known = [entry for entry in EVIDENCE if entry[0] in row["evidence"]]
    start, end = (text.instant(text.parse_instant(row[f"week_{edge}_at"])) for edge in ("start", "end"))
    if known:
        st.caption(f"Evidence of week {row['week']}, {start} to {end}, pool {row['pool']}:")
    for where, (name, label, unit, of) in zip(st.columns(len(known) or 1), known, strict=False):
        where.metric(
            label,
            text.quantity(row["evidence"][name], unit),
            help=f"{of.format(week=row['week'], start=start, end=end)}.",
            border=True,
        )
    for each in row["funding"]:
        st.caption(
            f"{text.count(each['gpus'], 'GPU')} of it from {each['proposal']}, and only after that is"
            " applied."
        )
    if row["waits_until_free"]:
        st.caption("More is used now than this leaves: by default it waits until that is over.")
    if row["exposed"]:
        st.markdown("**Exposed**: what runs above the new quota is borrowed then, and may be reclaimed.")
        tables.show(
            EXPOSED,
            [
                {
                    "name": Cell(
                        shown=f"{each['namespace']}/{each['name']}", href=filters.link("job", uid=each["uid"])
                    ),
                    "team": each["team"],
                    "gpus": text.gpus(each["gpus"]),
                    "priority": str(each["priority"]),
                }
                for each in row["exposed"]
            ],
            caption=f"workloads exposed by {row['id']}",
        )
    _patch(row)


def _patch(row: dict[str, Json]) -> None:
    if row["patch"] is None:
        st.info(f"No patch: {row['no_patch_because']}.")
        return
    with st.expander("Patch, and the one that undoes it"):
        st.caption("Save it as a file. It tests version and value, and is refused where either changed.")
        st.code(row["command"], language=None)
        st.code(json.dumps(row["patch"], indent=2), language="json")
        st.caption("Its inverse:")
        st.code(json.dumps(row["inverse"], indent=2), language="json")


if __name__ == "__main__":
    main()
