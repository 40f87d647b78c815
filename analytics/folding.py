"""
Rows as a viewer may see them: foreign work loses the labels that tell whose it is.

Rows are folded before anything is computed, so that a percentile of others is theirs and not a mean
of percentiles. Filters see the folded labels: what is not told cannot be asked for. A row keeps its own
columns, on which a figure may rest, and is only shown under other labels.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from analytics.evaluate import SHOWN_AS, Rows, check, evaluate, listed
from domain.metric import LABELS, Ask, Metric, Row, Sample, Tells
from domain.view import View

OTHERS: Final = "others"


def evaluate_seen(metric: Metric, rows: Rows, ask: Ask, view: View) -> list[Sample]:
    """
    The metric's samples for a viewer, as `analytics.evaluate` gives them for everybody, without examples.

    Raises:
        UsageError: `by` or a filter names something that is not a dimension of the metric.
    """
    check(metric, ask)
    samples = evaluate(metric, seen(metric, rows, ask, view), ask)
    # The example of a figure of everybody may be anybody's.
    return [replace(sample, example="") if sample.example else sample for sample in samples]


def seen(metric: Metric, rows: Rows, ask: Ask, view: View) -> Rows:
    """
    The rows with `others` for what the viewer may not tell apart of the labels asked about.

    Labels by which the metric tells rows apart count as asked about, where they tell whose work it is.
    """
    names = [label for label in metric.apart if LABELS.get(label) is Tells.WHOSE]
    asked = dict.fromkeys((*ask.by, *ask.filters, *names))
    places = [label for label in asked if LABELS[label] is Tells.WHERE]
    # On a node there are few workloads: of which kind they are would tell one from the other.
    hidden = {Tells.WHOSE, Tells.WHERE} | ({Tells.WORK} if places else set())
    folded = [label for label in asked if LABELS[label] in hidden and label not in metric.open_labels]
    if not folded:
        return rows
    return [
        row if row.get("team") in view.teams else _folded(row, folded, metric, view) for row in listed(rows)
    ]


def _folded(row: Row, folded: Sequence[str], metric: Metric, view: View) -> Row:
    others = {
        label: OTHERS
        for label in folded
        # A row with null says nothing about a label, and folding must not make it say something.
        if row[label] is not None
        and not (label in metric.shared_labels and view.shares(label, row["cluster"], row[label]))
    }
    return {**row, SHOWN_AS: {**row, **others}} if others else row
