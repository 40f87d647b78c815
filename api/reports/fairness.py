"""Whom the cluster owes, and who has what of the quotas."""

from dataclasses import replace
from datetime import timedelta

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, largest, only, side_by_side, telling
from domain.metric import Page
from domain.report import Column, Report, Section

WINDOW = timedelta(days=7)
_DEBT = "fairness_debt_gpu_hours"
_HOLDERS = (
    Shown(metric="quota_gpus"),
    Shown(metric="demanded_gpus"),
    Shown(metric="entitled_gpus"),
    Shown(metric="received_gpus"),
    Shown(metric="lent_gpus"),
    Shown(metric="borrowed_gpus"),
    Shown(metric="over_quota_gpus"),
    Shown(metric=_DEBT),
)
_LEDGER = (
    Shown(metric="entitled_gpu_hours"),
    Shown(metric="received_gpu_hours"),
    Shown(metric="forgiven_gpu_hours"),
    Shown(metric=_DEBT, title="Debt at the end"),
)
_POOLS = (
    Shown(metric="pool_capacity_gpus"),
    Shown(metric="fairness_error_ratio"),
    Shown(metric="jains_index_ratio"),
    Shown(metric="capacity_without_quota_gpus"),
    Shown(metric="lent_gpus"),
    Shown(metric="borrowed_gpus"),
    Shown(metric="from_unassigned_gpus"),
)
NOBODY_YET = "(no team yet)"


def _build(answers: Answers, question: ReportQuestion) -> Report:
    debts = ask(answers, question, _DEBT, by=("cluster", "pool", "queue"), window=WINDOW)
    most = largest(debts.rows)
    by_queue = ("cluster", "pool", "queue")
    # A pool has no team: what its figures are is the same for everybody in it.
    by_pool = {name: only for name, only in question.filters.items() if name in {"cluster", "gpu_model"}}
    of_pools = ReportQuestion(as_of_ms=question.as_of_ms, window=question.window, filters=by_pool)
    sections = (
        side_by_side(
            answers, of_pools, key="pools", title="Pools", by=("cluster", "pool"), metrics=_POOLS,
            window=WINDOW, page=Page.FAIRNESS, note="Lent = borrowed - what is borrowed of nobody's quota.",
        ),
        _with_teams(
            answers,
            question,
            side_by_side(
                answers, question, key="holders", title="Holders of quota, now", by=by_queue,
                metrics=_HOLDERS, window=WINDOW, sort_by=_DEBT, page=Page.FAIRNESS,
            ),
        ),
        side_by_side(
            answers, question, key="ledger", title="The ledger of the window", by=by_queue, metrics=_LEDGER,
            window=WINDOW, sort_by=_DEBT, page=Page.FAIRNESS,
            note="Debt at the end = debt at the start + entitled - received - forgiven.",
        ),
        side_by_side(
            answers, question, key="teams", title="Teams", by=("gpu_model", "team"), metrics=_LEDGER,
            window=WINDOW, sort_by=_DEBT, page=Page.FAIRNESS,
            note="Debts of different GPU models are not added.",
        ),
        *telling(
            side_by_side(
                answers, only(question, "cluster", "queue"), key="kueue", title="By Kueue's own measure, now",
                by=("cluster", "queue"), metrics=(Shown(metric="kueue_weighted_share_permille"),),
                page=Page.FAIRNESS, note="It measures what is borrowed; Kueue writes it rounded up.",
            )
        ),
        *telling(
            side_by_side(
                answers, only(question, "cluster", "queue"), key="dominant",
                title="Entitled with CPUs and memory, now", by=("cluster", "pool", "queue"),
                metrics=(Shown(metric="dominant_entitled_gpus"),), page=Page.FAIRNESS,
                note="By dominant resource fairness over the quotas of all resources of a flavor.",
            )
        ),
    )  # fmt: skip
    if most is None or (most.value or 0.0) <= 0:
        lead = "The cluster owes nobody GPU-hours."
    else:
        labels = most.labels
        lead = (
            f"The cluster owes {labels['queue']} most, in pool {labels['pool']} of cluster"
            f" {labels['cluster']}: {most.value:,.1f} GPU-hours."
        )
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=debts.as_of_ms,
        window=question.window or WINDOW,
        lead=(lead,),
        sections=sections,
    )


def _with_teams(answers: Answers, question: ReportQuestion, holders: Section) -> Section:
    """The holders with their teams: all of them where several share a quota."""
    by = ("cluster", "pool", "queue")
    quotas = ask(answers, question, "quota_gpus", by=(*by, "team"), window=WINDOW)
    teams = {tuple(row.labels[name] for name in by): row.labels["team"] for row in quotas.rows if row.labels}
    rows = [
        {**row, "team": teams.get(tuple(str(row[name]) for name in by)) or NOBODY_YET} for row in holders.rows
    ]
    columns = (*holders.columns[:3], Column(key="team", title="Team"), *holders.columns[3:])
    return replace(holders, columns=columns, rows=tuple(rows))


REPORT = Builder(
    name="fairness",
    title="Fairness",
    question="Whom does the cluster owe, and who has what of the quotas?",
    window=WINDOW,
    build=_build,
)
