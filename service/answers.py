"""Answers every question from the store: metrics, workloads, teams, sources."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from datetime import timedelta

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.month_statement import MonthStatement
from analytics.evaluate import Rows, evaluate, exported_asks
from analytics.folding import evaluate_seen
from analytics.metrics import REGISTRY
from analytics.over_time import Instants
from api.answers import (
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
from api.parameters import nearest
from domain.checkpoint import CheckpointReport, ToldBy
from domain.errors import StoreError, UnreachableError, UsageError
from domain.metric import Ask, Measurement, Metric, Sample
from domain.policy import Policy
from domain.tenant import UNASSIGNED, Tenancy
from domain.view import View
from domain.window import MS_PER_SECOND, Clock, Window, format_instant
from service import (
    alert_documents,
    chargeback,
    closing,
    fault_rows,
    gaps,
    observation,
    over_time,
    pending,
    positions,
    quota_documents,
    refusals,
    sources,
    team_rows,
    unbooked,
    unknown_names,
    why,
    workloads,
)
from service.alarms import Alarms
from service.checkpoints import Checkpoints
from service.closing import Closer
from service.kueue_checks import KueueChecks
from service.quota_settings import QuotaSettings
from service.reading import Reader
from service.sources import Mark
from service.statements import fitting, statement_of
from service.why_orders import Orders
from service.why_scene import Scenes
from store.embedded import Store


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
    orders: Orders = field(default_factory=Orders)
    scenes: Scenes = field(default_factory=Scenes)
    # Only where clusters are read there is somebody to take it in.
    checkpoints: Checkpoints | None = None
    kueue_checks: KueueChecks | None = None
    # While it is entered nobody else brings the books up to date.
    alone: Callable[[], AbstractContextManager[object]] = nullcontext

    def registry(self) -> Mapping[str, Metric]:
        """Every metric by name."""
        return REGISTRY

    def metric(self, name: str, question: Question) -> MetricAnswer:
        """
        The values of one metric.

        Raises:
            UsageError: there is no such metric or label.
        """
        metric = _known(name)
        ask = self.ask(metric, question)
        rows = Reader(self.store.kept_rows, self.store.kept_frame).read(metric, ask)
        return replace(
            self.told(metric, rows, ask, question),
            hints=(
                *self.hints(question.filters, question.view),
                *self.refusals(replace(question, as_of_ms=ask.as_of_ms), (name,)),
            ),
        )

    def metric_at(
        self, name: str, question: Question, instants: Instants, views: Views = whole_view
    ) -> Sequence[MetricAnswer]:
        """The same at each of many instants, with hints of the last one; see `service.over_time`."""
        return over_time.answers_at(self, _known(name), question, instants, views)

    def ask(self, metric: Metric, question: Question) -> Ask:
        """What a question asks of a metric; raises UsageError where its instant lies in the future."""
        by = metric.labels if question.by is None else question.by
        return Ask(
            window=Window.before(self.as_of_ms(question.as_of_ms), self._length(metric, question)),
            # Extra labels are on every row, whether they are asked for or not.
            by=tuple(label for label in by if label not in metric.extra_labels),
            filters=self._present_names(question.filters),
            policy=self.policy,
        )

    def told(
        self, metric: Metric, rows: Rows, ask: Ask, question: Question, marks: Sequence[Mark] | None = None
    ) -> MetricAnswer:
        """What rows tell of a metric, for clusters that had been read by then; for `marks` see `coverage`."""
        because, window = "", self._length(metric, question) if metric.windowed else None
        if "cluster" in metric.dimensions:
            first_ms, asked = self.store.first_observed_ms(), ask.filters.get("cluster", ())
            rows, because = observation.observed_rows(rows, first_ms, ask.as_of_ms, asked)
        return MetricAnswer(
            metric=metric.name,
            unit=str(metric.unit),
            as_of_ms=ask.as_of_ms,
            window=window,
            coverage=self.coverage(
                replace(question, as_of_ms=ask.as_of_ms, window=window),
                samples=metric.rests_on_samples,
                marks=marks,
            ),
            rows=(Sample.undefined({}, because),) if because else self._samples(metric, rows, ask, question),
        )

    def measure(self, metric: Metric, as_of_ms: int, *, reader: Reader | None = None) -> list[Measurement]:
        """
        The series of a metric as they are exported.

        Args:
            reader: reads its rows, where the caller keeps those of metrics with the same query.
        """
        reader = reader or Reader.of(self.store)
        return [
            Measurement(metric=metric.name, as_of_ms=as_of_ms, sample=sample)
            for ask in exported_asks(metric, as_of_ms, self.policy)
            for sample in evaluate(metric, reader.read(metric, ask), ask)
        ]

    def workloads(self, question: ListQuestion) -> Listing:
        """A page of workloads; raises UsageError where the column to sort by does not exist."""
        question = replace(question, filters=self._present_names(question.filters))
        listing = workloads.listing(self.store, question, self.as_of_ms(question.as_of_ms))
        return replace(listing, hints=self.hints(question.filters))

    def workload(self, uid: str, as_of_ms: int | None = None) -> Record | None:
        """One workload with its spans and attempts; None where there is none."""
        return workloads.detail(self.store, uid, self.as_of_ms(as_of_ms))

    def why(self, uid: str, as_of_ms: int | None = None) -> Record | None:
        """Why one workload waits; None where there is none."""
        return why.document(self.store, uid, self.as_of_ms(as_of_ms), self.policy, self.orders, self.scenes)

    def pending_workloads(self, question: ListQuestion) -> Listing:
        """A page of the workloads that wait for quota, in Kueue's order."""
        question = replace(question, filters=self._present_names(question.filters))
        listing = pending.listing(self.store, question, self.as_of_ms(question.as_of_ms))
        return replace(listing, hints=self.hints(question.filters))

    def chargeback(self, month: str, question: Question) -> Record:
        """The statement of a month; raises UsageError where there is no such month or dimension."""
        question = replace(question, filters=self._present_names(question.filters))
        statement = chargeback.document(
            self.store,
            self.agreement,
            self.policy,
            label=month,
            question=question,
            as_of_ms=self.as_of_ms(question.as_of_ms),
            tenancy=self.tenancy,
        )
        return statement | {"hints": list(self.hints(question.filters))}

    def month_statement(self, month: str, question: Question) -> MonthStatement:
        """The same with its exact lines; raises UsageError where there is no such month."""
        filters = self._present_names(question.filters)
        statement = statement_of(
            self.store,
            self.agreement,
            self.policy,
            label=month,
            as_of_ms=self.as_of_ms(question.as_of_ms),
            tenancy=self.tenancy,
            clusters=filters.get("cluster", ()),
        )
        return fitting(statement, filters, self.tenancy)

    @property
    def closer(self) -> Closer:
        """Who closes months."""
        return Closer(
            store=self.store,
            agreement=self.agreement,
            policy=self.policy,
            tenancy=self.tenancy,
            clock=self.clock,
            alone=self.alone,
        )

    def close_month(self, month: str, *, who: str, reason: str = "") -> Record:
        """Close a month for good; raises RefusedError where it is closed, not over, or does not balance."""
        return closing.record(self.closer.close(month, who=who, reason=reason))

    def quota_proposals(self, as_of_ms: int | None = None) -> Listing:
        """Every quota proposal that was made by then, newest first."""
        return quota_documents.listing(self.store, self.quotas, self.as_of_ms(as_of_ms))

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None = None) -> Record | None:
        """One quota proposal with its patch; None where there is none."""
        return quota_documents.detail(self.store, self.quotas, proposal_id, self.as_of_ms(as_of_ms))

    def teams(self, as_of_ms: int | None = None) -> Listing:
        """Every team that had submitted work by then."""
        return team_rows.listing(self.store, self.as_of_ms(as_of_ms))

    def sources(self, as_of_ms: int | None = None) -> Listing:
        """
        One row per cluster and kind that is read, and per source of GPU metrics.

        Then one per source of what was set aside only, one per cluster and gap in what is told, and one per
        alarm that sounds.
        """
        at_ms = self.as_of_ms(as_of_ms)
        aside = self.store.set_aside_counts() + workloads.skewed(self.store, at_ms)
        marks = self._marks(at_ms, samples=True) + positions.marks(self.store, at_ms)
        rows = sources.rows(marks, aside + unbooked.set_aside(self.store), at_ms, policy=self.policy)
        rows += gaps.rows(self.store, at_ms, policy=self.policy)
        if as_of_ms is None:
            rows += gaps.of_alarms(self.alarms.sounding())
        return Listing(as_of_ms=at_ms, rows=rows, total=len(rows), page_size=max(len(rows), 1))

    def kueue_checks_of(self) -> Listing:
        """Kueue's own figures beside ours, as they were compared last; empty where nobody compares."""
        if self.kueue_checks is None:
            return Listing(as_of_ms=None, rows=(), total=0, page_size=1)
        return self.kueue_checks.listing()

    def gpu_faults(self, as_of_ms: int | None = None) -> Listing:
        """What happened to GPUs, the newest first."""
        return fault_rows.listing(self.store, self.as_of_ms(as_of_ms))

    def alerts(self, question: ReportQuestion) -> Listing:
        """What fires, what is pending and what fired in the window, as evaluated at the last measurement."""
        found = alert_documents.listing(
            self.store,
            REGISTRY,
            as_of_ms=self.as_of_ms(question.as_of_ms),
            is_newest=question.as_of_ms is None,
            window=question.window,
            filters=self._present_names(question.filters),
        )
        return replace(found, hints=(*found.hints, *self.hints(question.filters)))

    def coverage_of(self, name: str, cluster: str, as_of_ms: int) -> float | None:
        """The share that was observed of what a metric's exported series rest on; cluster '' is all."""
        metric = REGISTRY[name]
        question = Question(
            as_of_ms=as_of_ms,
            window=(metric.window or self.policy.window) if metric.windowed else None,
            filters={"cluster": (cluster,)} if cluster else {},
        )
        return self.coverage(question, samples=metric.rests_on_samples)

    def checkpoint(self, report: CheckpointReport, teams: Collection[str] | None = None) -> Record | None:
        """
        Keep a checkpoint that a job tells of; see `Checkpoints.take`.

        Raises:
            UnreachableError: nobody reads clusters here.
        """
        if self.checkpoints is None:
            message = "no cluster is read here: checkpoints are taken by a running gpuledger serve"
            raise UnreachableError(message)
        return self.checkpoints.take(report, by=ToldBy.PUSH, teams=teams)

    def view(self, teams: AbstractSet[str], as_of_ms: int) -> View:
        """What these teams share with others: the queues and pools in which they stood by then."""
        return team_rows.view(self.store, teams, as_of_ms)

    def present_teams(self, names: Iterable[str]) -> tuple[str, ...]:
        """Teams by their present names, each once."""
        return tuple(dict.fromkeys(self.tenancy.present(name) for name in names))

    def first_ms(self) -> int | None:
        """The instant of the first submission; None while there is none."""
        return team_rows.first_ms(self.store)

    def readiness(self) -> str:
        """Empty when the store answers and clusters are read, else why not."""
        try:
            self.store.rows("select 1 as one", {})
        except StoreError:
            return "the store does not answer; the operator finds the reason in the log"
        return self.alarms.why_not_ready()

    def _length(self, metric: Metric, question: Question) -> timedelta:
        return question.window or metric.window or self.policy.window

    def _samples(self, metric: Metric, rows: Rows, ask: Ask, question: Question) -> tuple[Sample, ...]:
        """As the viewer of the question may see them."""
        if question.view is None:
            return tuple(evaluate(metric, rows, ask))
        return tuple(evaluate_seen(metric, rows, ask, question.view))

    def _marks(self, as_of_ms: int, *, samples: bool, of_objects: Sequence[Mark] | None = None) -> list[Mark]:
        """Where every reading of objects stood; with samples, that of GPU metrics too."""
        of_samples = sources.sample_marks(self.store, as_of_ms, policy=self.policy) if samples else []
        return [*(sources.marks(self.store, as_of_ms) if of_objects is None else of_objects), *of_samples]

    def as_of_ms(self, given: int | None) -> int:
        """
        The instant that a question is about: "now" where it names none.

        Raises:
            UsageError: it lies after now, by more than clocks differ.
        """
        now_ms = self.clock.now_ms()
        if given is None:
            return now_ms
        if given > now_ms + self.policy.skew_tolerated.total_seconds() * MS_PER_SECOND:
            message = (
                f"as_of {format_instant(given)}: nothing is known of the time after"
                f" {format_instant(now_ms)}; ask for that instant or an earlier one, or leave as_of out"
            )
            raise UsageError(message)
        return given

    def coverage(
        self, question: Question, *, samples: bool, marks: Sequence[Mark] | None = None
    ) -> float | None:
        """
        The share of the window that was observed; without one, of the sources that are read in time.

        `marks` are those of objects at that instant, where the caller has read them.
        """
        as_of_ms = self.as_of_ms(question.as_of_ms)
        clusters = question.filters.get("cluster", ())
        if question.window is None:
            marks = self._marks(as_of_ms, samples=samples, of_objects=marks)
            return sources.coverage(marks, as_of_ms, policy=self.policy, clusters=clusters)
        window = Window.before(as_of_ms, question.window)
        share = observation.share_of_window(
            self.store, window, policy=self.policy, samples=samples, clusters=clusters
        )
        return None if share is None else float(share)

    def hints(self, filters: Filters, view: View | None = None) -> tuple[str, ...]:
        """What is odd about names in filters, a sentence each: see `service.unknown_names`."""
        also = {"team": {*self.tenancy.renamed, *self.tenancy.renamed.values(), UNASSIGNED}}
        return unknown_names.hints(self.store, self._present_names(filters), also=also, view=view)

    def refusals(self, question: Question, metrics: Collection[str]) -> tuple[str, ...]:
        """What these metrics lack because it may not be read, a sentence each: see `service.refusals`."""
        return refusals.hints(
            self.store,
            [REGISTRY[name].sql for name in metrics],
            self.as_of_ms(question.as_of_ms),
            policy=self.policy,
            clusters=question.filters.get("cluster", ()),
        )

    def _present_names(self, filters: Filters) -> Filters:
        """A team is found by its earlier names too."""
        if "team" not in filters:
            return filters
        return {**filters, "team": self.present_teams(filters["team"])}


def _known(name: str) -> Metric:
    if name not in REGISTRY:
        message = f"metric {name!r}: {nearest(name, list(REGISTRY))}"
        raise UsageError(message)
    return REGISTRY[name]
