"""
Writes the pages that are made from code: `make docs`. With `--check` it only compares.

    docs/metrics.md      from the metrics' declarations
    docs/cli.md          from the commands' own help
    docs/data-model.md   from the store's schema: its comments, and the columns as DuckDB sees them
    docs/series.md       from the labels of what is exported
    deploy/prometheus/, deploy/grafana/   what `gpuledger rules` and `gpuledger grafana` write
    docs/runbooks/       the table in each, from the declaration of its alert
    docs/export-columns.md   from the columns of a month's files
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path

from typer import Context
from typer.cli import get_docs_for_click
from typer.main import get_command

from alerts.declared import declared
from alerts.describe import renewed
from alerts.grafana import dashboards
from alerts.inhibition import configuration
from alerts.operator import prometheus_rule, scraping
from alerts.rules import rules_file
from alerts.series import Site, page
from analytics.describe import metrics_markdown
from analytics.metrics import REGISTRY
from api.exports.detail import detail_fields
from api.exports.focus import focus_fields
from api.exports.table import Column, Kind
from domain.policy import Policy
from service.cli import app
from store.embedded import Store

DOCS = Path(__file__).parent
# Where the pages are by default.
HERE = "http://localhost:8501"
# An alert is read elsewhere; who does not put an address of theirs here is led nowhere, and sees why.
YOURS = "https://gpuledger.example.org"
SCHEMA = DOCS.parent / "store/schema"
HEAD = "<!-- Written by `make docs`; do not edit. -->\n\n"

_STATEMENT = re.compile(r"(?P<comment>(?:^--.*\n)*)^create (?P<kind>table|view) (?P<name>\w+)", re.MULTILINE)
_DATA_MODEL_HEAD = """# Data model

Tables hold facts and what is derived from them; views are what metrics read.
Names that end in `_ms` are instants: milliseconds since the epoch, UTC.
"""
_MONEY_DIGITS = 2
_EXPORTS_HEAD = """# Columns of a month's files

What [finance.md](finance.md) says in words. Amounts have the decimals of their currency; here those of EUR.
A value that is not known is empty, and never 0. A cell of text that begins as a formula does (`=`, `+`, `-`,
`@`, a tab or a line break) has an apostrophe in front of it in CSV.
"""
_FOCUS_HEAD = """## FOCUS 1.4

Cost and Usage with split cost allocation, as CSV; columns that begin with `x_` are ours and hold what they
hold above.
"""
_COLUMNS = """
select table_name, column_name, data_type, is_nullable
from information_schema.columns
order by table_name, ordinal_position
"""


def _prose(comment: str) -> str:
    return " ".join(line.removeprefix("--").strip() for line in comment.splitlines()).strip()


def _table(columns: list[dict[str, object]], kind: str) -> str:
    lines = ["| column | type |", "|---|---|"]
    for column in columns:
        # A view's columns are all nullable to DuckDB, so the word says something for tables only.
        optional = ", may be null" if kind == "table" and column["is_nullable"] == "YES" else ""
        lines.append(f"| `{column['column_name']}` | {str(column['data_type']).lower()}{optional} |")
    return "\n".join(lines)


def data_model() -> str:
    """The page of tables and views, file by file in the order in which they are applied."""
    store = Store.open(None)
    try:
        columns = store.rows(_COLUMNS, {})
    finally:
        store.close()
    parts = [_DATA_MODEL_HEAD]
    for file in sorted(SCHEMA.glob("*.sql")):
        text = file.read_text(encoding="utf-8")
        found = list(_STATEMENT.finditer(text))
        opening = re.match(r"(?:--.*\n)*", text)
        head = opening.group() if opening else ""
        parts.append(f"## {file.name}\n")
        if head and not any(match.start() == 0 for match in found):
            parts.append(_prose(head) + "\n")
        for match in found:
            own = [column for column in columns if column["table_name"] == match["name"]]
            if not own:  # a later file dropped it
                continue
            parts.append(f"### {match['kind']} `{match['name']}`\n")
            if match["comment"]:
                parts.append(_prose(match["comment"]) + "\n")
            parts.append(_table(own, match["kind"]) + "\n")
    return "\n".join(parts)


def cli() -> str:
    """The page of commands."""
    command = get_command(app)
    page = get_docs_for_click(
        obj=command, ctx=Context(command, info_name="gpuledger"), name="gpuledger", title="Command line"
    )
    return page.strip() + "\n"


def metrics() -> str:
    """The page of metrics."""
    return metrics_markdown(REGISTRY)


def runbooks() -> dict[str, str]:
    """Each runbook that there is, with its table as the declaration has it."""
    return {
        name: renewed(path.read_text(encoding="utf-8"), alert, REGISTRY, Policy())
        for alert in declared(REGISTRY)
        if (path := DOCS / (name := f"runbooks/{alert.rule.name}.md")).exists()
    }


def series() -> str:
    """The page of how many series there are."""
    return page(REGISTRY, Site())


def deployed() -> dict[str, str]:
    """What a Prometheus, an Alertmanager and a Grafana are given, with links to put right."""
    rules = rules_file(REGISTRY, Policy(), dashboard_url=YOURS)
    files = {
        "prometheus/rules.yaml": rules,
        "prometheus/prometheusrule.yaml": prometheus_rule(rules),
        "prometheus/servicemonitor.yaml": scraping(),
        "prometheus/alertmanager.yaml": configuration(declared(REGISTRY)),
    }
    files |= {f"grafana/{name}": text for name, text in dashboards(REGISTRY, dashboard_url=HERE).items()}
    return {f"../deploy/{name}": text for name, text in files.items()}


def export_columns() -> str:
    """The page of what stands in each column of a month's files."""
    parts = [_EXPORTS_HEAD, "## CSV, Parquet, and the sheet `detail`\n"]
    parts.append(_columns_table([field.column for field in detail_fields(_MONEY_DIGITS)]))
    parts.append(_FOCUS_HEAD)
    parts.append(_columns_table([field.column for field in focus_fields(_MONEY_DIGITS)]))
    return "\n".join(parts)


def _columns_table(columns: list[Column]) -> str:
    lines = ["| column | holds | what |", "|---|---|---|"]
    for column in columns:
        holds = f"{column.kind}, {column.digits} decimals" if column.kind is Kind.DECIMAL else column.kind
        lines.append(f"| `{column.name}` | {holds} | {column.about} |")
    return "\n".join(lines) + "\n"


PAGES: dict[str, Callable[[], str]] = {
    "cli.md": cli,
    "data-model.md": data_model,
    "export-columns.md": export_columns,
    "metrics.md": metrics,
    "series.md": series,
}


def main(arguments: list[str]) -> int:
    """Write the pages, or with `--check` name those that are out of date and end with 1."""
    stale = []
    made = {name: HEAD + make() for name, make in PAGES.items()}
    for name, text in (made | runbooks() | deployed()).items():
        path = DOCS / name
        if path.exists() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if "--check" not in arguments:
            path.write_text(text, encoding="utf-8")
    if stale and "--check" in arguments:
        print(f"out of date: {', '.join(stale)}; run `make docs`")
        return 1
    print(f"written: {', '.join(stale)}" if stale else "generated pages are current")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
