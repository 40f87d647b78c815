"""Rows that are summed, or listed, in the query give the figures that the rows themselves give."""

from collections.abc import Iterator
from datetime import timedelta
from itertools import product
from typing import Any

import pytest

from analytics.evaluate import evaluate, listed, parameters, query
from analytics.metrics import REGISTRY
from domain.metric import Ask
from domain.window import Window, parse_instant
from store.embedded import Store
from tests.golden.cases import store_of

SUMMED = [name for name, metric in REGISTRY.items() if metric.adds]
LISTED = [name for name, metric in REGISTRY.items() if metric.takes.columns]
WINDOW = Window.before(parse_instant("2026-01-02T00:00:00Z"), timedelta(hours=24))
CAUSES = ("useful", "idle", "resident_idle", "crash_lost", "startup", "unknown", "preempted_lost")


@pytest.fixture(scope="module")
def store() -> Iterator[Store]:
    """Two teams, three users, two models, three nodes, and pieces of every kind, each of its own length."""
    works: list[dict[str, Any]] = []
    pieces: list[dict[str, Any]] = []
    attempts: list[dict[str, Any]] = []
    holdings: list[dict[str, Any]] = []
    for number, (team, user) in enumerate((("nlp", "ada"), ("nlp", "bob"), ("cv", "eve"))):
        uid, model = f"w{number}", ("A100", "H100")[number % 2]
        who = {"team": team, "user_name": user, "priority_class": f"p{number}"}
        who["first_placed_at"] = "2026-01-01T00:00:00Z"
        works.append({"workload_uid": uid, "gpu_model": model, **who})
        for place, cause in enumerate(CAUSES * 2):
            piece: dict[str, Any] = {
                "workload_uid": uid,
                "pod_uid": "p",
                "node": f"n{place % 3}",
                "gpu_model": model,
            }
            minute = place * 10
            pieces.append(
                piece
                | {
                    "cause": cause,
                    "start_at": f"2026-01-01T0{number}:{minute % 60:02}:00Z",
                    "end_at": f"2026-01-01T0{number + 2}:{minute % 60:02}:{place:02}Z",
                    "may_be": "crash_lost" if cause == "useful" else "",
                    "charged": number == 0,
                    "restart": number == 1,
                    "micro_gpus": None if (number, place) == (2, 1) else (place + 1) * 250_000,
                    "known_at": "2026-01-03T00:00:00Z" if cause == "crash_lost" and number else None,
                }
            )
        # Each workload came twice, with other GPUs.
        for place in (1, 2):
            stay = {"workload_uid": uid}
            start, end = f"2026-01-01T0{2 * place}:0{number}:00Z", f"2026-01-01T0{2 * place + 1}:00:00Z"
            attempts.append({**stay, "number": place, "start_at": start, "end_at": end})
            pod = {"pod_uid": f"{uid}/{place}", "attempt": place, "gpus": place, "milli_cpus": 500 * place}
            holdings.append({**stay, **pod, "gpu_model": model, "bound_at": start, "released_at": end})
    # One like the last.
    works.append({**works[-1], "workload_uid": "w3"})
    waits = [
        {"workload_uid": "w1", "start_at": "2026-01-01T09:00:00Z", "end_at": "2026-01-01T09:10:00Z"}
    ]  # fmt: skip
    queued: list[dict[str, Any]] = []
    reasons: list[dict[str, Any]] = []
    for number in range(3):
        mine = {"workload_uid": f"q{number}"}
        works.append({**mine, "team": ("nlp", "nlp", "cv")[number], "user_name": "ada"})
        queued.append({**mine, "state": "queued", "start_at": f"2026-01-01T0{number}:00:00Z"})
        for hour, reason in ((2, "GPU_SHORTAGE"), (5, "FRAGMENTATION"), (7, "GPU_SHORTAGE")):
            start, end = f"2026-01-01T0{hour}:00:00Z", f"2026-01-01T0{hour + 1}:0{number}:00Z"
            reasons.append({**mine, "reason": reason, "start_at": start, "end_at": end})
    given: dict[str, list[dict[str, Any]]] = {
        "workload": works,
        "span": queued,
        "wait_reason": reasons,
        "waste_piece": pieces,
        "own_failure_wait": waits,
        "attempt": attempts,
        "holding": holdings,
        "gpu_sample": [
            {"device": f"GPU-{place % 3}", "node": f"n{place % 2}", "gpu_model": ("A100", "H100")[place % 2],
             "at_at": f"2026-01-01T0{place}:00:00Z", "activity": (0.0, 0.5)[place % 2]}
            for place in range(9)
        ],
    }  # fmt: skip
    with store_of(given) as made:
        yield made


@pytest.mark.parametrize("name", SUMMED)
def test_rows_summed_in_the_query_give_the_same_figures(name: str, store: Store) -> None:
    metric = REGISTRY[name]
    every = ((), ("team",), ("node", "user_name"), ("user_name",), metric.labels, metric.dimensions)
    groups = [by for by in every if {*by} <= {*metric.dimensions}]
    asked: tuple[dict[str, tuple[str, ...]], ...] = (
        {},
        {"gpu_model": ("H100",)},
        {"user_name": ("ada", "eve")},
        {"user_name": ("ada", "eve"), "node": ("n1",)},
    )
    filters = [only for only in asked if only.keys() <= {*metric.dimensions}]
    for by, only in product(groups, filters):
        ask = Ask(window=WINDOW, by=by, filters=only)
        fine = store.rows(metric.sql, parameters(metric, ask))
        summed = store.rows(query(metric, ask), parameters(metric, ask))
        assert evaluate(metric, summed, ask) == evaluate(metric, fine, ask), (by, only)
        assert by or only or len(summed) < len(fine)


@pytest.mark.parametrize("name", LISTED)
def test_rows_listed_in_the_query_give_the_same_figures(name: str, store: Store) -> None:
    metric = REGISTRY[name]
    for by in ((), ("team",), ("service_class", "gpu_model")):
        ask = Ask(window=WINDOW, by=by, filters={"priority_class": ("p0", "p2", "normal")} if by else {})
        fine = store.frame(metric.sql, parameters(metric, ask))
        lists = store.frame(query(metric, ask), parameters(metric, ask))
        told = evaluate(metric, lists, ask)
        assert told == evaluate(metric, fine, ask) == evaluate(metric, listed(lists), ask), by
        assert lists.height <= fine.height
