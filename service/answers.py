"""Answers every question from the store: metrics, workloads, teams, sources."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias

from analytics.chargeback.agreement import Agreement
from analytics.evaluate import evaluate, exported_asks, parameters
from analytics.metrics import REGISTRY
from api.answers import Filters, Listing, ListQuestion, MetricAnswer, Question, Record
from api.parameters import nearest
from domain.errors import StoreError, UsageError
from domain.metric import Ask, Measurement, Metric, Row
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import Clock, Window, format_instant
from service import chargeback, quota_documents, sources, workloads
from service.alarms import Alarms
from service.quota_settings import QuotaSettings
from service.sources import Mark
from store.embedded import Store

# Gives the rows of a query with its parameters.
Read: TypeAlias = Callable[[str, Mapping[str, int]], Sequence[Row]]

# One row per team that had submitted work before $as_of_ms.
_TEAMS: Final = """
select
    team,
    count(*) as workloads,
    count(*) filter (where coalesce(ended_ms >= $as_of_ms, true)) as open_workloads,
    max(submitted_ms) as last_submitted_ms
from gpu_workload
where submitted_ms < $as_of_ms
group by team
order by team
"""


_FIRST: Final = "select min(submitted_ms) as first_ms from gpu_workload"


@dataclass(frozen=True, slots=True)
class Answers:
    """
    Answers from an open store.

    `clock` says what "now" is where a question names no instant. Safe to use from many threads.
    """

    store: Store
    tenancy: Tenancy
    policy: Policy
    clock: Clock
    agreement: Agreement = field(default_factory=Agreement)
    quotas: QuotaSettings = field(default_factory=QuotaSettings)
    alarms: Alarms = field(default_factory=Alarms)

    def registry(self) -> Mapping[str, Metric]:
        """Every metric by name."""
        return REGISTRY

    def metric(self, name: str, question: Question) -> MetricAnswer:
        """
        The values of one metric.

        Raises:
            UsageError: there is no such metric or label.
        """
        metric = REGISTRY.get(name)
        if metric is None:
            message = f"metric {name!r}: {nearest(name, list(REGISTRY))}"
            raise UsageError(message)
        as_of_ms = self._as_of_ms(question.as_of_ms)
        length = question.window or metric.window or self.policy.window
        ask = Ask(
            window=Window.before(as_of_ms, length),
            by=metric.labels if question.by is None else question.by,
            filters=self._present_names(question.filters),
            policy=self.policy,
        )
        rows = self.store.rows(metric.sql, parameters(metric, ask))
        return MetricAnswer(
            metric=metric.name,
            unit=str(metric.unit),
            as_of_ms=as_of_ms,
            window=length if metric.windowed else None,
            coverage=sources.coverage(
                self._marks(as_of_ms, samples=metric.rests_on_samples),
                as_of_ms,
                policy=self.policy,
                clusters=question.filters.get("cluster", ()),
            ),
            rows=tuple(evaluate(metric, rows, ask)),
        )

    def measure(self, metric: Metric, as_of_ms: int, *, read: Read | None = None) -> list[Measurement]:
        """
        The series of a metric as they are exported.

        Args:
            read: reads its rows, where the caller keeps those of metrics with the same query.
        """
        rows = read or self.store.rows
        return [
            Measurement(metric=metric.name, as_of_ms=as_of_ms, sample=sample)
            for ask in exported_asks(metric, as_of_ms, self.policy)
            for sample in evaluate(metric, rows(metric.sql, parameters(metric, ask)), ask)
        ]

    def workloads(self, question: ListQuestion) -> Listing:
        """A page of workloads; raises UsageError where the column to sort by does not exist."""
        question = replace(question, filters=self._present_names(question.filters))
        return workloads.listing(self.store, question, self._as_of_ms(question.as_of_ms))

    def workload(self, uid: str, as_of_ms: int | None = None) -> Record | None:
        """One workload with its spans and attempts; None where there is none."""
        return workloads.detail(self.store, uid, self._as_of_ms(as_of_ms))

    def chargeback(self, month: str, question: Question) -> Record:
        """The statement of a month; raises UsageError where there is no such month or dimension."""
        question = replace(question, filters=self._present_names(question.filters))
        return chargeback.document(
            self.store,
            self.agreement,
            label=month,
            question=question,
            as_of_ms=self._as_of_ms(question.as_of_ms),
        )

    def quota_proposals(self, as_of_ms: int | None = None) -> Listing:
        """Every quota proposal that was made by then, newest first."""
        return quota_documents.listing(self.store, self.quotas, self._as_of_ms(as_of_ms))

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None = None) -> Record | None:
        """One quota proposal with its patch; None where there is none."""
        return quota_documents.detail(self.store, self.quotas, proposal_id, self._as_of_ms(as_of_ms))

    def teams(self, as_of_ms: int | None = None) -> Listing:
        """Every team that had submitted work by then."""
        at_ms = self._as_of_ms(as_of_ms)
        rows = [
            {
                "team": row["team"],
                "workloads": row["workloads"],
                "open_workloads": row["open_workloads"],
                "last_submitted_at": format_instant(_whole(row["last_submitted_ms"])),
            }
            for row in self.store.rows(_TEAMS, {"as_of_ms": at_ms})
        ]
        return Listing(as_of_ms=at_ms, rows=rows, total=len(rows), page_size=max(len(rows), 1))

    def sources(self, as_of_ms: int | None = None) -> Listing:
        """
        One row per cluster and kind that is read, and per source of GPU metrics.

        Then one per source of what was set aside only.
        """
        at_ms = self._as_of_ms(as_of_ms)
        aside = self.store.set_aside_counts() + workloads.skewed(self.store, at_ms)
        rows = sources.rows(self._marks(at_ms, samples=True), aside, at_ms, policy=self.policy)
        return Listing(as_of_ms=at_ms, rows=rows, total=len(rows), page_size=max(len(rows), 1))

    def present_teams(self, names: Iterable[str]) -> tuple[str, ...]:
        """
        Teams by their present names.

        A name that some team bears now stands for that team, also where another one bore it before:
        so present names stay what they are.
        """
        renamed = self.tenancy.renamed
        present = set(renamed.values())
        return tuple(dict.fromkeys(name if name in present else renamed.get(name, name) for name in names))

    def first_ms(self) -> int | None:
        """The instant of the first submission; None while there is none."""
        (row,) = self.store.rows(_FIRST, {})
        return None if row["first_ms"] is None else _whole(row["first_ms"])

    def readiness(self) -> str:
        """Empty when the store answers and clusters are read, else why not."""
        try:
            self.store.rows("select 1 as one", {})
        except StoreError:
            return "the store does not answer; the operator finds the reason in the log"
        return self.alarms.why_not_ready()

    def _marks(self, as_of_ms: int, *, samples: bool) -> list[Mark]:
        """Where every reading of objects stood; with samples, that of GPU metrics too."""
        of_samples = sources.sample_marks(self.store, as_of_ms, policy=self.policy) if samples else []
        return sources.marks(self.store, as_of_ms) + of_samples

    def _as_of_ms(self, given: int | None) -> int:
        return self.clock.now_ms() if given is None else given

    def _present_names(self, filters: Filters) -> Filters:
        """A team is found by its earlier names too."""
        if "team" not in filters:
            return filters
        return {**filters, "team": self.present_teams(filters["team"])}


def _whole(value: object) -> int:
    if not isinstance(value, int):
        message = f"the store gave {value!r}: expected a whole number"
        raise StoreError(message)
    return value
