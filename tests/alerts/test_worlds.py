"""Every alert is silent, fires, says what it should, and resolves, on what was scraped of a small world."""

import subprocess
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from alerts.exporter import LEDGER
from alerts.readings import annotations, readings
from alerts.rules import rules_file
from alerts.whose import LEDGER_LABEL, of_ledger
from alerts.wording import Links
from analytics.metrics import REGISTRY
from domain.policy import Policy
from tests.alerts.scraped import fires, firing, input_series
from tests.alerts.worlds import BY_NAME, World, files, play

LINKS = Links(dashboard_url="https://gpu.example", runbooks_url="https://book.example")
FILES = {file.stem: file for file in files()}
# Longer than any value stands for missing ones.
SILENCE = timedelta(hours=2)
# The settings that worlds set change no limit.
RULES = rules_file(REGISTRY, Policy(), dashboard_url=LINKS.dashboard_url, runbooks_url=LINKS.runbooks_url)
OF_WORK = sorted(name for name, alert in BY_NAME.items() if alert.metric is not None)


# With steps that are shorter than the time for which a value stands for missing ones.
FEW = timedelta(minutes=5)


@cache
def world_of(name: str) -> World:
    return World.read(FILES[name])


def expected(world: World) -> dict[str, Any]:
    """The alert as Alertmanager gets it where the world's text is."""
    alert, text = world.alert, world.text
    assert alert.metric is not None
    # What is of no cluster is its ledger's.
    whose = {LEDGER_LABEL: LEDGER} if LEDGER_LABEL in alert.identity else {}
    definition = f"{alert.metric.title}: {alert.metric.definition}"
    return {
        "exp_labels": {"severity": str(alert.rule.severity), **whose, **text["labels"]},
        "exp_annotations": {
            "summary": text["summary"],
            "description": f"{text['description']} {definition}",
            "runbook_url": f"https://book.example/{alert.rule.name}.md",
            "dashboard_url": f"https://gpu.example/{text['link']}",
            **text.get("facts", {}),
        },
    }


def as_promtool_tests(name: str) -> list[dict[str, Any]]:
    """The course of a world; and that the alert fires on when the ledger falls silent."""
    world = world_of(name)
    scrapes: list[str | None] = [each.scrape for each in play(world, range(len(world.states)))]
    told = world.text["at"]
    course = {
        "name": name,
        "interval": f"{round(world.step.total_seconds())}s",
        "input_series": input_series(scrapes),
        "alert_rule_test": [
            firing(name, world.seconds(told), expected(world)),
            *(firing(name, world.seconds(at)) for at, state in enumerate(world.states) if state == "."),
        ],
        "promql_expr_test": [
            fires(name, world.seconds(at), alerts=int(state == "!")) for at, state in enumerate(world.states)
        ],
    }
    if world.step > FEW:
        return [course]
    scrapes[told + 1 :] = [None] * (SILENCE // FEW)
    gone = {
        **course,
        "name": f"{name}, the ledger is gone",
        "input_series": input_series(scrapes),
        "alert_rule_test": [firing(name, world.seconds(len(scrapes) - 1), expected(world))],
        "promql_expr_test": [fires(name, world.seconds(at), alerts=1) for at in range(told, len(scrapes))],
    }
    return [course, gone]


@pytest.mark.prometheus
@pytest.mark.parametrize(
    "step",
    [FEW, *(pytest.param(timedelta(hours=hours), marks=pytest.mark.long) for hours in (1, 2, 6))],
    ids=["5m", "1h", "2h", "6h"],
)
def test_every_alert_fires_and_resolves_on_what_was_scraped(step: timedelta, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(RULES)
    content = {
        "rule_files": ["rules.yaml"],
        "evaluation_interval": f"{round(step.total_seconds())}s",
        "tests": [test for name in FILES if world_of(name).step == step for test in as_promtool_tests(name)],
    }
    assert content["tests"]
    (tmp_path / "test.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    done = subprocess.run(
        ["promtool", "test", "rules", "test.yaml"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", sorted(FILES))
def test_without_prometheus_it_says_the_same(name: str) -> None:
    world = world_of(name)
    (then,) = play(world, [world.text["at"]])
    samples = {name: of_ledger(found, LEDGER) for name, found in then.samples.items()}
    (reading,) = [each for each in readings(world.alert, samples, world.policy) if each.breaches]
    wanted = expected(world)
    assert reading.labels == {"alertname": name, **wanted["exp_labels"]}
    said = annotations(world.alert, reading, LINKS)
    # Who it is about only the ledger can name.
    assert said == wanted["exp_annotations"] | world.text.get("example", {})


def test_every_alert_of_a_metric_has_a_world() -> None:
    assert sorted(FILES) == OF_WORK


def test_a_world_is_silent_twice_then_fires_and_ends_in_silence() -> None:
    for name in FILES:
        world = world_of(name)
        assert world.states.startswith("..")
        assert world.states.endswith(".")
        assert "!" in world.states
        assert world.states[world.text["at"]] == "!"
