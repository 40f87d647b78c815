"""What to do about an alert: the text of its runbook, from the source or as it was installed."""

import re
import sys
from functools import cache
from pathlib import Path

# The second as pyproject.toml lays them down.
FOLDERS = (
    Path(__file__).parents[2] / "docs" / "runbooks",
    Path(sys.prefix) / "share" / "gpuledger" / "runbooks",
)


@cache
def text_of(alert: str) -> str:
    """The runbook without its heading, its links as `linked` has them; empty where no file lies beside us."""
    if not alert.isalnum():
        return ""
    file = next((file for folder in FOLDERS if (file := folder / f"{alert}.md").is_file()), None)
    if file is None:
        return ""
    heading, _, rest = file.read_text(encoding="utf-8").partition("\n")
    return linked(rest.strip() if heading.startswith("#") else f"{heading}\n{rest}".strip())


def linked(text: str) -> str:
    r"""
    A runbook whose links lead to our pages; without those that lead to texts which no page has.

    Marks for who writes the text are no part of it.

    >>> linked("<!-- A mark. -->\nA text.")
    'A text.'
    >>> linked("[GpuIdle](GpuIdle.md), [what](../metrics.md#held_gpu_hours), [why](../adr/0045-a.md)")
    '[GpuIdle](alerts?runbook=GpuIdle), [what](definitions#held_gpu_hours), why'
    """
    text = re.sub(r"<!--.*?-->\n?", "", text, flags=re.DOTALL)
    text = re.sub(r"\]\((Gpu\w+)\.md\)", r"](alerts?runbook=\1)", text)
    text = re.sub(r"\]\(\.\./metrics\.md#(\w+)\)", r"](definitions#\1)", text)
    return re.sub(r"\[([^]]+)\]\(\.\./[^)]+\)", r"\1", text)
