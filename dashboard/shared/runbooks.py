"""What to do about an alert: the text of its runbook, where the product runs from its source."""

from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parents[2] / "docs" / "runbooks"


@cache
def text_of(alert: str) -> str:
    """The runbook without its heading; empty where the files do not lie beside the product."""
    file = _FOLDER / f"{alert}.md"
    if not alert.isalnum() or not file.is_file():
        return ""
    heading, _, rest = file.read_text(encoding="utf-8").partition("\n")
    return rest.strip() if heading.startswith("#") else f"{heading}\n{rest}".strip()
