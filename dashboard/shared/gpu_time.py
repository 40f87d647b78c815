"""What GPU-time was for: the causes in words, and those of one workload as a table."""

from typing import Final

import streamlit as st

from dashboard.shared import format as text
from dashboard.shared import jobs_table, tables
from dashboard.shared.data import Json
from dashboard.shared.tables import Cell, Column

MEANINGS: Final = {
    "useful": "it ran and the GPU worked, and it was not lost later",
    "startup": "bound, nothing running yet, within the limit",
    "startup_over_limit": "start-up beyond the limit: large images, slow volumes",
    "gang_hold": "held while the gang was incomplete",
    "draining": "thrown out or deleted, pods still ending",
    "backoff": "pausing between crashes with the GPUs held",
    "crash_lost": "work since the last checkpoint when it failed by itself",
    "preempted_lost": "work since the last checkpoint when it was thrown out",
    "infra_lost": "work lost to a node or GPU",
    "idle": "running, with hardly any activity for a quarter of an hour",
    "resident_idle": "the same with its memory filled: a model that answers nobody",
    "unknown": "running, and no metric says whether the GPU worked: neither useful nor wasted",
}


def show(workload: dict[str, Json]) -> None:
    """Draw what a workload's GPU-time was for."""
    causes = workload["gpu_time_by_cause"]
    if not causes:
        return
    st.subheader("What its GPU time was for", anchor=False)
    held = sum(each["gpu_hours"] for each in causes)
    wasted = workload["wasted_gpu_hours"]
    share = f" ({text.share(wasted / held)})" if held and wasted else ""
    st.markdown(
        f"Wasted: {jobs_table.wasted(workload)} of {text.gpu_hours(held)} GPU-hours held{share}: what its "
        "holder could have spared."
    )
    tables.show(
        [
            Column(key="cause", title="Cause"),
            Column(key="hours", title="GPU-h", number=True),
            Column(key="charged", title="Wasted", help="Counted against its holder.", number=True),
        ],
        [_row(each) for each in causes],
        caption="GPU time by cause",
    )


def _row(each: dict[str, Json]) -> dict[str, Cell | str]:
    def hours(name: str) -> str:
        return text.bounded(each[name], "gpu_hours", lower_bound=each["lower_bound"])

    return {
        "cause": Cell(shown=text.words(each["cause"]), note=MEANINGS.get(each["cause"], "")),
        "hours": hours("gpu_hours"),
        "charged": hours("charged_gpu_hours") if each["charged_gpu_hours"] else "",
    }
