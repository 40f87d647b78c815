"""What is free, and of what use that is to those who wait."""

from api.answers import Answers, ReportQuestion
from api.reports.report import Builder
from api.reports.sections import Shown, ask, side_by_side, told
from domain.metric import Page
from domain.report import Report

POOL = ("cluster", "gpu_model")
_POOLS = tuple(
    Shown(metric=name)
    for name in (
        "capacity_gpus",
        "held_gpus",
        "free_gpus",
        "fragmented_gpus",
        "reclaimable_gpus",
        "cordoned_gpus",
        "unhealthy_gpus",
        "unpartitioned_gpus",
        "overcommitted_gpus",
        "fragment_waste_ratio",
        "fgd_paper_ratio",
    )
)
_NODES = tuple(
    Shown(metric=name)
    for name in (
        "capacity_gpus",
        "held_gpus",
        "free_gpus",
        "fragmented_gpus",
        "cordoned_gpus",
        "unhealthy_gpus",
        "unpartitioned_gpus",
    )
)


def _build(answers: Answers, question: ReportQuestion) -> Report:
    free, stuck, back = (
        ask(answers, question, name, by=()) for name in ("free_gpus", "fragmented_gpus", "reclaimable_gpus")
    )
    ladder = ask(answers, question, "fragmentation_ratio", by=POOL)
    sizes = {sample.labels["size"] for sample in ladder.rows if "size" in sample.labels}
    sections = (
        side_by_side(
            answers, question, key="pools", title="By GPU model", by=POOL, metrics=_POOLS, page=Page.CLUSTER
        ),
        side_by_side(
            answers,
            question,
            key="ladder",
            title="What pods of each size would leave over of what is free",
            by=POOL,
            metrics=[
                Shown(metric="fragmentation_ratio", title=f"Size {size}", where={"size": size})
                for size in sorted(sizes, key=_in_order)
            ],
            note="Sizes that pods asked in the last 7 days, in GPUs unless a kind of device is named.",
            page=Page.CLUSTER,
        ),
        side_by_side(
            answers,
            question,
            key="nodes",
            title="By node",
            by=("cluster", "gpu_model", "node"),
            metrics=_NODES,
            sort_by="fragmented_gpus",
            page=Page.CLUSTER,
        ),
    )
    return Report(
        name=REPORT.name,
        title=REPORT.title,
        as_of_ms=free.as_of_ms,
        window=None,
        lead=_lead(told(free), told(stuck), told(back))
        if stuck.rows[0].value is not None
        else ("No node with GPUs is known.",),
        sections=sections,
    )


def _lead(free: str, stuck: str, back: str) -> tuple[str, ...]:
    return (
        f"{free} GPUs are free, {stuck} of them of no use to anybody who waits.",
        f"A repack of work that may be moved would give back {back} GPUs.",
    )


def _in_order(size: str) -> tuple[str, int]:
    """Whole GPUs first, then by kind of device; small before large."""
    count, _, kind = size.partition(" ")
    return kind, int(count)


REPORT = Builder(
    name="fragmentation",
    title="Fragmentation",
    question="Which free GPUs can nobody who waits use, and what would a repack give back?",
    window=None,
    build=_build,
)
