"""
What goes wrong in recordings, and in a sample, fires and resolves by Prometheus as it does without it.

`city` stands for two days in 44 minutes, the others for less: as little must be too long there, and lengths
of rules are a part of what they are. Each alert about work is played here from objects of a cluster; from
small worlds, with all its moments, in tests/alerts/test_worlds.py.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from alerts.evaluation import firing
from alerts.standing import State
from analytics.chargeback.agreement import Agreement
from collector.dcgm.parquet import read_parquet
from collector.recording import import_recording
from domain.money import Price, PriceBook
from domain.policy import Policy
from domain.window import FixedClock, parse_instant
from domain.workload import ServiceClass
from sample_data.fortnight import END, SAMPLES, SETTINGS
from sample_data.fortnight.generate import generate
from sample_data.fortnight.site import little_site
from service.books import books_of
from service.clocks import EndOfData
from service.gpu_metrics import keep_parts
from service.settings_file import load_settings
from store.embedded import Store
from tests.recordings.comparing import TENANCY
from tests.recordings.playing import OF_WORK, Course, Played
from tests.shared import shared

# City takes a minute and a half of a core, most of it to be read in and measured 24 times.
pytestmark = [
    pytest.mark.recordings,
    pytest.mark.prometheus,
    pytest.mark.long,
    pytest.mark.timeout(900),
]

CITY = Course(
    policy=Policy(
        targets={
            name: replace(target, wait=timedelta(seconds=0.5 if name is ServiceClass.INTERACTIVE else 300))
            for name, target in Policy().targets.items()
        },
        queue_cap_workloads=150,
        phantom_reservation_after=timedelta(minutes=1),
        checkpoint_budgets={ServiceClass.BATCH.value: timedelta(seconds=20)},
        gpu_hour_budgets={
            team: {"day": 20.0} for team in ("vision", "nlp", "climate", "search", "ads", "robotics")
        },
    ),
    step_ms=2 * 60_000,
    times=24,
    scale=1 / 10,
)
FIRE = {
    "GpuCheckpointOverdue",
    "GpuCumulativeWaitTooLong",
    "GpuHourBudgetBurned",
    "GpuHourBudgetNearlyBurned",
    "GpuInteractiveReserveShort",
    "GpuMetricsMissing",
    "GpuPhantomReservation",
    "GpuPreemptionStorm",
    "GpuProtectionBroken",
    "GpuQueueCapSoon",
    "GpuQueueExploding",
    "GpuQueueWaitBroken",
    "GpuQueueWaitP99TooLong",
    "GpuQueueWaitTooLong",
    "GpuRestartStorm",
    "GpuTierRuleBroken",
    "GpuWastageTooHigh",
}
RESOLVE = {
    "GpuCheckpointOverdue",
    "GpuCumulativeWaitTooLong",
    "GpuInteractiveReserveShort",
    "GpuPhantomReservation",
    "GpuQueueCapSoon",
    "GpuQueueWaitTooLong",
    "GpuWastageTooHigh",
}
SMALL = Policy(
    scheduler_stalled_after=timedelta(seconds=5),
    money_budgets={"team-nlp": {"day": 1.0}, "team-speech": {"day": 0.75}},
)
MONEY = {"GpuMoneyBudgetBurned", "GpuMoneyBudgetNearlyBurned"}
# What takes days, in three of them: a site that is nearly full, and sources that fall silent for hours.
DAYS = Course(
    policy=Policy(
        buy_days=1,
        buy_of_days=2,
        buy_held_ratio=0.6,
        buy_productive_ratio=0.3,
        buy_wait=timedelta(seconds=30),
        gpu_source_stale_after=timedelta(minutes=5),
        alert_limits={"GpuIdle": 5.0},
    ),
    step_ms=2 * 3_600_000,
    times=36,
    scale=1,
    names=("GpuBuyOrTune", "GpuFairnessDebt", "GpuIdle", "GpuMetricsLate"),
)
# Of each small recording what fires, and what resolves.
RECORDED = {
    "native": ({"GpuSchedulerStalled", *MONEY}, {"GpuSchedulerStalled"}),
    "kueue": ({"GpuFragmented"}, set[str]()),
}


@contextmanager
def imported(recording: str) -> Iterator[Store]:
    """A small recording with all books kept; a GPU-hour costs 2.00 there."""
    store = Store.open(None)
    import_recording(shared(f"data/recorded/{recording}"), cluster=recording, sink=store)
    prices = PriceBook((Price(listed=Decimal(2), valid_from_ms=0),))
    books_of(
        store, tenancy=TENANCY, policy=SMALL, clock=EndOfData(store), agreement=Agreement(book=prices)
    ).refresh()
    yield store
    store.close()


def test_city_fires_and_resolves_both_ways(city_store: Store, tmp_path: Path) -> None:
    played = Played.of(city_store, CITY)
    assert not [*firing(played.stood[0]), *firing(played.stood[1])]
    assert played.names(State.FIRING) == FIRE
    assert played.names(State.RESOLVED) == RESOLVE
    played.check(tmp_path)


@pytest.mark.parametrize("recording", sorted(RECORDED))
def test_small_recordings_fire_and_resolve_both_ways(recording: str, tmp_path: Path) -> None:
    fire, resolve = RECORDED[recording]
    course = Course(policy=SMALL, step_ms=10_000, times=31, scale=1 / 60, names=sorted(fire))
    with imported(recording) as store:
        played = Played.of(store, course)
    assert not [*firing(played.stood[0]), *firing(played.stood[1])]
    assert played.names(State.FIRING) == fire
    assert played.names(State.RESOLVED) == resolve
    played.check(tmp_path)


@contextmanager
def three_days(folder: Path) -> Iterator[Store]:
    """The little fortnight with its GPU metrics, all books kept."""
    end_ms, settings = parse_instant(END), load_settings(SETTINGS)
    generate(seed=7, end_ms=end_ms, site=little_site(), days=3).write(folder)
    store = Store.open(None)
    import_recording(folder, "sample", sink=store)
    keep_parts(store, "sample", read_parquet(folder / SAMPLES, source="dcgm"))
    books_of(
        store, tenancy=settings.tenancy_rules(), policy=settings.thresholds(), clock=FixedClock(end_ms)
    ).refresh()
    yield store
    store.close()


def test_three_days_of_a_sample_fire_and_resolve_both_ways(tmp_path: Path) -> None:
    with three_days(tmp_path) as store:
        played = Played.of(store, DAYS)
    assert not [*firing(played.stood[0]), *firing(played.stood[1])]
    assert played.names(State.FIRING) == {*DAYS.names}
    assert played.names(State.RESOLVED) == {*DAYS.names} - {"GpuBuyOrTune"}
    played.check(tmp_path)


def test_every_alert_about_work_is_played_somewhere() -> None:
    of_small = {name for fire, _ in RECORDED.values() for name in fire}
    assert FIRE | of_small | {*DAYS.names} == OF_WORK.keys()
