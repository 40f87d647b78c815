"""Which nodes came, went and failed, what that cost, and how busy GPUs were."""

from datetime import timedelta
from functools import partial

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, only, side_by_side, telling
from domain.metric import Page
from domain.report import Report

WINDOW, HOUR = timedelta(days=7), timedelta(hours=1)
POOL = ("cluster", "gpu_model")
_CHANGES = (
    *(
        Shown(metric="node_changes_nodes", title=f"{change.capitalize()} a day", where={"change": change})
        for change in ("joined", "left", "lost")
    ),
    Shown(metric="node_loss_gpu_hours"),
)
_ACTIVITY = (
    Shown(metric="gpu_activity_ratio", title="Mean activity"),
    Shown(metric="goodput_ratio"),
)
# Many: a site of 8,000 GPUs has a million of them in an hour.
_READINGS = (
    *(
        Shown(metric="gpu_readings_quantile_ratio", title=title, where={"quantile": quantile})
        for quantile, title in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"))
    ),
    Shown(metric="gpu_readings_inactive_ratio"),
    Shown(metric="gpu_readings"),
)
_COVERAGE = (Shown(metric="gpu_sample_coverage_ratio"),)
_SOURCES = (
    Shown(metric="gpu_node_lag_seconds", title="Lag of the latest node"),
    Shown(metric="late_gpu_nodes"),
)


def _build(answers: Answers, question: ReportQuestion) -> Report:
    lost = ask(answers, question, "node_loss_gpu_hours", by=(), window=WINDOW)
    table = partial(side_by_side, answers, question, window=WINDOW, page=Page.CLUSTER)
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=lost.as_of_ms,
        window=question.window or WINDOW,
        lead=(_lead(lost.rows[0].value),),
        sections=(
            table(
                key="changes", title="Nodes that came and went", by=(*POOL, "capacity_type"),
                metrics=_CHANGES,
            ),
            *telling(
                table(
                    key="xids", title="XID errors, ever", by=("cluster", "node", "xid"),
                    metrics=(Shown(metric="gpu_xid_errors_total", title="Errors"),),
                    sort_by="gpu_xid_errors_total",
                )
            ),
            *telling(
                table(
                    key="remaps", title="Rows that could not be remapped, ever", by=("cluster", "node"),
                    metrics=(Shown(metric="gpu_row_remap_failures_total", title="Failures"),),
                    sort_by="gpu_row_remap_failures_total",
                )
            ),
            *telling(table(key="activity", title="How busy GPUs were", by=POOL, metrics=_ACTIVITY)),
            *telling(
                side_by_side(
                    answers, question, key="readings", title="Single readings of GPUs", by=POOL,
                    metrics=_READINGS, window=HOUR, page=Page.CLUSTER,
                )
            ),
            *telling(
                table(key="covered", title="How much of what was held was seen", by=POOL, metrics=_COVERAGE)
            ),
            *telling(
                side_by_side(
                    answers, only(question, *POOL), key="late", title="Nodes whose GPU metrics are late, now",
                    by=POOL, metrics=_SOURCES, page=Page.CLUSTER,
                )
            ),
        ),
    )  # fmt: skip


def _lead(hours: float | None) -> str:
    if hours is None:
        return "No node with GPUs is known."
    return f"{hours:,.1f} GPU-hours of work were lost to nodes."


REPORT = Builder(
    name="nodes",
    title="Nodes and GPUs",
    question="Which nodes came, went or failed, and how busy were their GPUs?",
    window=WINDOW,
    build=_build,
    rests_on_samples=True,
)
