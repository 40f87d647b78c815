"""
The books of the product against what a simulator knows, for several seeds of a little fortnight.

Instants of objects are whole seconds, and GPU metrics come once a minute: that is how far the two may
lie apart. The truth is computed by the simulator's own code, from the definitions alone.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from analytics.fairness.debt import carry_debt
from collector.dcgm.parquet import read_parquet
from collector.recording import import_recording
from domain.quantity import MICRO_PER_GPU
from domain.window import FixedClock, parse_instant
from sample_data.fortnight import END, SAMPLES, SETTINGS
from sample_data.fortnight.generate import generate
from sample_data.fortnight.site import little_site
from service.books import books_of
from service.gpu_metrics import keep_parts
from service.settings_file import load_settings
from store.embedded import Store

# Three of ten each time; `make long` has the others.
SEEDS = [pytest.param(seed, marks=[] if seed <= 1 else pytest.mark.long) for seed in range(1, 11)]
CLUSTER = "little"
STAMP_SECONDS = 1.2
# A sample stands for a minute, from up to a minute after a load began.
SAMPLE_SECONDS = 65.0
# What is too short to be called idle may look just long enough beside minutes of which nothing is seen.
QUIET_SECONDS = 960.0
HALF_LIFE = timedelta(days=7)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


@dataclass(frozen=True, slots=True)
class Told:
    """A truth, and the store in which the product has kept its books."""

    truth: Mapping[str, Any]
    store: Store

    @property
    def workloads(self) -> dict[str, dict[str, Any]]:
        return {workload["uid"]: workload for workload in self.truth["workloads"]}

    @property
    def end_ms(self) -> int:
        return round(float(self.truth["end"]) * 1000)

    def by_workload(self, sql: str) -> dict[str, list[dict[str, Any]]]:
        found = defaultdict(list)
        for row in self.store.rows(sql, {"end_ms": self.end_ms}):
            found[str(row["workload_uid"])].append(row)
        return found


@pytest.fixture(scope="module", params=SEEDS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder: Path = tmp_path_factory.mktemp("little")
    end_ms = parse_instant(END)
    sample = generate(seed=request.param, end_ms=end_ms, site=little_site(), days=3)
    sample.write(folder)
    settings = load_settings(SETTINGS)
    store = Store.open(None)
    assert import_recording(folder, CLUSTER, store).set_aside == {}
    assert keep_parts(store, CLUSTER, read_parquet(folder / SAMPLES, source="dcgm")).set_aside == Counter()
    tenancy, policy = settings.tenancy_rules(), settings.thresholds()
    books_of(store, tenancy=tenancy, policy=policy, clock=FixedClock(end_ms)).refresh()
    told = Told(sample.truth, store)
    # What follows compares one by one: nothing to compare must not look like agreement.
    assert told.truth["balances"]
    assert {len(truth["attempts"]) > 1 for truth in told.workloads.values()} == {False, True}
    assert {bool(truth["waits"]) for truth in told.workloads.values()} >= {True}
    yield told
    store.close()


def test_who_it_was_and_how_it_ended_agree(told: Told) -> None:
    found = {str(row["workload_uid"]): row for row in told.store.rows("select * from workload", {})}
    names = ("namespace", "name", "team", "user", "priority_class", "service_class", "outcome")
    assert {
        uid: tuple(row["user_name" if name == "user" else name] for name in names)
        for uid, row in found.items()
    } == {uid: tuple(truth[name] for name in names) for uid, truth in told.workloads.items()}


def test_waits_agree(told: Told) -> None:
    spans = told.by_workload(
        "select workload_uid, coalesce(end_ms, $end_ms) - start_ms as length_ms from span"
        " where state in ('queued', 'checking', 'placing')"
    )
    for uid, truth in told.workloads.items():
        waits = [(told.truth["end"] if end is None else end) - start for start, end in truth["waits"]]
        waited = sum(span["length_ms"] for span in spans[uid]) / 1000
        assert waited == pytest.approx(sum(waits), abs=STAMP_SECONDS * max(len(waits), 1)), truth["name"]


def test_attempts_and_their_outcomes_agree(told: Told) -> None:
    attempts = told.by_workload(
        "select workload_uid, outcome, $end_ms as end_ms from attempt order by number"
    )
    assert {uid: [row["outcome"] for row in rows] for uid, rows in attempts.items()} == {
        uid: [attempt["outcome"] for attempt in truth["attempts"]]
        for uid, truth in told.workloads.items()
        if truth["attempts"]
    }


def test_gpu_seconds_by_cause_agree_for_each_workload_and_in_all(told: Told) -> None:
    rows = told.by_workload(
        "select workload_uid, cause, sum(micro_gpus * (least(coalesce(end_ms, $end_ms), $end_ms) - start_ms))"
        " / 1e9 as seconds from gpu_time group by workload_uid, cause"
    )
    ours: dict[str, float] = defaultdict(float)
    theirs: dict[str, float] = defaultdict(float)
    for uid, truth in told.workloads.items():
        booked = {row["cause"]: float(row["seconds"]) for row in rows[uid]}
        slack = _slack(truth)
        for cause in booked.keys() | truth["gpu_seconds"].keys():
            product, simulator = booked.get(cause, 0.0), truth["gpu_seconds"].get(cause, 0.0)
            assert product == pytest.approx(simulator, abs=slack), (truth["name"], cause)
            ours[cause] += product
            theirs[cause] += simulator
    held = sum(theirs.values())
    assert sum(ours.values()) == pytest.approx(held, rel=1e-4)
    assert {cause: ours[cause] for cause in theirs} == pytest.approx(dict(theirs), abs=held * 0.001)


def test_quota_demand_entitlement_and_lending_agree(told: Told) -> None:
    for row, share in _shares(told):
        for name in ("quota", "demand", "held", "entitled", "lent", "borrowed"):
            assert share[name] / MICRO_PER_GPU == pytest.approx(row[name], abs=1e-4), (name, row)


def test_capacity_of_every_pool_agrees(told: Told) -> None:
    spans: dict[Any, list[Any]] = defaultdict(list)
    for span in told.store.rows("select * from pool_span order by start_ms", {}):
        spans[span["pool"]].append(span)
    theirs = {(row["at"], row["pool"]): row["capacity"] for row in told.truth["balances"]}
    ours = {
        (at, pool): [span for span in spans[pool] if span["start_ms"] < round(at * 1000)][-1]["capacity"]
        for at, pool in theirs
    }
    assert {pool for _, pool in theirs} == {"company/a100", "company/h100", "company/l40s", "company/mig"}
    assert {key: micro / MICRO_PER_GPU for key, micro in ours.items()} == pytest.approx(theirs, abs=1e-4)


def test_debts_agree(told: Told) -> None:
    for row, share in _shares(told):
        debt = carry_debt(
            share["opening_debt"],
            gap_gpus=(share["entitled"] - share["held"]) / MICRO_PER_GPU,
            elapsed_ms=round(row["at"] * 1000) - share["start_ms"],
            half_life=HALF_LIFE,
        )
        assert debt == pytest.approx(row["debt"], abs=0.05, rel=0.002), row


def _shares(told: Told) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Each balance of the truth with the span in which it lies."""
    spans = defaultdict(list)
    for span in told.store.rows("select * from share_span order by start_ms", {}):
        spans[span["pool"], span["entity"]].append(span)
    for row in told.truth["balances"]:
        at_ms = round(row["at"] * 1000)
        before = [span for span in spans[row["pool"], row["queue"]] if span["start_ms"] < at_ms]
        assert before, row
        yield row, before[-1]


def _slack(truth: Mapping[str, Any]) -> float:
    """GPU-seconds by which a cause may differ: a minute at each change of load, for all its GPUs."""
    pods = truth["pods"]
    changes = sum(
        2 + 2 * len(pod["runs"]) + sum(len(text.split()) for run in pod["runs"] for text in run[3])
        for pod in pods
    )
    # At the end nobody knows yet what a short quiet stretch becomes.
    unsure = truth["gpu_seconds"].get("unknown") or any(pod["released"] is None for pod in pods)
    seconds = SAMPLE_SECONDS * max(changes, 1) + (QUIET_SECONDS if unsure else 0.0)
    return float(truth["gpus"] * seconds)
