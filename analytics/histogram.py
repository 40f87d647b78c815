"""A classic histogram from counts by bucket."""

from collections import Counter
from collections.abc import Sequence
from itertools import accumulate

from analytics.evaluate import NOTHING_OBSERVED, grouped, whole
from domain.metric import Ask, Compute, Row, Sample
from domain.window import MS_PER_SECOND

TOTAL_EDGE = "+Inf"
SUM = "sum"


def histogram(edges_seconds: Sequence[int]) -> Compute:
    """
    The `compute` of a histogram.

    Its rows: `edge_ms`, the upper edge of a bucket or null beyond the last; `waits`, the count in
    it; `sum_ms`, the sum of what is counted.
    """

    def compute(rows: Sequence[Row], ask: Ask) -> list[Sample]:
        samples = [
            sample for labels, members in grouped(rows, ask.by) for sample in of_group(labels, members)
        ]
        return samples or [Sample.undefined({}, NOTHING_OBSERVED)]

    def of_group(labels: dict[str, str], members: Sequence[Row]) -> list[Sample]:
        counts: Counter[object] = Counter()
        for row in members:
            counts[row["edge_ms"]] += whole(row, "waits")
        sum_ms = sum(whole(row, "sum_ms") for row in members)
        up_to = accumulate(counts[edge * MS_PER_SECOND] for edge in edges_seconds)
        values: list[tuple[str, float]] = [
            *zip((f"{edge}.0" for edge in edges_seconds), up_to, strict=True),
            (TOTAL_EDGE, counts.total()),
            (SUM, sum_ms / MS_PER_SECOND),
        ]
        return [Sample(labels={**labels, "le": name}, value=value) for name, value in values]

    return compute
