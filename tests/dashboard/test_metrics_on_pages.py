"""No metric hides in the list of metrics: each is in a report, and on the pages that it names."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from typing_extensions import override

import dashboard
from analytics.metrics import REGISTRY
from api.answers import MetricAnswer, Question, ReportQuestion
from api.reports import REPORTS
from domain.metric import Page
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.answers import Answers
from store.embedded import Store
from tests.build import at

FOLDER = Path(dashboard.__file__).parent
# For Prometheus, which makes percentiles of any range of it; people see those of the waits themselves.
NOT_FOR_PEOPLE = {"first_wait_seconds"}


@dataclass(frozen=True)
class Listening(Answers):
    """Notes which metrics somebody asks for."""

    asked: set[str] = field(default_factory=set)

    @override
    def metric(self, name: str, question: Question) -> MetricAnswer:
        self.asked.add(name)
        return super().metric(name, question)


@pytest.fixture(scope="module")
def reported() -> Iterator[dict[str, set[str]]]:
    """By report, the metrics that it asks for."""
    store = Store.open(None)
    found = {}
    for name, report in REPORTS.items():
        answers = Listening(store, Tenancy(), Policy(), FixedClock(at(180)))
        report.build(answers, ReportQuestion())
        found[name] = answers.asked
    yield found
    store.close()


def test_every_metric_is_in_a_report(reported: dict[str, set[str]]) -> None:
    told = set().union(*reported.values())
    assert REGISTRY.keys() - told == NOT_FOR_PEOPLE


@pytest.mark.parametrize("page", list(Page))
def test_a_page_shows_every_metric_that_names_it(page: Page, reported: dict[str, set[str]]) -> None:
    view = (FOLDER / f"views/{page}.py").read_text()
    shared = "".join(file.read_text() for file in FOLDER.glob("shared/*.py"))
    in_reports = {metric for report, asked in reported.items() if f'"{report}"' in view for metric in asked}
    lacking = {
        name
        for name, metric in REGISTRY.items()
        if page in metric.pages and name not in in_reports and f'"{name}"' not in view + shared
    }
    assert not lacking


def test_every_metric_names_the_page_where_people_see_it() -> None:
    assert {name for name, metric in REGISTRY.items() if not metric.pages} == NOT_FOR_PEOPLE
