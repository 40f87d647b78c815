"""The states of an alert are those of Prometheus, whatever values come, stay away, or find us not running."""

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from alerts.standing import Heard, Standing, State, Timing, resumed, step
from tests.alerts.prometheus_alerts import Rule, Schedule
from tests.e2e.alertmanagers import program

EVERY_MS = 15_000
VALUES = st.sampled_from([True, True, False, None])
RESTARTS = st.frozensets(st.integers(0, 60))
RUNS = st.lists(st.tuples(VALUES, st.integers(1, 6)), min_size=1, max_size=10)
SCHEDULES = RUNS.map(lambda runs: [value for value, times in runs for _ in range(times)])
LENGTHS = st.integers(0, 5)


def timing(hold: int, keep: int, window: int) -> Timing:
    return Timing(hold_ms=hold * EVERY_MS, keep_ms=keep * EVERY_MS, window_ms=window * EVERY_MS)


def stored(standing: Standing | None) -> Standing | None:
    """As after a restart: only what was written down is known."""
    if standing is None:
        return None
    found: dict[str, Any] = json.loads(json.dumps(asdict(standing)))
    return Standing(**{**found, "state": State(found["state"])})


def ours(
    schedule: Schedule, of: Timing, missing: Heard, *, restarts: frozenset[int] = frozenset()
) -> list[bool]:
    """Whether the alert fires after each evaluation."""
    standing: Standing | None = None
    fires = []
    for at, value in enumerate(schedule):
        if at in restarts:
            standing = stored(standing)
        heard = missing if value is None else Heard.BREACH if value else Heard.FINE
        standing = step(standing, heard, at * EVERY_MS, of)
        fires.append(standing is not None and standing.state is State.FIRING)
    return fires


@settings(max_examples=50)
@given(schedule=SCHEDULES, hold=LENGTHS, keep=LENGTHS, window=LENGTHS, restarts=RESTARTS)
def test_what_is_gone_ends_as_a_missing_series_does_in_prometheus(
    schedule: list[bool | None], hold: int, keep: int, window: int, restarts: frozenset[int]
) -> None:
    expected = Rule(hold=hold, keep=keep, window=window).firing(schedule)
    assert ours(schedule, timing(hold, keep, window), Heard.GONE, restarts=restarts) == expected


@settings(max_examples=50)
@given(schedule=SCHEDULES, hold=LENGTHS, keep=LENGTHS, window=LENGTHS, restarts=RESTARTS)
def test_what_is_unknown_is_as_in_prometheus_but_that_it_never_ends_a_breach(
    schedule: list[bool | None], hold: int, keep: int, window: int, restarts: frozenset[int]
) -> None:
    found = ours(schedule, timing(hold, keep, window), Heard.UNKNOWN, restarts=restarts)
    assert found == Rule(hold=hold, keep=keep, window=window, keeps_unknown=True).firing(schedule)
    ends = [at for at in range(1, len(found)) if found[at - 1] and not found[at]]
    assert all(schedule[at] is False for at in ends)


@settings(max_examples=50)
@given(
    schedule=SCHEDULES.filter(lambda values: None not in values),
    hold=LENGTHS,
    keep=LENGTHS,
    start=st.integers(0, 40),
    length=st.integers(0, 5),
)
def test_not_running_for_less_than_the_window_changes_nothing_but_the_evaluations_left_out(
    schedule: list[bool | None], hold: int, keep: int, start: int, length: int
) -> None:
    """As a Prometheus that did not evaluate either: it has the same samples before and after."""
    left_out = range(start, start + length)
    standing: Standing | None = None
    reference = Rule(hold=hold, keep=keep, window=0)
    for at, value in enumerate(schedule):
        if at in left_out:
            standing = stored(standing)
            continue
        heard = Heard.BREACH if value else Heard.FINE
        of = timing(hold, keep, length + 1)
        if at == left_out.stop and standing is not None:
            standing = resumed(standing, at * EVERY_MS, of)
        standing = step(standing, heard, at * EVERY_MS, of)
        fires = standing is not None and standing.state is State.FIRING
        assert fires is reference._after(at, value)


def test_a_breach_before_a_long_absence_does_not_count_to_how_long_it_lasts() -> None:
    of = timing(hold=4, keep=0, window=2)
    pending = step(None, Heard.BREACH, 0, of)
    assert pending is not None
    assert resumed(pending, 2 * EVERY_MS, of) == pending
    assert resumed(pending, 3 * EVERY_MS, of) is None
    firing = step(pending, Heard.BREACH, 4 * EVERY_MS, of)
    assert firing is not None
    assert resumed(firing, 5000 * EVERY_MS, of) == firing


def test_what_fires_outlives_any_absence_with_its_beginning_and_ends_by_news_only() -> None:
    of = timing(hold=0, keep=2, window=1)
    standing = step(None, Heard.BREACH, 0, of)
    for at in (1, 2, 50, 5000):
        standing = step(stored(standing), Heard.UNKNOWN, at * EVERY_MS, of)
        assert standing is not None
        assert (standing.state, standing.fired_ms) == (State.FIRING, 0)
    for at, expected in ((5001, State.FIRING), (5002, State.FIRING), (5003, State.RESOLVED)):
        standing = step(standing, Heard.FINE, at * EVERY_MS, of)
        assert standing is not None
        assert standing.state is expected


def test_a_breach_that_did_not_last_leaves_the_end_of_the_last_one_as_it_was() -> None:
    of = timing(hold=2, keep=0, window=0)
    resolved = Standing(
        state=State.RESOLVED,
        active_ms=0,
        heard_ms=60_000,
        breaches=False,
        fired_ms=30_000,
        resolved_ms=60_000,
    )
    pending = step(resolved, Heard.BREACH, 90_000, of)
    assert pending is not None
    assert (pending.state, pending.resolved_ms) == (State.PENDING, 60_000)
    back = step(pending, Heard.FINE, 105_000, of)
    assert back is not None
    assert (back.state, back.fired_ms, back.resolved_ms) == (State.RESOLVED, 30_000, 60_000)


@pytest.mark.prometheus
def test_the_reference_fires_as_promtool_says(tmp_path: Path) -> None:
    random = Random(7)
    rules, series, expected = [], [], []
    for number in range(40):
        hold, keep, window = (random.randint(0, 4) for _ in range(3))
        runs = [random.choice((True, True, False, None)) for _ in range(9)]
        schedule = [value for value in runs for _ in range(random.randint(1, 5))]
        rules.append(
            {
                "alert": f"A{number}",
                # Half a step more, so that the sample at the left end is in the range in any version.
                "expr": f"last_over_time(s{number}[{window * 15 + 7}s]) > 0",
                "for": f"{hold * 15}s",
                "keep_firing_for": f"{keep * 15}s",
            }
        )
        words = {True: "1", False: "0", None: "_"}
        series.append({"series": f"s{number}", "values": " ".join(words[value] for value in schedule)})
        for at, fires in enumerate(Rule(hold=hold, keep=keep, window=window).firing(schedule)):
            firing: list[dict[str, Any]] = [{"exp_labels": {}}] if fires else []
            expected.append({"eval_time": f"{at * 15}s", "alertname": f"A{number}", "exp_alerts": firing})
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump({"groups": [{"name": "g", "rules": rules}]}))
    test = {"interval": "15s", "input_series": series, "alert_rule_test": expected}
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "15s", "tests": [test]}
    (tmp_path / "test.yaml").write_text(yaml.safe_dump(content))
    done = subprocess.run(
        [program("promtool", "prometheus"), "test", "rules", "test.yaml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
