"""What the API needs somebody to answer: the questions and the shapes of their answers."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from analytics.chargeback.month_statement import MonthStatement
from analytics.describe import looks_back
from analytics.over_time import Instants
from domain.checkpoint import CheckpointReport
from domain.metric import Metric, Sample
from domain.view import View
from domain.window import MS_PER_SECOND, format_instant

Record: TypeAlias = dict[str, Any]
Filters: TypeAlias = Mapping[str, tuple[str, ...]]

# What a viewer shares with others at an instant; None is everything.
Views: TypeAlias = Callable[[int], View | None]

_UNIT_SECONDS = (("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1))


class SourceState(StrEnum):
    """
    Where a source stands.

    NEVER_READ: the cluster has the kind and it was not read yet.
    NOT_PERMITTED: the account may not read it, or not any more.
    SET_ASIDE_ONLY: no kind of object, for example a file of a recording that is broken.
    """

    READ = "read"
    STALE = "stale"
    NEVER_READ = "never_read"
    NOT_PERMITTED = "not_permitted"
    NOT_INSTALLED = "not_installed"
    SET_ASIDE_ONLY = "set_aside_only"


def whole_view(_at_ms: int) -> None:
    """Of whoever sees all teams."""


def format_length(length: timedelta) -> str:
    """
    A duration as `domain.window.parse_duration` reads it, in one unit.

    >>> format_length(timedelta(hours=24)), format_length(timedelta(minutes=90))
    ('1d', '90m')
    """
    seconds = length.total_seconds()
    for unit, size in _UNIT_SECONDS:
        if seconds >= size and seconds % size == 0:
            return f"{int(seconds // size)}{unit}"
    return f"{length // timedelta(milliseconds=1)}ms"


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """
    What is asked of a metric; None leaves it to the metric and the policy.

    `by` = () asks for one total. `as_of_ms` None is "now", whatever the answerer's clock says. With a
    `view`, labels of foreign work are folded into `others` before anything is computed.
    """

    as_of_ms: int | None = None
    window: timedelta | None = None
    by: tuple[str, ...] | None = None
    filters: Filters = field(default_factory=dict)
    view: View | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportQuestion:
    """What is asked of a report; None leaves it to the clock and to the report."""

    as_of_ms: int | None = None
    window: timedelta | None = None
    filters: Filters = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListQuestion:
    """Which workloads, in which order, which page. `sort` is a column, with `-` for downwards."""

    as_of_ms: int | None = None
    states: tuple[str, ...] = ()
    filters: Filters = field(default_factory=dict)
    sort: str = "-submitted_at"
    page: int = 1
    page_size: int = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricAnswer:
    """
    The values of a metric.

    `coverage` is the share of the window that was observed, without a window that of the sources that
    were read in time; None if unknown. `hints` are sentences on names in the filters that nobody bears, and
    on what the metric lacks because it may not be read.
    """

    metric: str
    unit: str
    as_of_ms: int
    window: timedelta | None
    coverage: float | None
    rows: tuple[Sample, ...]
    hints: tuple[str, ...] = ()

    def document(self) -> Record:
        """As the API gives it in JSON."""
        return self._head() | {
            "rows": [sample_record(row) for row in self.rows],
        }

    def _head(self) -> Record:
        return {
            "metric": self.metric,
            "unit": self.unit,
            "as_of": format_instant(self.as_of_ms),
            "window": format_length(self.window) if self.window else None,
            "coverage": self.coverage,
            "hints": list(self.hints),
        }


def sample_record(sample: Sample) -> Record:
    """A value with its labels, as the API gives it in JSON."""
    return {
        "labels": dict(sample.labels),
        "value": sample.value,
        "lower_bound": sample.lower_bound,
        "few": sample.few,
        "undefined_because": sample.undefined_because or None,
    }


def range_record(answers: Sequence[MetricAnswer], step: timedelta) -> Record:
    """A metric at many instants: each row says of which instant it is, and how much was observed."""
    first, last = answers[0], answers[-1]
    return {
        "metric": last.metric,
        "unit": last.unit,
        "start": format_instant(first.as_of_ms),
        "end": format_instant(last.as_of_ms),
        "step": format_length(step),
        "window": format_length(last.window) if last.window else None,
        "hints": list(last.hints),
        "rows": [
            {"as_of": format_instant(answer.as_of_ms), "coverage": answer.coverage, **sample_record(row)}
            for answer in answers
            for row in answer.rows
        ],
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """A page of a list: `total` counts the rows of all pages; `hints` as in `MetricAnswer`."""

    as_of_ms: int | None
    rows: Sequence[Record]
    total: int
    page: int = 1
    page_size: int = 100
    hints: tuple[str, ...] = ()

    def document(self) -> Record:
        """As the API gives it in JSON."""
        return {
            "as_of": None if self.as_of_ms is None else format_instant(self.as_of_ms),
            "total": self.total,
            "page": self.page,
            "page_size": self.page_size,
            "hints": list(self.hints),
            "rows": list(self.rows),
        }


def metric_record(metric: Metric) -> Record:
    """A metric's declaration, for people and for programs."""
    return {
        "name": metric.name,
        "unit": str(metric.unit),
        "kind": str(metric.kind),
        "title": metric.title,
        "definition": metric.definition,
        "source": metric.source,
        "labels": list(metric.labels),
        "dimensions": list(metric.dimensions),
        "extra_labels": list(metric.extra_labels),
        "windowed": metric.windowed,
        "looks_back": looks_back(metric),
        "window_seconds": None if metric.window is None else metric.window / timedelta(seconds=1),
        "pages": [str(page) for page in metric.pages],
    }


def flat_rows(document: Record) -> list[Record]:
    """
    The rows of a document as a table: labels become columns, and the head stands in each row.

    Values that are lists become texts, so that a table never holds a table.

    >>> flat_rows({"rows": [{"kind": "Pod", "causes": [{"because": "cut off", "count": 2}]}]})
    [{'kind': 'Pod', 'causes': 'cut off: 2'}]
    """
    heads = {
        "metric": ("metric", "unit", "as_of", "window", "coverage"),
        "billing": ("month", "currency", "coverage"),
    }
    # A range of instants has what differs between them in its rows.
    given = {key for kind, keys in heads.items() if kind in document for key in keys} & document.keys()
    head = {key: document[key] for keys in heads.values() for key in keys if key in given}
    flat = []
    for row in document["rows"]:
        # Of a value they say whose it is; of a metric's declaration they are a list of names.
        labels = row["labels"] if isinstance(row.get("labels"), dict) else None
        plain = {key: _flat(value) for key, value in row.items() if key != "labels" or labels is None}
        flat.append(head | (labels or {}) | plain)
    return flat


def _flat(value: Any) -> Any:
    if not isinstance(value, list):
        return value
    if any(isinstance(item, dict) for item in value):
        return "; ".join(": ".join(map(str, item.values())) for item in value)
    return ", ".join(map(str, value))


def seconds(length_ms: float) -> float:
    """Seconds of a length in milliseconds."""
    return length_ms / MS_PER_SECOND


class Answers(Protocol):
    """
    Everything that can be asked. Instants in records are RFC 3339 texts.

    Raises:
        UsageError: a name, label, state or column that does not exist.
    """

    def registry(self) -> Mapping[str, Metric]:
        """Every metric by name."""

    def metric(self, name: str, question: Question) -> MetricAnswer:
        """The values of one metric."""

    def metric_at(
        self, name: str, question: Question, instants: Instants, views: Views = whole_view
    ) -> Sequence[MetricAnswer]:
        """The same at each of many instants, oldest first, by what is seen then; the last has the hints."""

    def workloads(self, question: ListQuestion) -> Listing:
        """A page of workloads."""

    def workload(self, uid: str, as_of_ms: int | None = None) -> Record | None:
        """One workload with its spans and attempts; None where there is none."""

    def why(self, uid: str, as_of_ms: int | None = None) -> Record | None:
        """Why one workload waits, with who holds what it needs; None where there is none."""

    def pending_workloads(self, question: ListQuestion) -> Listing:
        """A page of the workloads that wait for quota, in Kueue's order; `states` and `sort` do not count."""

    def chargeback(self, month: str, question: Question) -> Record:
        """The statement of a month, or of its days until now; `by` None asks for every line."""

    def month_statement(self, month: str, question: Question) -> MonthStatement:
        """The same with its exact lines, for files; `by` does not count."""

    def close_month(self, month: str, *, who: str, reason: str = "") -> Record:
        """Close a month for good; gives its fingerprint. RefusedError where it may not be closed."""

    def quota_proposals(self, as_of_ms: int | None = None) -> Listing:
        """Every quota proposal that was made by then, newest first."""

    def quota_proposal(self, proposal_id: str, as_of_ms: int | None = None) -> Record | None:
        """One quota proposal with its patch; None where there is none."""

    def teams(self, as_of_ms: int | None = None) -> Listing:
        """Every team that had submitted work by then."""

    def sources(self, as_of_ms: int | None = None) -> Listing:
        """One row per cluster and kind that is read, with its lag."""

    def kueue_checks_of(self) -> Listing:
        """Kueue's own figures beside ours, as they were compared last."""

    def gpu_faults(self, as_of_ms: int | None = None) -> Listing:
        """What happened to GPUs, the newest first: XIDs, remap failures, other drivers."""

    def alerts(self, question: ReportQuestion) -> Listing:
        """What fires, what is pending, and what fired in the window, with what that rests on."""

    def checkpoint(self, report: CheckpointReport, teams: Collection[str] | None = None) -> Record | None:
        """Keep a checkpoint that a job tells of, of these teams' work or of any; None where there is none."""

    def as_of_ms(self, given: int | None) -> int:
        """The instant that a question is about: "now" where it names none; UsageError for the future."""

    def coverage(self, question: Question, *, samples: bool) -> float | None:
        """
        The share of the question's window that was observed; without one, of the sources read in time.

        `samples`: whether the figures rest on samples of GPUs.
        """

    def hints(self, filters: Filters, view: View | None = None) -> tuple[str, ...]:
        """A sentence for each name in the filters that nobody bears whom the viewer may see."""

    def refusals(self, question: Question, metrics: Collection[str]) -> tuple[str, ...]:
        """A sentence for each kind that these metrics are made of and that may not be read."""

    def view(self, teams: AbstractSet[str], as_of_ms: int) -> View:
        """What these teams share with others by then."""

    def present_teams(self, names: Iterable[str]) -> tuple[str, ...]:
        """Teams by their present names; an earlier name stands for the team that bears another now."""

    def readiness(self) -> str:
        """Empty when questions can be answered, else why not."""
