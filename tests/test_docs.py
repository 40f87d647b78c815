"""Everything that a user meets has its page, and the generated pages are current."""

import re
import runpy
from pathlib import Path

import pytest
from typer.main import get_command

from analytics.metrics import REGISTRY
from service.cli import app

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
GENERATE = runpy.run_path(str(DOCS / "generate.py"))


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(GENERATE["PAGES"]))
def test_a_generated_page_is_what_the_code_says(name: str) -> None:
    page = GENERATE["HEAD"] + GENERATE["PAGES"][name]()
    assert page == _read(DOCS / name), "run `make docs`"


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_metric_stands_on_the_page_of_metrics_with_its_definition(name: str) -> None:
    page = _read(DOCS / "metrics.md")
    metric = REGISTRY[name]
    assert f"[`{name}`](#{name}) | {metric.unit} | {metric.title} |" in page
    section = page.partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    # How it is figured, in a sentence at least, and whose word or formula that is.
    assert metric.definition in section
    assert metric.definition.endswith(".")
    assert metric.source.strip()
    assert f"- Source: {metric.source}." in section


def test_every_command_stands_on_the_page_of_commands() -> None:
    page = _read(DOCS / "cli.md")
    commands = getattr(get_command(app), "commands", {})
    assert commands
    assert [name for name in commands if f"`gpuledger {name}`" not in page] == []


def _decisions() -> list[Path]:
    return sorted((DOCS / "adr").glob("[0-9]*.md"))


def test_decisions_are_numbered_without_a_hole() -> None:
    numbers = [int(path.name[:4]) for path in _decisions()]
    assert numbers == list(range(1, len(numbers) + 1))


@pytest.mark.parametrize("decision", _decisions(), ids=lambda path: path.stem)
def test_a_decision_names_what_was_rejected_and_what_would_change_it(decision: Path) -> None:
    headings = re.findall(r"^## (.+)$", _read(decision), re.MULTILINE)
    assert headings == [
        "Context",
        "Decision",
        "Rejected",
        "Consequences",
        "What would make us reconsider",
    ]


def _pages_with_links() -> list[Path]:
    return [*sorted(ROOT.glob("*.md")), *sorted(DOCS.rglob("*.md")), *sorted((ROOT / "deploy").glob("*.md"))]


@pytest.mark.parametrize("page", _pages_with_links(), ids=lambda path: str(path.relative_to(ROOT)))
def test_a_link_inside_the_project_leads_somewhere(page: Path) -> None:
    links = re.findall(r"\]\(([^)#\s]+)", _read(page))
    broken = [
        link
        for link in links
        if not link.startswith(("http://", "https://")) and not (page.parent / link).exists()
    ]
    assert broken == []
