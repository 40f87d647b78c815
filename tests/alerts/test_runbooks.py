"""Each alert has a runbook and each runbook an alert; what it says to type and to open is there."""

import re
import runpy
import sys
import tomllib
from dataclasses import fields
from pathlib import Path

import pytest
from typer.main import get_command

from alerts.declared import declared
from alerts.describe import BEGIN, END
from analytics.metrics import REGISTRY
from api.reports import REPORTS
from dashboard.shared import runbooks
from domain.metric import Page
from domain.policy import Policy
from service.cli import app

ROOT = Path(__file__).parents[2]
BOOKS = {path.stem: path.read_text(encoding="utf-8") for path in (ROOT / "docs/runbooks").glob("*.md")}
ALERTS = {alert.rule.name: alert for alert in declared(REGISTRY)}
CURRENT = runpy.run_path(str(ROOT / "docs/generate.py"))["runbooks"]()
PARTS = ["**Look at**", "**Do**", "**When it is wrong**"]


def test_each_alert_has_a_runbook_and_each_runbook_an_alert() -> None:
    assert sorted(BOOKS) == sorted(ALERTS)


def test_runbooks_are_installed_where_the_page_of_alerts_looks_for_them() -> None:
    """Built by setuptools' `data-files`, below the prefix of the environment; in the image too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    ((folder, patterns),) = project["tool"]["setuptools"]["data-files"].items()
    assert (ROOT / "docs/runbooks", Path(sys.prefix) / folder) == runbooks.FOLDERS
    assert {file.stem for pattern in patterns for file in ROOT.glob(pattern)} == BOOKS.keys()
    assert "!docs/runbooks" in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("name", sorted(BOOKS))
def test_a_runbook_says_what_it_means_where_to_look_what_to_do_and_when_it_is_wrong(name: str) -> None:
    book = BOOKS[name]
    assert book.startswith(f"# {name}\n\n")
    places = [book.index(part) for part in (BEGIN, END, *PARTS)]
    assert places == sorted(places)
    meaning, *_, wrong = re.split("|".join(re.escape(part) for part in (BEGIN, END, *PARTS)), book)
    assert len(meaning) > len(name) + 40
    assert len(wrong.strip()) > 20
    assert CURRENT[f"runbooks/{name}.md"] == book, "run `make docs`"


@pytest.mark.parametrize("name", sorted(BOOKS))
def test_a_runbook_shown_on_a_page_links_to_pages_only(name: str) -> None:
    for address in re.findall(r"\]\(([^)]+)\)", runbooks.text_of(name)):
        page, _, rest = address.replace("?runbook=", "#").partition("#")
        assert rest in {"alerts": ALERTS.keys(), "definitions": REGISTRY.keys()}[page], address


@pytest.mark.parametrize("name", sorted(BOOKS))
def test_what_a_runbook_says_to_type_exists(name: str) -> None:
    commands = getattr(get_command(app), "commands", {})
    for typed in re.findall(r"`gpuledger ([^`]+)`", BOOKS[name]):
        word, *rest = typed.split()
        command = commands[word]
        if hasattr(command, "commands") and rest and not rest[0].startswith("-"):
            command = command.commands[rest[0]]
        known = {option for parameter in command.params for option in parameter.opts}
        assert {each for each in rest if each.startswith("--")} <= known, typed
        if word == "metrics":
            metric = REGISTRY[rest[0]]
            by = rest[rest.index("--by") + 1].split(",") if "--by" in rest else []
            assert set(by) <= {*metric.dimensions, *metric.extra_labels}, typed
        if word == "report":
            assert rest[0] in REPORTS, typed
    settings = set(re.findall(r"`policy\.(\w+)", BOOKS[name]))
    assert settings <= {field.name for field in fields(Policy)}


def test_what_shows_an_alert_keeps_apart_what_the_alert_is_about() -> None:
    assert "`gpuledger metrics held_gpu_hours --by cluster,team,cause`" in BOOKS["GpuIdle"]


@pytest.mark.parametrize("name", sorted(ALERTS))
def test_the_link_of_an_alert_leads_to_a_page_that_has_its_filters(name: str) -> None:
    page, _, query = ALERTS[name].rule.link.partition("?")
    assert Page(page)
    view = (ROOT / f"dashboard/views/{page}.py").read_text(encoding="utf-8")
    filters = [each.partition("=")[0] for each in query.split("&") if each]
    missing = [each for each in filters if f'"{each}"' not in view and f"filters.{each}()" not in view]
    assert missing == []
