"""The product's answers, as a client of its API is given them."""

from collections.abc import Callable
from datetime import UTC, timedelta
from time import process_time
from typing import Any, Final

from analytics.chargeback.agreement import Agreement
from analytics.over_time import Instants
from api.answers import Question
from benchmarks.questions import PRICES, Answer, Data
from benchmarks.seeded_jobs import DAY_MS, START_MS
from domain.calendar import Unit, cut
from domain.money import Currency, Price, PriceBook
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock, Window
from service.answers import Answers
from store.embedded import Store


def answer(asked: dict[str, Any]) -> Answer:
    """The answer to `question` from the store of these data."""
    data = Data.read(asked)
    store = Store.open(data.store)
    try:
        clock = FixedClock(data.cluster.end_ms)
        answers = Answers(store, Tenancy(), Policy(), clock, agreement=agreed())
        return _QUESTIONS[asked["question"]](answers, data)
    finally:
        store.close()


def agreed() -> Agreement:
    """The prices that peers look up too."""
    prices = [
        Price(gpu_model=model, valid_from_ms=START_MS + day * DAY_MS, listed=price)
        for model, day, price in PRICES
    ]
    return Agreement(currency=Currency.of("EUR"), book=PriceBook(prices))


def by_class(asked: dict[str, Any]) -> dict[str, Any]:
    """
    The p99 of waits that ended, and depth at these instants, by class: as a Prometheus is asked.

    Returns:
        Seconds by class; workloads by instant and class; and milliseconds of CPU that a question took.
    """
    data = Data.read(asked)
    store = Store.open(data.store)
    try:
        answers = Answers(store, Tenancy(), Policy(), FixedClock(data.cluster.end_ms))
        window = timedelta(milliseconds=data.cluster.end_ms - data.window_start_ms)
        by, began = ("service_class",), process_time()
        waits = answers.metric(
            "queue_wait_seconds", Question(as_of_ms=data.cluster.end_ms, window=window, by=by)
        )
        waited, began = process_time() - began, process_time()
        depth = {
            f"{at_ms}|{row.labels['service_class']}": row.value
            for at_ms in asked["instants_ms"]
            for row in answers.metric("queue_depth_workloads", Question(as_of_ms=at_ms, by=by)).rows
        }
        counted = process_time() - began
    finally:
        store.close()
    return {
        "waits": {
            row.labels["service_class"]: row.value
            for row in waits.rows
            if row.labels["quantile"] == "0.99" and row.labels["estimator"] == "started"
        },
        "depth": depth,
        "waits_cpu_ms": 1000 * waited,
        "depth_cpu_ms": 1000 * counted / len(asked["instants_ms"]),
    }


def _waits(answers: Answers, data: Data) -> Answer:
    window = timedelta(milliseconds=data.cluster.end_ms - data.window_start_ms)
    asked = Question(as_of_ms=data.cluster.end_ms, window=window, by=("service_class", "team"))
    labels = ("service_class", "team", "quantile", "estimator")
    return {
        "|".join(row.labels[name] for name in labels): (round(row.value * 1000, 3), row.lower_bound)
        for row in answers.metric("queue_wait_seconds", asked).rows
        if row.value is not None
    }


def _depth(answers: Answers, data: Data) -> Answer:
    first_ms, second_ms, *_, last_ms = data.instants_ms
    instants = Instants.between(first_ms, last_ms, second_ms - first_ms)
    return {
        f"{answer.as_of_ms}|{row.labels['queue']}": row.value
        for answer in answers.metric_at("queue_depth_workloads", Question(by=("queue",)), instants)
        for row in answer.rows
        if row.value
    }


def _money(answers: Answers, data: Data) -> Answer:
    whole = Window(start_ms=START_MS, end_ms=data.cluster.end_ms)
    found: Answer = {}
    for month in cut(whole, UTC, Unit.MONTH):
        told = answers.chargeback(month.label, Question(as_of_ms=data.cluster.end_ms, by=("day", "team")))
        assert told["books"]["difference_gpu_hours"] == 0
        found |= {
            f"{row['day']}|{row['team']}": (row["held_gpu_hours"], str(row["effective_cost"]))
            for row in told["rows"]
            if not row["team"].startswith("__")
        }
    return found


_QUESTIONS: Final[dict[str, Callable[[Answers, Data], Answer]]] = {
    "waits": _waits,
    "depth": _depth,
    "money": _money,
}
