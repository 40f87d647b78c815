"""
What a metric is: one declaration.

The API, the exporter, the alert rules, the pages and the documentation are made from it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import TypeAlias

import polars as pl

from domain.alert import AlertRule, Comparison
from domain.errors import PolicyError
from domain.policy import Policy
from domain.window import Window


class Unit(StrEnum):
    """Base units; a metric's name ends in its unit, or says what it counts."""

    SECONDS = "seconds"
    GPUS = "gpus"
    WORKLOADS = "workloads"
    TOTAL = "total"
    RATIO = "ratio"
    GPU_HOURS = "gpu_hours"
    NODES = "nodes"
    USERS = "users"
    DAYS = "days"
    HOURS = "hours"
    JOBS = "jobs"
    CPUS = "cpus"
    PER_SECOND = "per_second"
    PER_1000_GPU_HOURS = "per_1000_gpu_hours"
    PREEMPTIONS = "preemptions"
    PERMILLE = "permille"
    READINGS = "readings"
    MONEY = "money"


# Prometheus wants base units: what people read in hours or days is exported in seconds.
_EXPORTED_UNITS = {
    Unit.GPU_HOURS: ("gpu_seconds", 3600.0),
    Unit.HOURS: ("seconds", 3600.0),
    Unit.DAYS: ("seconds", 86_400.0),
    Unit.PER_1000_GPU_HOURS: ("per_gpu_second", 1 / 3_600_000),
}


class MetricKind(StrEnum):
    """
    As Prometheus means it.

    The samples of a histogram carry the label `le`: the count up to each edge, of all at `+Inf`,
    and the sum of what was observed at `sum`.
    """

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


class Page(StrEnum):
    """Where people see it; the value is the page's address without the slash."""

    HOME = "home"
    QUEUES = "queues"
    JOBS = "jobs"
    JOB = "job"
    SOURCES = "sources"
    CLUSTER = "cluster"
    FAIRNESS = "fairness"
    WASTE = "waste"
    POLICY = "policy"
    QUOTA = "quota"
    CHARGEBACK = "chargeback"
    CAPACITY = "capacity"


DIMENSIONS = ("cluster", "queue", "service_class", "priority_class", "team", "gpu_model", "gang_size")
FILTERS = ("cluster", "queue", "service_class", "priority_class", "team", "gpu_model")


class Tells(StrEnum):
    """
    What a label tells of the work behind a figure; api/scope.py hides foreign work by it.

    WHOSE is it, or nearly; WHERE does it run, which few share; of which kind is the WORK; NOTHING.
    """

    WHOSE = "whose"
    WHERE = "where"
    WORK = "work"
    NOTHING = "nothing"


# Every label that a metric has stands here: a metric with another one does not load.
LABELS: Mapping[str, Tells] = {
    "team": Tells.WHOSE,
    "user_name": Tells.WHOSE,
    "queue": Tells.WHOSE,
    # A queue without a cohort is a pool by itself.
    "pool": Tells.WHOSE,
    # Sites make classes for teams; and a size of gang may be that of one team only.
    "priority_class": Tells.WHOSE,
    "gang_size": Tells.WHOSE,
    "gpu_count": Tells.WHOSE,
    "node": Tells.WHERE,
    "device": Tells.WHERE,
    "service_class": Tells.WORK,
    "cause": Tells.WORK,
    # Which part of the way through the queue: quota, checks or placing.
    "component": Tells.WORK,
    "flow": Tells.WORK,
    # Whether it asks GPUs (gpu), or none (cpu).
    "population": Tells.WORK,
    "reason": Tells.WORK,
    # What stands in the way of waiting work: a queue, a taint, a check.
    "blocker": Tells.WHOSE,
    "mechanism": Tells.WORK,
    "victim_class": Tells.WORK,
    "preemptor_class": Tells.WORK,
    "cluster": Tells.NOTHING,
    "gpu_model": Tells.NOTHING,
    "le": Tells.NOTHING,
    "size": Tells.NOTHING,
    "rule": Tells.NOTHING,
    # Which error a GPU had, whoever was on it.
    "xid": Tells.NOTHING,
    # Of a queue, which the label `queue` tells.
    "condition": Tells.NOTHING,
    "quantile": Tells.NOTHING,
    "estimator": Tells.NOTHING,
    "bound": Tells.NOTHING,
    # What a node did, and of which kind it is.
    "change": Tells.NOTHING,
    "capacity_type": Tells.NOTHING,
    # Which device would do, whoever holds the larger one.
    "fits": Tells.WORK,
    # Of what hours are: gpu, cpu, node, or wall, the clock's.
    "resource": Tells.NOTHING,
    "statistic": Tells.NOTHING,
    # Of alerts about the ledger itself: its name.
    "ledger": Tells.NOTHING,
    "period": Tells.NOTHING,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """A question: which labels to keep apart, over which window, for whom, under which policy."""

    window: Window
    by: tuple[str, ...]
    filters: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    policy: Policy = field(default_factory=Policy)

    @property
    def as_of_ms(self) -> int:
        """The instant that the answer is about: the window's end."""
        return self.window.end_ms


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """
    One value of a metric, or the reason why there is none. Zero never stands for unknown.

    `lower_bound`: the true value is at least this. `few`: it rests on fewer than five. `example` names the
    workload that the value is of, where it is of one: for whoever is paged, and no part of the figure.
    """

    labels: Mapping[str, str]
    value: float | None
    lower_bound: bool = False
    few: bool = False
    undefined_because: str = ""
    example: str = ""

    @classmethod
    def undefined(cls, labels: Mapping[str, str], because: str) -> "Sample":
        """No value, with the reason."""
        return cls(labels=labels, value=None, undefined_because=because)


Row: TypeAlias = Mapping[str, object]
Compute: TypeAlias = Callable[[Sequence[Row], Ask], list[Sample]]
FrameCompute: TypeAlias = Callable[[pl.DataFrame, Ask], list[Sample]]


@dataclass(frozen=True, slots=True)
class Takes:
    """
    Which columns a metric takes of rows that may come by the million.

    `usual`: values that nearly all rows have in all but one of them. Such rows come as that one column alone.
    """

    columns: tuple[str, ...] = ()
    usual: Mapping[str, int] = field(default_factory=dict)

    @property
    def varies(self) -> tuple[str, ...]:
        """The columns that have no usual value."""
        return tuple(name for name in self.columns if name not in self.usual)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metric:
    """
    A metric's declaration.

    `sql` gives rows at the grain that its first line says, with a column for each dimension in
    `dimensions`; it reads views and takes `$as_of_ms` and `$window_start_ms`. `compute` turns the
    rows into samples for any subset of the dimensions; without one, column `value` is summed.
    `labels` are the dimensions of the exported series, `extra_labels` those that compute adds;
    one that is not `exported` has no series. To keep their number small Prometheus is shown those that are
    `scraped`, and of them where labels have the values in `scraped_where`; the API tells the rest. One that
    `rests_on_samples` of GPUs is only covered where their sources are read too.

    Of most metrics the highest values are what somebody should look at; where `low_is_bad` it is the lowest.
    An alert on what lies below its limit says so too.

    One is `acted_on` where something else acts on its series, as an autoscaler: where a scrape has no room
    for all it goes before others, as what alerts read.

    What is dear and changes slowly is measured anew only `every` so often, and shown again in between.

    Rows of a fine grain may be read summed by the labels of the question: `adds` names the columns that
    add up, `apart` those beside the dimensions by which compute still tells rows apart. `unless_asked` are
    values to which a dimension is kept where a question names it neither in `by` nor in a filter.
    Rows that may come by the million come as a frame, of which `compute_frame`, in the place of compute,
    takes the labels of the question and the columns that `takes` names, in lists (docs/adr/0059).
    Where the figure of one row rests on others, compute `filters_itself`: it is given all rows.
    A state that is a sum over whatever counts at an instant may have `stretches` beside its sql: in the place
    of an instant a row has `after_ms` and `until_ms`, and counts at instants after the one, up to the other.
    Of them `stretch_sums` are summed, and compute is given the sums of an instant (docs/adr/0065).

    Of foreign work a viewer sees sums; a label that tells whose or where it is stays apart only if it
    is among the `open_labels`, for everybody, or the `shared_labels`, for those who share its value.
    A node is open where the figure is of the node itself, or follows from such figures; docs/adr/0017.

    Raises:
        PolicyError: the name does not end in the unit, a label is not a dimension or not in `LABELS`, or an
            alert is told by a label, or a value of one, that Prometheus does not see.
    """

    name: str
    unit: Unit
    title: str
    definition: str
    source: str
    sql: str
    labels: tuple[str, ...]
    dimensions: tuple[str, ...] = DIMENSIONS
    extra_labels: tuple[str, ...] = ()
    kind: MetricKind = MetricKind.GAUGE
    compute: Compute | None = None
    compute_frame: FrameCompute | None = None
    takes: Takes = Takes()
    windowed: bool = False
    window: timedelta | None = None
    every: timedelta | None = None
    pages: tuple[Page, ...] = ()
    alerts: tuple[AlertRule, ...] = ()
    exported: bool = True
    scraped: bool = True
    scraped_where: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    rests_on_samples: bool = False
    open_labels: tuple[str, ...] = ()
    shared_labels: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()
    apart: tuple[str, ...] = ()
    unless_asked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    filters_itself: bool = False
    low_is_bad: bool = False
    acted_on: bool = False
    stretches: str = ""
    stretch_sums: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self._check_names()
        if len({alert.fine_if_undefined for alert in self.alerts}) > 1:
            # One mark tells Prometheus that the metric's value is unknown, and all its alerts read it.
            message = (
                f"metric {self.name}: its alerts differ in fine_if_undefined; expected them to agree on what"
                " an undefined value means"
            )
            raise PolicyError(message)
        for alert in self.alerts:
            shown = {*self.labels, *self.extra_labels} if self.exported and self.scraped else set()
            unseen = {*alert.identity, *alert.match} - shown
            unseen |= {
                name
                for name, value in alert.match.items()
                if value not in self.scraped_where.get(name, (value,))
            }
            if unseen:
                message = (
                    f"metric {self.name}, alert {alert.name}: Prometheus sees no such label {sorted(unseen)}"
                )
                raise PolicyError(message)

    def _check_names(self) -> None:
        if not self.name.endswith(self.unit):
            message = f"metric {self.name}: expected a name that ends in its unit, {self.unit}"
            raise PolicyError(message)
        strangers = {*self.labels, *self.unless_asked} - set(self.dimensions)
        if strangers:
            message = f"metric {self.name}: labels {sorted(strangers)} are not among its dimensions"
            raise PolicyError(message)
        unclassified = {*self.dimensions, *self.extra_labels} - LABELS.keys()
        if unclassified:
            message = (
                f"metric {self.name}: labels {sorted(unclassified)} are not in LABELS of domain/metric.py:"
                " say there what each tells of whose work it is, so that foreign work stays hidden"
            )
            raise PolicyError(message)

    @property
    def worst(self) -> Comparison:
        """On which side its bad values lie."""
        below = self.low_is_bad or any(alert.comparison is Comparison.BELOW for alert in self.alerts)
        return Comparison.BELOW if below else Comparison.ABOVE

    @property
    def series(self) -> str:
        """Its name among Prometheus' series, without the product's prefix; it ends in a base unit."""
        unit, _ = _EXPORTED_UNITS.get(self.unit, (self.unit, 1.0))
        return self.name.removesuffix(self.unit) + unit

    def is_scraped(self, labels: Mapping[str, str]) -> bool:
        """Whether Prometheus is shown the series with these labels."""
        return (
            self.exported
            and self.scraped
            and all(labels.get(name) in values for name, values in self.scraped_where.items())
        )

    @property
    def series_scale(self) -> float:
        """What a value is multiplied by when it is exported."""
        return _EXPORTED_UNITS.get(self.unit, ("", 1.0))[1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """A sample as it was found at an instant: what the product said at the time."""

    metric: str
    as_of_ms: int
    sample: Sample
