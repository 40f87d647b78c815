"""Several ledgers below one Prometheus, and one with too many series: each alert rests on its own ledger."""

import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from alerts.budget import Budget
from alerts.exporter import Exporter
from alerts.rules import rules_file
from analytics.metrics import REGISTRY
from domain.metric import Measurement, Sample
from domain.policy import Policy
from tests.alerts.scraped import input_series

pytestmark = pytest.mark.prometheus

WAITS, TARGET, BUDGET = "starvation_index_seconds", "wait_target_seconds", "budget_burned_ratio"
READ: Final = {name: REGISTRY[name] for name in (WAITS, TARGET, "past_target_workloads", BUDGET)}
RULES: Final = rules_file(READ, Policy(), dashboard_url="https://gpu.example")
ABSENT, TOO_LONG, BURNED = "GpuledgerMeasurementsAbsent", "GpuQueueWaitTooLong", "GpuHourBudgetBurned"
MINUTE_MS: Final = 60_000
Told = Mapping[str, Sequence[Sample]]


@dataclass(slots=True)
class Ledger:
    """A ledger that is scraped once a minute by a clock that begins at 0, as promtool's does."""

    name: str
    room: int | None = None
    at_ms: int = 0
    scrapes: list[str | None] = field(default_factory=list)
    _exporter: Exporter = field(init=False)

    def __post_init__(self) -> None:
        self._exporter = Exporter(READ, self, ledger=self.name)
        if self.room is not None:
            of: Budget = self._exporter._budget
            self._exporter._budget = replace(of, room=self.room)

    def now_ms(self) -> int:
        return self.at_ms

    def tells(self, minutes: int, told: Told, clusters: Iterable[str] = ()) -> "Ledger":
        for _ in range(minutes):
            measured = [
                Measurement(metric=name, as_of_ms=self.at_ms, sample=each)
                for name, samples in told.items()
                for each in samples
            ]
            self._exporter.publish(measured, self.at_ms, dict.fromkeys(clusters, self.at_ms))
            self.scrapes.append(self._exporter.text().decode())
            self.at_ms += MINUTE_MS
        return self

    def is_silent(self, minutes: int) -> "Ledger":
        self.scrapes += [None] * minutes
        self.at_ms += minutes * MINUTE_MS
        return self

    def fails(self, minutes: int) -> "Ledger":
        """Minutes in which nothing could be measured."""
        for _ in range(minutes):
            self._exporter.publish([], self.at_ms, {}, failed=READ)
            self.scrapes.append(self._exporter.text().decode())
            self.at_ms += MINUTE_MS
        return self


def wait(seconds: float, queue: str = "q", cluster: str = "east") -> Sample:
    return Sample(labels={"cluster": cluster, "queue": queue, "service_class": "batch"}, value=seconds)


def target(seconds: float) -> Sample:
    return Sample(labels={"service_class": "batch"}, value=seconds)


def burned(ratio: float, team: str) -> Sample:
    return Sample(labels={"team": team, "period": "month"}, value=ratio)


def which(alert: str, by: str, minute: int, *of: Mapping[str, str]) -> dict[str, Any]:
    """An expectation of promtool: who is told of by an alert then."""
    written = (",".join(f'{name}="{value}"' for name, value in one.items()) for one in of)
    samples = [{"labels": f"{{{labels}}}", "value": 1} for labels in written]
    expression = f'count by ({by}) (ALERTS{{alertname="{alert}",alertstate="firing"}})'
    return {"expr": expression, "eval_time": f"{minute}m", "exp_samples": samples}


@pytest.fixture
def promtool(tmp_path: Path) -> Callable[..., None]:
    def run(ledgers: Sequence[Ledger], *expected: Mapping[str, Any]) -> None:
        series = [
            each
            for number, one in enumerate(ledgers)
            for each in input_series(one.scrapes, instance=f"i{number}")
        ]
        test = {"interval": "1m", "input_series": series, "promql_expr_test": [*expected]}
        content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [test]}
        (tmp_path / "rules.yaml").write_text(RULES)
        (tmp_path / "test.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
        command = ["promtool", "test", "rules", "test.yaml"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    return run


@pytest.mark.parametrize(
    ("others", "room"),
    [
        # What does not breach fills the room, and what breaches, too.
        (600.0, 5),
        (90_000.0, 4),
    ],
)
def test_a_queue_that_recovers_resolves_however_many_series_are_left_out(
    others: float, room: int, promtool: Callable[..., None]
) -> None:
    def of(mine: float) -> Told:
        rest = [wait(others, f"other{number}") for number in range(9)]
        return {WAITS: [wait(mine), *rest], TARGET: [target(3600.0)]}

    full = Ledger("one", room).tells(10, of(100_000.0)).tells(30, of(10.0))
    mine = {"queue": "q"}
    # Of nine others that breach there is room for three, of which one makes place for mine at first.
    shown = [{"queue": f"other{number}"} for number in range(3)] if others > 3600 else []
    promtool(
        [full],
        which(TOO_LONG, "queue", 9, mine, *shown[:2]),
        which(TOO_LONG, "queue", 39, *shown),
    )
    kept = [line for line in str(full.scrapes[-1]).splitlines() if line.startswith("gpuledger_incomplete")]
    # That what does not breach is left out makes nothing unknown.
    assert bool(kept) is (others > 3600)


def test_a_limit_is_of_the_ledger_that_tells_the_value(promtool: Callable[..., None]) -> None:
    strict = Ledger("one").tells(10, {WAITS: [wait(9000.0)], TARGET: [target(3600.0)]})
    patient = Ledger("two").tells(10, {WAITS: [wait(9000.0, cluster="west")], TARGET: [target(86_400.0)]})
    promtool([strict, patient], which(TOO_LONG, "cluster", 9, {"cluster": "east"}))


def test_a_dead_ledger_keeps_its_own_budgets_and_no_other_ones(promtool: Callable[..., None]) -> None:
    """Both told of a team whose budget was burned; one died, and in the other the budget is gone."""
    east, west = [wait(0.0)], [wait(0.0, cluster="west")]
    dead = Ledger("one").tells(5, {WAITS: east, BUDGET: [burned(1.2, "nlp")]}).is_silent(45)
    lives = Ledger("two").tells(5, {WAITS: west, BUDGET: [burned(1.2, "cv")]}).tells(45, {WAITS: west})
    both = {"ledger": "one", "team": "nlp"}, {"ledger": "two", "team": "cv"}
    promtool(
        [dead, lives],
        which(BURNED, "ledger, team", 4, *both),
        which(BURNED, "ledger, team", 49, both[0]),
        which(ABSENT, "ledger, cluster", 49, {"ledger": "one", "cluster": "east"}),
    )


def test_what_fails_in_one_ledger_keeps_its_own_alerts_and_no_other_ones(
    promtool: Callable[..., None],
) -> None:
    def of(cluster: str, team: str) -> Told:
        return {
            WAITS: [wait(9000.0, cluster=cluster)], TARGET: [target(3600.0)], BUDGET: [burned(1.2, team)]
        }  # fmt: skip

    fails = Ledger("one").tells(5, of("east", "nlp")).fails(45)
    other: Told = {WAITS: [wait(0.0, "another", "west")]}
    lives = Ledger("two").tells(5, of("west", "cv")).tells(45, other)
    promtool(
        [fails, lives],
        which(TOO_LONG, "cluster", 49, {"cluster": "east"}),
        which(BURNED, "ledger, team", 49, {"ledger": "one", "team": "nlp"}),
    )


def test_of_a_dead_ledger_the_clusters_are_missed_that_it_told_of_last(promtool: Callable[..., None]) -> None:
    dead = Ledger("one").tells(2, {}).tells(10, {}, ("old", "east")).tells(20, {}, ("east",)).is_silent(20)
    promtool(
        [dead, Ledger("two").tells(52, {}, ("west",))],
        which(ABSENT, "ledger, cluster", 51, {"ledger": "one", "cluster": "east"}),
    )


def test_a_ledger_that_dies_once_more_before_it_knows_its_clusters_is_missed_all_the_same(
    promtool: Callable[..., None],
) -> None:
    dead = Ledger("one").tells(5, {}, ("east",)).is_silent(2).tells(1, {}).is_silent(20)
    promtool(
        [dead, Ledger("two").tells(28, {}, ("west",))],
        which(ABSENT, "ledger, cluster", 27, {"ledger": "one", "cluster": "east"}),
    )


def test_what_only_a_dead_ledger_told_stays_though_another_reads_its_cluster(
    promtool: Callable[..., None],
) -> None:
    """Its death is told of no cluster, so that what the living one tells of it is not inhibited."""
    mine = {WAITS: [wait(9000.0, "mine")], TARGET: [target(3600.0)], BUDGET: [burned(1.2, "nlp")]}
    dead = Ledger("one").tells(5, mine, ("east",)).is_silent(45)
    lives = Ledger("two").tells(50, {WAITS: [wait(0.0)], TARGET: [target(3600.0)]}, ("east",))
    promtool(
        [dead, lives],
        which(BURNED, "ledger, team", 49, {"ledger": "one", "team": "nlp"}),
        which(TOO_LONG, "queue", 49, {"queue": "mine"}),
        which(ABSENT, "ledger, cluster", 49, {"ledger": "one"}),
    )
