"""A metric at many instants: of one sweep where it has stretches, else asked anew for each."""

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from analytics.evaluate import check
from analytics.over_time import MOST_ONE_BY_ONE, MOST_SWEPT, Instants, sweep
from api.answers import MetricAnswer, Question, Views
from domain.metric import Ask, Metric, Row
from service import sources

if TYPE_CHECKING:
    from service.answers import Answers


def answers_at(
    answers: "Answers", metric: Metric, question: Question, instants: Instants, views: Views
) -> list[MetricAnswer]:
    """
    What `answers.metric` tells at each of the instants, oldest first.

    Raises:
        UsageError: too many instants, one of them lies in the future, or a label does not exist.
    """
    instants.check(MOST_SWEPT if metric.stretches else MOST_ONE_BY_ONE)
    answers.as_of_ms(instants.last_ms)
    asked = [replace(question, as_of_ms=at_ms, view=views(at_ms)) for at_ms in instants]
    if not metric.stretches:
        return [answers.metric(metric.name, one) for one in asked]
    ask = answers.ask(metric, asked[-1])
    check(metric, ask)
    rows = _swept(answers, metric, ask, instants)
    marks = sources.marks_at(answers.store, list(instants))
    found = [
        answers.told(metric, rows[at_ms], answers.ask(metric, one), one, stood)
        for at_ms, one, stood in zip(instants, asked, marks, strict=True)
    ]
    hints = answers.hints(question.filters, asked[-1].view)
    hints += answers.refusals(asked[-1], (metric.name,))
    return [*found[:-1], replace(found[-1], hints=hints)]


def _swept(answers: "Answers", metric: Metric, ask: Ask, instants: Instants) -> dict[int, list[Row]]:
    found: defaultdict[int, list[Row]] = defaultdict(list)
    for row in answers.store.kept_rows(sweep(metric, ask), instants.parameters()):
        at_ms = row["at_ms"]
        assert isinstance(at_ms, int)
        found[at_ms].append(row)
    return found
