"""
What a viewer may see: the one place that hides anything.

Every route asks through `scoped`, so a route cannot forget it. A researcher sees the workloads of
their own teams in full. A foreign workload is not listed and looks like one that does not exist.
Metrics show foreign work in sums: each label that tells whose or where it is (`domain.metric.LABELS`)
is `others` for it, except in queues and pools that the researcher shares. docs/adr/0017 has the rule
with its reasons; `analytics.folding` applies it to rows, before anything is computed.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import TypeAlias

from analytics.chargeback.month_statement import MonthStatement
from analytics.folding import OTHERS
from analytics.over_time import Instants
from api.alerts import OF_EVALUATION, may_hear
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
from api.finance_scope import FinanceAnswers
from api.viewer import Role, Viewer
from api.why import folded
from domain.checkpoint import CheckpointReport
from domain.errors import ForbiddenError
from domain.metric import Metric
from domain.view import View

# All that an attempt tells of who took its place.
_PREEMPTOR = ("preempted_by", "preempted_by_name", "preempted_by_workload")
# All that a fault tells of whom it hit.
_NOBODY = dict.fromkeys(("pod_uid", "workload_uid", "workload", "namespace", "team"), "")
Scope: TypeAlias = Callable[[Answers, Viewer], Answers]


def scoped(answers: Answers, viewer: Viewer) -> Answers:
    """The answers as that viewer may see them."""
    if viewer.role is Role.FINANCE:
        return FinanceAnswers(answers)
    if viewer.sees_all_teams:
        return answers
    # Groups may still be named after a team's earlier name.
    return ResearcherAnswers(
        answers, replace(viewer, teams=frozenset(answers.present_teams(sorted(viewer.teams))))
    )


@dataclass(frozen=True, slots=True)
class ResearcherAnswers:
    """Answers for a viewer who belongs to some teams only."""

    _all: Answers
    _viewer: Viewer

    def registry(self) -> Mapping[str, Metric]:
        """Every metric: definitions are no secret."""
        return self._all.registry()

    def metric(self, name: str, question: Question) -> MetricAnswer:
        """
        The values, foreign work folded into `others`.

        Raises:
            ForbiddenError: the question filters on a foreign team.
        """
        filters = self._present(question.filters)
        # The sum of the others may be asked for: it is what this answer calls them.
        self._check_teams(filters, beside=OTHERS)
        as_of_ms = self._all.as_of_ms(question.as_of_ms)
        view = self._all.view(self._viewer.teams, as_of_ms)
        return self._all.metric(name, replace(question, as_of_ms=as_of_ms, filters=filters, view=view))

    def metric_at(
        self,
        name: str,
        question: Question,
        instants: Instants,
        views: Views = whole_view,  # noqa: ARG002
    ) -> Sequence[MetricAnswer]:
        """
        The same at many instants, by what was shared at each.

        Raises:
            ForbiddenError: the question filters on a foreign team.
        """
        filters = self._present(question.filters)
        self._check_teams(filters, beside=OTHERS)
        return self._all.metric_at(
            name,
            replace(question, filters=filters),
            instants,
            lambda at_ms: self._all.view(self._viewer.teams, at_ms),
        )

    def workloads(self, question: ListQuestion) -> Listing:
        """Own workloads only."""
        return self._own_of(self._all.workloads, question)

    def pending_workloads(self, question: ListQuestion) -> Listing:
        """Own workloads only; how many others come before them is told, and not who."""
        return self._own_of(self._all.pending_workloads, question)

    def workload(self, uid: str, as_of_ms: int | None = None) -> Record | None:
        """An own workload; None for a foreign one, as if there were none."""
        found = self._all.workload(uid, as_of_ms)
        if found is None or not self._viewer.sees(found["team"]):
            return None
        preemptors = {attempt["preempted_by_workload"] for attempt in found["attempts"]} - {""}
        own = {preemptor for preemptor in preemptors if self._is_own(preemptor, as_of_ms)}
        attempts = [
            attempt if attempt["preempted_by_workload"] in own else attempt | dict.fromkeys(_PREEMPTOR, "")
            for attempt in found["attempts"]
        ]
        return found | {"attempts": attempts}

    def why(self, uid: str, as_of_ms: int | None = None) -> Record | None:
        """Why an own workload waits; those others that it waits for are told in sums."""
        found = self._all.why(uid, as_of_ms)
        return folded(found, self._viewer.sees) if found and self._viewer.sees(found["team"]) else None

    def chargeback(self, month: str, question: Question) -> Record:
        """
        The lines of own teams; what the whole cluster did, and whose it is, is not told.

        Raises:
            ForbiddenError: the question filters on a foreign team.
        """
        filters = self._present(question.filters)
        self._check_teams(filters)
        # No line is without a team, so the empty name stands for no lines at all.
        teams = filters.get("team", tuple(sorted(self._viewer.teams))) or ("",)
        statement = self._all.chargeback(month, replace(question, filters={**filters, "team": teams}))
        return statement | {"hints": list(self.hints(filters))}

    def month_statement(self, month: str, question: Question) -> MonthStatement:
        """
        The lines of own teams, without what is told of the whole month.

        Raises:
            ForbiddenError: the question filters on a foreign team.
        """
        filters = self._present(question.filters)
        self._check_teams(filters)
        teams = filters.get("team", tuple(sorted(self._viewer.teams))) or ("",)
        return self._all.month_statement(month, replace(question, filters={**filters, "team": teams}))

    def close_month(self, month: str, *, who: str, reason: str = "") -> Record:  # noqa: ARG002
        """
        Not a researcher's.

        Raises:
            ForbiddenError: always.
        """
        message = f"month {month!r}: the role {self._viewer.role} closes no months; finance and admin do"
        raise ForbiddenError(message)

    def quota_proposals(self, as_of_ms: int | None = None) -> Listing:
        """Proposals for holders with an own team in them; what foreign teams run has no name."""
        listing = self._all.quota_proposals(as_of_ms)
        own = self._own_proposals(listing)
        rows = [self._told_of(row, own.keys()) for row in own.values()]
        return _only(listing, rows)

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None = None) -> Record | None:
        """A proposal for a holder with an own team in it; None for another one, as if there were none."""
        own = self._own_proposals(self._all.quota_proposals(as_of_ms))
        found = self._all.quota_proposal(proposal_id, as_of_ms) if proposal_id in own else None
        return None if found is None else self._told_of(found, own.keys())

    def teams(self, as_of_ms: int | None = None) -> Listing:
        """Own teams."""
        listing = self._all.teams(as_of_ms)
        rows = [row for row in listing.rows if self._viewer.sees(row["team"])]
        return _only(listing, rows)

    def sources(self, as_of_ms: int | None = None) -> Listing:
        """How fresh the data is; error texts and addresses are the operator's and are left out."""
        listing = self._all.sources(as_of_ms)
        hidden = "see the operator's page"
        rows = [
            row
            | {
                "source": hidden if row["source"] else "",
                "last_error": hidden if row["last_error"] else "",
                "set_aside_causes": [{"because": hidden, "count": row["set_aside"]}]
                if row["set_aside"]
                else [],
            }
            for row in listing.rows
        ]
        return replace(listing, rows=rows)

    def kueue_checks_of(self) -> Listing:
        """Nothing: where figures come from is the operator's."""
        return Listing(as_of_ms=None, rows=(), total=0, page_size=1)

    def gpu_faults(self, as_of_ms: int | None = None) -> Listing:
        """All faults, for whoever runs there may be hit next; whose foreign work it was has no name."""
        listing = self._all.gpu_faults(as_of_ms)
        rows = [row if self._viewer.sees(row["team"]) else row | _NOBODY for row in listing.rows]
        return replace(listing, rows=rows)

    def alerts(self, question: ReportQuestion) -> Listing:
        """
        Alerts of own teams, of queues and pools that they share, and such as tell of nobody's work.

        Raises:
            ForbiddenError: the question filters on a foreign team.
        """
        filters = self._present(question.filters)
        self._check_teams(filters)
        as_of_ms = self._all.as_of_ms(question.as_of_ms)
        view = self._all.view(self._viewer.teams, as_of_ms)
        listing = self._all.alerts(replace(question, as_of_ms=as_of_ms, filters=filters))
        rows = [row for row in listing.rows if may_hear(row["labels"], view, self._viewer.sees)]
        told = tuple(hint for hint in listing.hints if hint in OF_EVALUATION)
        return replace(_only(listing, rows), hints=(*told, *self.hints(filters)))

    def checkpoint(self, report: CheckpointReport, teams: Collection[str] | None = None) -> Record | None:
        """Of own work only; foreign work looks like none."""
        own = self._viewer.teams if teams is None else self._viewer.teams & set(teams)
        return self._all.checkpoint(report, own)

    def as_of_ms(self, given: int | None) -> int:
        """Same for everybody."""
        return self._all.as_of_ms(given)

    def coverage(self, question: Question, *, samples: bool) -> float | None:
        """Same for everybody."""
        return self._all.coverage(question, samples=samples)

    def hints(self, filters: Filters, view: View | None = None) -> tuple[str, ...]:
        """As the viewer may be told, whoever asks."""
        own = self._all.view(self._viewer.teams, self._all.as_of_ms(None))
        return self._all.hints(filters, view or own)

    def refusals(self, question: Question, metrics: Collection[str]) -> tuple[str, ...]:
        """Same for everybody."""
        return self._all.refusals(question, metrics)

    def view(self, teams: AbstractSet[str], as_of_ms: int) -> View:
        """Of the viewer's teams only."""
        return self._all.view(teams & self._viewer.teams, as_of_ms)

    def present_teams(self, names: Iterable[str]) -> tuple[str, ...]:
        """Same for everybody."""
        return self._all.present_teams(names)

    def readiness(self) -> str:
        """Same for everybody."""
        return self._all.readiness()

    def _own_of(self, ask: Callable[[ListQuestion], Listing], question: ListQuestion) -> Listing:
        question = replace(question, filters=self._present(question.filters))
        self._check_teams(question.filters)
        teams = question.filters.get("team", tuple(sorted(self._viewer.teams)))
        if not teams:
            nothing = replace(question, filters={**question.filters, "team": ("",)})
            return replace(ask(nothing), rows=(), total=0, hints=())
        listing = ask(replace(question, filters={**question.filters, "team": teams}))
        return replace(listing, hints=self.hints(question.filters))

    def _own_proposals(self, listing: Listing) -> dict[str, Record]:
        return {row["id"]: row for row in listing.rows if any(map(self._viewer.sees, row["teams"]))}

    def _told_of(self, proposal: Record, own: AbstractSet[str]) -> Record:
        """A proposal without foreign workloads, teams and givers."""
        givers = [each for each in proposal["funding"] if each["proposal"] in own]
        foreign = sum(each["gpus"] for each in proposal["funding"] if each["proposal"] not in own)
        return proposal | {
            "exposed": [each for each in proposal["exposed"] if self._viewer.sees(each["team"])],
            "teams": [team for team in proposal["teams"] if self._viewer.sees(team)],
            "funding": givers + ([{"proposal": OTHERS, "gpus": foreign}] if foreign else []),
        }

    def _present(self, filters: Filters) -> Filters:
        if "team" not in filters:
            return filters
        return {**filters, "team": self._all.present_teams(filters["team"])}

    def _check_teams(self, filters: Filters, *, beside: str | None = None) -> None:
        asked = filters.get("team", ())
        foreign = [team for team in asked if team != beside and not self._viewer.sees(team)]
        if foreign:
            own = ", ".join(sorted(self._viewer.teams)) or "none"
            message = f"team {foreign[0]!r} is not one of your teams ({own}): ask for an aggregate instead"
            raise ForbiddenError(message)

    def _is_own(self, uid: str, as_of_ms: int | None) -> bool:
        workload = self._all.workload(uid, as_of_ms)
        return workload is not None and self._viewer.sees(workload["team"])


def _only(listing: Listing, rows: Sequence[Record]) -> Listing:
    """The listing with these rows, so that nothing in it tells how many there are besides."""
    return replace(listing, rows=rows, total=len(rows), page_size=max(len(rows), 1))
