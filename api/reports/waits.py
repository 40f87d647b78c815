"""Who waits, how long, against what was promised, and where the time goes."""

from collections.abc import Iterator
from datetime import timedelta
from functools import partial

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, only, side_by_side, telling, told
from domain.metric import Page
from domain.report import Report, Section

WINDOW = timedelta(days=7)
POOL = ("cluster", "gpu_model")
_P50, _P99 = ({"quantile": quantile, "estimator": "censored"} for quantile in ("0.5", "0.99"))
_WAITS = (
    Shown(metric="queue_depth_workloads"),
    Shown(metric="queue_depth_gpus"),
    Shown(metric="queue_wait_seconds", title="p50 wait", where=_P50),
    Shown(metric="queue_wait_seconds", title="p99 wait", where=_P99),
    Shown(metric="starvation_index_seconds"),
    Shown(metric="past_target_workloads"),
)
# From the submission until it runs, and what of it is whose.
_PARTS = (
    Shown(metric="first_placed_workloads"),
    *(
        Shown(metric="queue_wait_component_seconds", title=title, where={"component": component})
        for component, title in (("quota", "For quota"), ("checks", "In checks"), ("placing", "For a place"))
    ),
    Shown(metric="admission_check_seconds", title="p99 in checks", where=_P99),
    Shown(metric="time_to_placement_seconds", title="p99 to placement", where=_P99),
    Shown(metric="time_to_running_seconds", title="p99 to running", where=_P99),
    Shown(metric="requeue_wait_seconds", title="p99 after an eviction", where=_P99),
)
_SPREAD = (
    *(
        shown
        for name, at in (("p50", _P50), ("p99", _P99))
        for shown in (
            Shown(
                metric="queue_wait_interval_seconds",
                title=f"{name} from",
                where={"quantile": at["quantile"], "bound": "lower"},
            ),
            Shown(metric="queue_wait_seconds", title=f"{name} wait", where=at),
            Shown(
                metric="queue_wait_interval_seconds",
                title=f"{name} to",
                where={"quantile": at["quantile"], "bound": "upper"},
            ),
        )
    ),
    Shown(metric="longest_queue_wait_seconds", title="Longest"),
    Shown(metric="typical_wait_seconds", title="Typical"),
    Shown(metric="bounded_slowdown_ratio", title="p50 slowdown", where={"quantile": "0.5"}, unit="times"),
    Shown(metric="bounded_slowdown_ratio", title="p99 slowdown", where={"quantile": "0.99"}, unit="times"),
    Shown(metric="cancelled_while_waiting_workloads"),
    Shown(metric="cancelled_while_waiting_ratio"),
)
_STARVING = (
    Shown(metric="starvation_index_seconds"),
    Shown(metric="starvation_index_ratio", title="Of the target", unit="times"),
    Shown(metric="starvation_cumulative_seconds"),
    Shown(metric="past_target_workloads"),
)
_FLOWS = tuple(
    Shown(metric="queue_flow_per_second", title=flow.capitalize(), where={"flow": flow})
    for flow in ("arrivals", "departures", "admissions")
)
_MEMBERS = (
    Shown(metric="member_wait_seconds", title="p50 wait of a member", where=_P50),
    Shown(metric="member_wait_seconds", title="p99 wait of a member", where=_P99),
    Shown(metric="member_wait_gpu_hours"),
)
_RESERVED = (
    Shown(metric="reserved_gpus"),
    Shown(metric="phantom_reservation_gpus"),
    Shown(metric="phantom_reservation_gpu_seconds"),
)


def _build(answers: Answers, question: ReportQuestion) -> Report:
    past = ask(answers, question, "past_target_workloads", by=(), window=WINDOW)
    depth = ask(answers, question, "queue_depth_workloads", by=(), window=WINDOW)
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=depth.as_of_ms,
        window=question.window or WINDOW,
        lead=(
            f"Workloads that wait now: {told(depth)}; longer than their class was promised: {told(past)}.",
        ),
        sections=tuple(_sections(answers, question)),
    )


def _sections(answers: Answers, question: ReportQuestion) -> Iterator[Section]:
    table = partial(side_by_side, answers, question, window=WINDOW, page=Page.QUEUES)
    yield table(key="classes", title="By service class", by=("service_class",), metrics=_WAITS)
    yield table(key="queues", title="By queue and class", by=("queue", "service_class"), metrics=_WAITS)
    yield table(key="teams", title="By team", by=("team",), metrics=_WAITS)
    yield table(
        key="parts",
        title="Where the time goes, by queue and class",
        by=("queue", "service_class"),
        metrics=_PARTS,
        note="Time for quota, in checks and for a place is that of all workloads together.",
    )
    yield table(
        key="spread",
        title="How sure the percentiles are, and what waiting cost, by service class",
        by=("service_class",),
        metrics=_SPREAD,
        note="From and to are limits of 95 % confidence.",
    )
    yield table(key="starving", title="Longest waits now", by=("queue", "service_class"), metrics=_STARVING)
    yield table(key="flow", title="Flow through the queues", by=("cluster", "queue"), metrics=_FLOWS)
    yield from telling(
        side_by_side(
            answers,
            only(question, *POOL),
            key="stalled",
            title="Whether schedulers stand still, now",
            by=POOL,
            metrics=(Shown(metric="scheduler_stalled_workloads"),),
            page=Page.QUEUES,
        )
    )
    yield from telling(table(key="members", title="Single members, by team", by=("team",), metrics=_MEMBERS))
    yield from telling(
        table(key="reserved", title="Quota reserved, by team", by=("team",), metrics=_RESERVED)
    )
    yield side_by_side(
        answers,
        only(question, "service_class"),
        key="targets",
        title="What was promised",
        by=("service_class",),
        metrics=(Shown(metric="wait_target_seconds"),),
        page=Page.QUEUES,
    )
    yield from telling(_counted_by_others(answers, question))


def _counted_by_others(answers: Answers, question: ReportQuestion) -> Section:
    """Of queues that others counted, whose workloads we never saw."""
    quantiles = (("0.5", "p50"), ("0.99", "p99"), ("1", "Most"))
    conditions = (
        ("told", "Told"), ("waiting", "Waiting"), ("idle_while_waiting", "Idle while waiting"),
        ("full_while_waiting", "Full while waiting"), ("longest_waiting", "Longest waiting"),
    )  # fmt: skip
    hours = (("held", "Held"), ("total", "There"), ("idle_while_waiting", "Idle while waiting"))
    return side_by_side(
        answers,
        only(question, "cluster", "queue"),
        key="counted",
        title="Queues that others counted",
        by=("cluster", "queue"),
        metrics=(
            Shown(metric="queue_state_mean_depth_workloads", title="Mean depth"),
            *(
                Shown(
                    metric="queue_state_depth_workloads", title=f"{title} depth", where={"quantile": quantile}
                )
                for quantile, title in quantiles
            ),
            Shown(metric="queue_state_depth_gpus", title="Most GPUs asked", where={"quantile": "1"}),
            *(
                Shown(metric="queue_state_seconds", title=title, where={"condition": condition})
                for condition, title in conditions
            ),
            *(
                Shown(metric="queue_state_gpu_hours", title=f"{title}, GPU-h", where={"condition": condition})
                for condition, title in hours
            ),
            Shown(metric="queue_state_held_ratio"),
        ),
        window=WINDOW,
        note="Taken in by `gpuledger import states`.",
        page=Page.QUEUES,
    )


REPORT = Builder(
    name="waits",
    title="Waiting",
    question="Who waits, how long, against which target, and for what?",
    window=WINDOW,
    build=_build,
)
