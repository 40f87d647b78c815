"""Buttons that give a month as a file, in each format."""

from functools import partial
from typing import Final

import streamlit as st

from dashboard.shared import data
from dashboard.shared.data import Json

# Format of the API, what the button says, what the file holds.
FORMATS: Final = (
    ("xlsx", "Excel", "A workbook: summary, every line, price book, reconciliation, method."),
    ("csv", "CSV", "A line per team, project, user, queue, model and day."),
    ("parquet", "Parquet", "The same lines with decimals, for a warehouse."),
    ("focus", "FOCUS 1.4", "The lines as FOCUS 1.4 charges with split cost allocation, for a FinOps tool."),
)


def downloads(statement: dict[str, Json], asked: dict[str, str]) -> None:
    """A button for each format; the file is made when one is pressed."""
    month, viewer = statement["month"], data.viewer()
    closed = statement["closed"]
    version = closed["sha256"][:12] if closed else "open"
    with st.container(horizontal=True, vertical_alignment="center"):
        for form, label, about in FORMATS:
            unpriced = form == "focus" and statement["no_money_because"]
            suffix = "focus.csv" if form == "focus" else form
            st.download_button(
                label,
                partial(data.download, f"chargeback/{month}/export", asked | {"format": form}, viewer),
                file_name=f"chargeback-{month}-{version}.{suffix}",
                key=f"download-{form}",
                disabled=bool(unpriced),
                help=f"Not without prices: {statement['no_money_because']}." if unpriced else about,
                icon="⬇️",
            )
