"""
What a viewer may see: the one place that hides anything.

Every route asks through `scoped`, so a route cannot forget it. A researcher sees the workloads of
their own teams in full. A foreign workload is not listed and looks like one that does not exist.
Metrics show foreign teams as aggregates: where a figure is kept apart by team, all foreign teams
are one row, `team="others"`, computed anew from their workloads (percentiles cannot be added), and
their people are nobody by name.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from api.answers import Answers, Filters, Listing, ListQuestion, MetricAnswer, Question, Record
from api.viewer import Viewer
from domain.errors import ForbiddenError
from domain.metric import Metric

OTHERS = "others"
# Labels that tell whose something is: foreign ones become one row.
_FOLDED = ("team", "user_name")
# All that an attempt tells of who took its place.
_PREEMPTOR = ("preempted_by", "preempted_by_name", "preempted_by_workload")
Scope: TypeAlias = Callable[[Answers, Viewer], Answers]


def scoped(answers: Answers, viewer: Viewer) -> Answers:
    """The answers as that viewer may see them."""
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
        The values, foreign teams folded into `others`.

        Raises:
            ForbiddenError: the question filters on a foreign team.
        """
        question = replace(question, filters=self._present(question.filters))
        metric = self._all.registry().get(name)
        by = question.by if question.by is not None or metric is None else metric.labels
        folded = {label: OTHERS for label in _FOLDED if label in (by or ())}
        if metric is None or by is None or "team" in question.filters or not folded:
            self._check_teams(question.filters)
            return self._all.metric(name, question)
        own = self._part(name, question, tuple(sorted(self._viewer.teams)), by=by)
        # Both parts at one instant, though "now" moves between them.
        question = replace(question, as_of_ms=own.as_of_ms)
        foreign = tuple(team for team in self._team_names(own.as_of_ms) if not self._viewer.sees(team))
        if not foreign:
            return own
        rest = self._part(name, question, foreign, by=tuple(label for label in by if label not in folded))
        others = tuple(replace(row, labels={**row.labels, **folded}) for row in rest.rows)
        return replace(own, rows=own.rows + others)

    def workloads(self, question: ListQuestion) -> Listing:
        """Own workloads only."""
        question = replace(question, filters=self._present(question.filters))
        self._check_teams(question.filters)
        teams = question.filters.get("team", tuple(sorted(self._viewer.teams)))
        if not teams:
            nothing = replace(question, filters={**question.filters, "team": ("",)})
            return replace(self._all.workloads(nothing), rows=(), total=0)
        return self._all.workloads(replace(question, filters={**question.filters, "team": teams}))

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
        return self._all.chargeback(month, replace(question, filters={**filters, "team": teams}))

    def quota_proposals(self, as_of_ms: int | None = None) -> Listing:
        """Proposals for holders with an own team in them; what foreign teams run has no name."""
        listing = self._all.quota_proposals(as_of_ms)
        rows = [self._own_exposed(row) for row in listing.rows if self._sees_any(row["teams"])]
        return replace(listing, rows=rows, total=len(rows))

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None = None) -> Record | None:
        """A proposal for a holder with an own team in it; None for another one, as if there were none."""
        found = self._all.quota_proposal(proposal_id, as_of_ms)
        return None if found is None or not self._sees_any(found["teams"]) else self._own_exposed(found)

    def teams(self, as_of_ms: int | None = None) -> Listing:
        """Own teams."""
        listing = self._all.teams(as_of_ms)
        rows = [row for row in listing.rows if self._viewer.sees(row["team"])]
        return replace(listing, rows=rows, total=len(rows))

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

    def present_teams(self, names: Iterable[str]) -> tuple[str, ...]:
        """Same for everybody."""
        return self._all.present_teams(names)

    def readiness(self) -> str:
        """Same for everybody."""
        return self._all.readiness()

    def _sees_any(self, teams: Iterable[str]) -> bool:
        return any(self._viewer.sees(team) for team in teams)

    def _own_exposed(self, proposal: Record) -> Record:
        own = [each for each in proposal["exposed"] if self._viewer.sees(each["team"])]
        teams = [team for team in proposal["teams"] if self._viewer.sees(team)]
        return proposal | {"exposed": own, "teams": teams}

    def _present(self, filters: Filters) -> Filters:
        if "team" not in filters:
            return filters
        return {**filters, "team": self._all.present_teams(filters["team"])}

    def _check_teams(self, filters: Filters) -> None:
        foreign = [team for team in filters.get("team", ()) if not self._viewer.sees(team)]
        if foreign:
            own = ", ".join(sorted(self._viewer.teams)) or "none"
            message = f"team {foreign[0]!r} is not one of your teams ({own}): ask for an aggregate instead"
            raise ForbiddenError(message)

    def _part(
        self, name: str, question: Question, teams: tuple[str, ...], *, by: tuple[str, ...]
    ) -> MetricAnswer:
        filters = {**question.filters, "team": teams or ("",)}
        answer = self._all.metric(name, replace(question, by=by, filters=filters))
        return answer if teams else replace(answer, rows=())

    def _team_names(self, as_of_ms: int) -> list[str]:
        return [row["team"] for row in self._all.teams(as_of_ms).rows]

    def _is_own(self, uid: str, as_of_ms: int | None) -> bool:
        workload = self._all.workload(uid, as_of_ms)
        return workload is not None and self._viewer.sees(workload["team"])
