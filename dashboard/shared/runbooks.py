"""What to do about an alert: the text of its runbook, from the source or as it was installed."""

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
    """The runbook without its heading; empty where the files do not lie beside the product."""
    if not alert.isalnum():
        return ""
    file = next((file for folder in FOLDERS if (file := folder / f"{alert}.md").is_file()), None)
    if file is None:
        return ""
    heading, _, rest = file.read_text(encoding="utf-8").partition("\n")
    return rest.strip() if heading.startswith("#") else f"{heading}\n{rest}".strip()
