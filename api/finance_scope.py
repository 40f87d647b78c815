"""
What the role finance may see: every line of money of every team, and of single workloads nothing more.

A statement has teams, projects, users and queues, and no workload. Lists and details of workloads, and
what other answers tell of single ones, are left out.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from analytics.chargeback.month_statement import MonthStatement
from analytics.over_time import Instants
from api.answers import (
    Answers,
    Filters,
    Listing,
    ListQuestion,
    MetricAnswer,
    Question,
    Record,
    ReportQuestion,
    Views,
    whole_view,
)
from domain.checkpoint import CheckpointReport
from domain.metric import Metric
from domain.view import View

HINT: Final = "the role finance sees the lines of statements, and no single workloads"
# All that a fault tells of the workload that it hit.
_NO_WORKLOAD: Final = dict.fromkeys(("pod_uid", "workload_uid", "workload", "namespace"), "")


@dataclass(frozen=True, slots=True)
class FinanceAnswers:
    """Answers without single workloads."""

    _all: Answers

    def registry(self) -> Mapping[str, Metric]:
        """Same for everybody."""
        return self._all.registry()

    def metric(self, name: str, question: Question) -> MetricAnswer:
        """All teams: no metric has a workload for a label."""
        return self._all.metric(name, question)

    def metric_at(
        self, name: str, question: Question, instants: Instants, views: Views = whole_view
    ) -> Sequence[MetricAnswer]:
        """All teams, as at one instant."""
        return self._all.metric_at(name, question, instants, views)

    def workloads(self, question: ListQuestion) -> Listing:
        """None, with the reason."""
        return self._nothing(question)

    def pending_workloads(self, question: ListQuestion) -> Listing:
        """None, with the reason."""
        return self._nothing(question)

    def workload(self, uid: str, as_of_ms: int | None = None) -> Record | None:  # noqa: ARG002
        """As if there were none."""
        return None

    def why(self, uid: str, as_of_ms: int | None = None) -> Record | None:  # noqa: ARG002
        """As if there were none."""
        return None

    def chargeback(self, month: str, question: Question) -> Record:
        """Every line."""
        return self._all.chargeback(month, question)

    def month_statement(self, month: str, question: Question) -> MonthStatement:
        """Every line."""
        return self._all.month_statement(month, question)

    def close_month(self, month: str, *, who: str, reason: str = "") -> Record:
        """Finance signs."""
        return self._all.close_month(month, who=who, reason=reason)

    def quota_proposals(self, as_of_ms: int | None = None) -> Listing:
        """All, without the workloads that they expose."""
        listing = self._all.quota_proposals(as_of_ms)
        return replace(listing, rows=[row | {"exposed": []} for row in listing.rows])

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None = None) -> Record | None:
        """One, without the workloads that it exposes."""
        found = self._all.quota_proposal(proposal_id, as_of_ms)
        return None if found is None else found | {"exposed": []}

    def alerts(self, question: ReportQuestion) -> Listing:
        """All: no alert has a workload among its labels."""
        return self._all.alerts(question)

    def teams(self, as_of_ms: int | None = None) -> Listing:
        """All teams."""
        return self._all.teams(as_of_ms)

    def sources(self, as_of_ms: int | None = None) -> Listing:
        """All sources."""
        return self._all.sources(as_of_ms)

    def kueue_checks_of(self) -> Listing:
        """All comparisons: they are of queues."""
        return self._all.kueue_checks_of()

    def gpu_faults(self, as_of_ms: int | None = None) -> Listing:
        """All faults, with the team and without the workload that each hit."""
        listing = self._all.gpu_faults(as_of_ms)
        return replace(listing, rows=[row | _NO_WORKLOAD for row in listing.rows])

    def checkpoint(self, report: CheckpointReport, teams: Collection[str] | None = None) -> Record | None:  # noqa: ARG002
        """None: whoever may see no workload can tell of none."""
        return None

    def as_of_ms(self, given: int | None) -> int:
        """Same for everybody."""
        return self._all.as_of_ms(given)

    def coverage(self, question: Question, *, samples: bool) -> float | None:
        """Same for everybody."""
        return self._all.coverage(question, samples=samples)

    def hints(self, filters: Filters, view: View | None = None) -> tuple[str, ...]:
        """Same for everybody."""
        return self._all.hints(filters, view)

    def refusals(self, question: Question, metrics: Collection[str]) -> tuple[str, ...]:
        """Same for everybody."""
        return self._all.refusals(question, metrics)

    def view(self, teams: AbstractSet[str], as_of_ms: int) -> View:
        """Same for everybody."""
        return self._all.view(teams, as_of_ms)

    def present_teams(self, names: Iterable[str]) -> tuple[str, ...]:
        """Same for everybody."""
        return self._all.present_teams(names)

    def readiness(self) -> str:
        """Same for everybody."""
        return self._all.readiness()

    def _nothing(self, question: ListQuestion) -> Listing:
        return Listing(
            as_of_ms=self._all.as_of_ms(question.as_of_ms),
            rows=(),
            total=0,
            page=question.page,
            page_size=question.page_size,
            hints=(HINT,),
        )
