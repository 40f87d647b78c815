"""Dominant shares of Kueue's queues, from rows as the store gives them."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.dominant import CARDS, dominant_shares
from analytics.folding import OTHERS, evaluate_seen
from analytics.metrics import REGISTRY
from domain.metric import Ask
from domain.quantity import MICRO_PER_GPU
from domain.view import View
from domain.window import Window

ASK = Ask(window=Window(start_ms=0, end_ms=1), by=("queue",))
PER_CARD = 12
CARD_COUNTS = st.integers(0, 8)
QUEUES = st.dictionaries(
    st.sampled_from("abcd"),
    st.tuples(CARD_COUNTS, CARD_COUNTS, CARD_COUNTS, st.none() | CARD_COUNTS, st.none() | CARD_COUNTS,
              st.integers(0, 3)),
    min_size=1,
)  # fmt: skip


def rows(queues: dict[str, tuple[Any, ...]], own: int, cpus_per_card: int) -> list[dict[str, object]]:
    """Queues of one cohort: quota, reserved and asked cards, limits of lending and borrowing, and weight."""

    def quotas(nominal: int, lending: int | None, borrowing: int | None) -> str:
        resources = {CARDS: 1, **({"cpu": cpus_per_card} if cpus_per_card else {})}
        return json.dumps([
            ["a100", name, 1000 * each * nominal, *(None if most is None else 1000 * each * most
                                                   for most in (lending, borrowing))]
            for name, each in resources.items()
        ])  # fmt: skip

    def amounts(cards: int) -> str:
        cpus = {"cpu": 1000 * cpus_per_card * cards} if cpus_per_card else {}
        return json.dumps({CARDS: 1000 * cards, **cpus})

    blank = {"cluster": "c", "parent": "", "weight_milli": 0, "quotas": "", "flavor": "", "resources": ""}
    found: list[dict[str, object]] = [
        {**blank, "what": "Cohort", "queue": "all", "weight_milli": 1000, "quotas": quotas(own, None, None),
         "number": 0},
    ]  # fmt: skip
    for name, (nominal, used, asked, lending, borrowing, weight) in queues.items():
        terms = {
            "parent": "all",
            "weight_milli": 1000 * weight,
            "quotas": quotas(nominal, lending, borrowing),
        }
        found.append({**blank, **terms, "what": "ClusterQueue", "queue": name, "number": 0})
        use = {"flavor": "a100", "resources": amounts(1), "number": used}
        found.append({**blank, **use, "what": "use", "queue": name})
        found.append({**blank, "what": "ask", "queue": name, "resources": amounts(1), "number": asked})
    return found


def shares(told: list[dict[str, object]]) -> dict[str, float | None]:
    return {sample.labels["queue"]: sample.value for sample in dominant_shares(told, ASK)}


@given(QUEUES, CARD_COUNTS)
def test_cpus_in_proportion_to_gpus_change_nothing(queues: dict[str, tuple[Any, ...]], own: int) -> None:
    alone, together = (shares(rows(queues, own, each)) for each in (0, PER_CARD))
    # A thousandth of a card is the last unit, and each of the queues may round.
    assert together == pytest.approx(alone, abs=0.005)


@given(QUEUES, CARD_COUNTS)
def test_no_queue_should_have_more_than_it_asks_and_all_not_more_than_quotas(
    queues: dict[str, tuple[Any, ...]], own: int
) -> None:
    told = shares(rows(queues, own, PER_CARD))
    total = own + sum(nominal for nominal, *_ in queues.values())
    for name, (_, used, asked, *_) in queues.items():
        assert (told[name] or 0) <= used + asked
    # In the unit in which they are kept: a sum of binary fractions is none of them.
    micro_gpus = [round((value or 0) * MICRO_PER_GPU) for value in told.values()]
    assert sum(micro_gpus) <= total * MICRO_PER_GPU


@pytest.mark.parametrize("name", ["dominant_entitled_gpus", "kueue_weighted_share_permille"])
def test_of_queues_that_a_viewer_does_not_share_no_name_is_told(name: str) -> None:
    told = rows({"a": (4, 6, 2, None, None, 1), "b": (4, 0, 8, None, None, 1)}, 0, PER_CARD)
    metric, ask = REGISTRY[name], Ask(window=ASK.window, by=("cluster", "queue"))
    everybody = {sample.labels["queue"]: sample.value for sample in dominant_shares(told, ask)}
    if name == "kueue_weighted_share_permille":
        told = [row for row in told if row["what"] != "ask"]
    seen = evaluate_seen(metric, told, ask, View(teams=frozenset(), queues=frozenset({("c", "a")})))
    assert {sample.labels["queue"] for sample in seen} == {"a", OTHERS}
    if name == "dominant_entitled_gpus":
        assert {sample.labels["queue"]: sample.value for sample in seen} == {
            "a": everybody["a"],
            OTHERS: everybody["b"],
        }


@pytest.mark.parametrize(("lending", "entitled"), [(None, 3), (2, 3), (1, 0), (0, 0)])
def test_work_that_needs_more_than_is_ever_lent_is_no_demand(lending: int | None, entitled: int) -> None:
    told = rows({"a": (1, 0, 1, None, None, 1), "b": (4, 0, 0, lending, None, 1)}, 0, 0)
    asked = json.dumps({CARDS: 3000})
    told = [
        {**row, "resources": asked} if (row["what"], row["queue"]) == ("ask", "a") else row for row in told
    ]
    assert shares(told)["a"] == entitled
