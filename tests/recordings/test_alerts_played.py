"""
What goes wrong in recordings, and in a sample, fires and resolves by Prometheus as it does without it.

`city` stands for two days in 44 minutes, the others for less: as little must be too long there, and lengths
of rules and windows are a part of what they are. Each alert about work is played here from objects of a
cluster until it has resolved: after a recording whoever is left goes home, and it stays quiet. From small
worlds, with all its moments, each is played in tests/alerts/test_worlds.py.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from alerts.evaluation import firing
from analytics.chargeback.agreement import Agreement
from collector.dcgm.parquet import read_parquet
from collector.intake import Intake
from collector.recording import deliver, import_recording
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
from tests.recordings.comparing import TENANCY, ground_truth
from tests.recordings.playing import OF_WORK, Course, Played
from tests.recordings.quiet import quiet
from tests.shared import shared

# City takes a minute of a core, most of it to be read in and measured 44 times.
pytestmark = [
    pytest.mark.recordings,
    pytest.mark.prometheus,
    pytest.mark.long,
    pytest.mark.timeout(900),
]

MIDNIGHT_MS = parse_instant("2026-11-29T17:00:00Z")
# Lengths as much shorter as its time is: a day is 22 minutes. Then it is midnight where the site stands.
CITY = Course(
    policy=Policy(
        window=timedelta(minutes=22),
        targets={
            name: replace(
                target,
                wait=timedelta(seconds=0.5 if name is ServiceClass.INTERACTIVE else 300),
                window=timedelta(minutes=6 if name is ServiceClass.INTERACTIVE else 22),
            )
            for name, target in Policy().targets.items()
        },
        protection_window=timedelta(minutes=4),
        queue_cap_workloads=150,
        phantom_reservation_after=timedelta(minutes=1),
        checkpoint_budgets={ServiceClass.BATCH.value: timedelta(seconds=20)},
        gpu_hour_budgets={
            team: {"day": 20.0} for team in ("vision", "nlp", "climate", "search", "ads", "robotics")
        },
        budget_zone=ZoneInfo("Asia/Bangkok"),
    ),
    step_ms=2 * 60_000,
    times=44,
    scale=1 / 10,
)
OF_CITY = {
    "GpuCheckpointOverdue",
    "GpuCumulativeWaitTooLong",
    "GpuHourBudgetBurned",
    "GpuHourBudgetNearlyBurned",
    "GpuInteractiveReserveShort",
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
# The site stands where it is midnight four minutes after the end of `native`.
SMALL = Policy(
    scheduler_stalled_after=timedelta(seconds=5),
    money_budgets={"team-nlp": {"day": 1.0}, "team-speech": {"day": 0.75}},
    budget_zone=ZoneInfo("Australia/Eucla"),
)
# What is played of each small recording, and for how many steps of ten seconds.
RECORDED = {
    "native": ({"GpuSchedulerStalled", "GpuMoneyBudgetBurned", "GpuMoneyBudgetNearlyBurned"}, 58),
    "kueue": ({"GpuFragmented"}, 31),
}
# What takes days, in three of them: a site that is nearly full, waits that grow and ease over a weekend, and
# sources that fall silent for hours.
DAYS = Course(
    policy=Policy(
        buy_days=1,
        buy_of_days=1,
        buy_held_ratio=0.6,
        buy_productive_ratio=0.3,
        buy_wait=timedelta(minutes=45),
        gpu_source_stale_after=timedelta(minutes=5),
        alert_limits={"GpuIdle": 5.0},
    ),
    step_ms=2 * 3_600_000,
    times=36,
    scale=1,
    names=("GpuBuyOrTune", "GpuFairnessDebt", "GpuIdle", "GpuMetricsLate", "GpuMetricsMissing"),
)


def send_home(store: Store, recording: str, *, minutes: int) -> None:
    """Go on with a recording that was imported: all that is left of the work goes, and it stays quiet."""
    intake = Intake(recording, store, store.known(recording))
    for reading in quiet(shared(f"data/recorded/{recording}"), minutes=minutes):
        deliver(intake, reading)
    intake.flush()


@contextmanager
def imported(recording: str) -> Iterator[Store]:
    """A small recording and quiet minutes after it, with all books kept; a GPU-hour costs 2.00 there."""
    store = Store.open(None)
    import_recording(shared(f"data/recorded/{recording}"), cluster=recording, sink=store)
    send_home(store, recording, minutes=6)
    prices = PriceBook((Price(listed=Decimal(2), valid_from_ms=0),))
    books_of(
        store, tenancy=TENANCY, policy=SMALL, clock=EndOfData(store), agreement=Agreement(book=prices)
    ).refresh()
    yield store
    store.close()


@pytest.fixture
def quiet_city(city_store: Store) -> Store:
    """`city` and 45 quiet minutes after it."""
    send_home(city_store, "city", minutes=45)
    books_of(city_store, tenancy=TENANCY, policy=Policy(), clock=EndOfData(city_store)).refresh()
    return city_store


def check_whole(played: Played, names: set[str], folder: Path) -> None:
    """Of each of these names, and of no other, an alert is silent twice, fires and resolves, both ways."""
    courses = {name: played.courses_of(name) for name in played.course.names}
    assert {name for name, found in courses.items() if found} == names
    assert not [*firing(played.stood[0]), *firing(played.stood[1])]
    for name in names:
        assert [one for one in courses[name] if re.fullmatch(r"\.{2,}!+\.[.!]*", one)], (name, courses[name])
    played.check(folder)


def test_city_fires_and_resolves_both_ways(quiet_city: Store, tmp_path: Path) -> None:
    played = Played.of(quiet_city, CITY)
    check_whole(played, OF_CITY, tmp_path)
    assert not firing(played.stood[-1])
    # A day's budget is burned until the day is over, and the alert stays for one evaluation more.
    first_ms = int(str(quiet_city.rows("select min(start_ms) as at_ms from span")[0]["at_ms"]))
    over = -(-(MIDNIGHT_MS - first_ms) // CITY.step_ms)
    for name in ("GpuHourBudgetBurned", "GpuHourBudgetNearlyBurned"):
        assert {course.rindex("!") for course in played.courses_of(name)} == {over}
    # What counts preemptions forgets them a day after the last one, of which Kueue's own log tells.
    workloads = ground_truth("city")["workloads"]
    last_ms = 1000 * max(one["t"] for each in workloads for one in each["preemptions"])
    forgotten = (last_ms - first_ms) // CITY.step_ms + 11
    for name in ("GpuPreemptionStorm", "GpuProtectionBroken", "GpuTierRuleBroken"):
        last = max(course.rindex("!") for course in played.courses_of(name))
        assert forgotten - 2 <= last <= forgotten + 1, name


@pytest.mark.parametrize("recording", sorted(RECORDED))
def test_small_recordings_fire_and_resolve_both_ways(recording: str, tmp_path: Path) -> None:
    names, times = RECORDED[recording]
    course = Course(policy=SMALL, step_ms=10_000, times=times, scale=1 / 60, names=sorted(names))
    with imported(recording) as store:
        played = Played.of(store, course)
    check_whole(played, names, tmp_path)
    assert not firing(played.stood[-1])


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
    check_whole(played, {*DAYS.names}, tmp_path)


def test_every_alert_about_work_is_played_somewhere() -> None:
    of_small = {name for names, _ in RECORDED.values() for name in names}
    assert OF_CITY | of_small | {*DAYS.names} == OF_WORK.keys()
