"""
What promtool tests the rules with: the texts of scrapes, one after the other, as its input series.

A series that a scrape no longer has ends with the mark by which Prometheus knows that it is stale; so do all
where a scrape failed, which is None here.
"""

import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml
from prometheus_client.parser import text_string_to_metric_families

GONE, NONE = "stale", "_"


def input_series(scrapes: Sequence[str | None], *, instance: str = "") -> list[dict[str, str]]:
    """The scrapes as `input_series` of promtool, a value per scrape, of one instance of several."""
    target = {"instance": instance} if instance else {}
    parsed = [{} if text is None else dict(_samples(text, target)) for text in scrapes]
    names = dict.fromkeys(name for one in parsed for name in one)
    return [{"series": name, "values": " ".join(_values(name, parsed))} for name in names]


def _samples(text: str, target: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            yield sample.name + _labels({**sample.labels, **target}), repr(float(sample.value))


def _labels(labels: Mapping[str, str]) -> str:
    written = (f'{name}="{_escaped(value)}"' for name, value in labels.items())
    return f"{{{','.join(written)}}}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _values(name: str, parsed: Sequence[Mapping[str, str]]) -> Iterable[str]:
    there = False
    for one in parsed:
        yield one.get(name, GONE if there else NONE)
        there = name in one


def firing(name: str, at_seconds: int, *alerts: Mapping[str, Mapping[str, str]]) -> dict[str, Any]:
    """An expectation of promtool: these alerts of the name fire then, with these labels and annotations."""
    return {"eval_time": f"{at_seconds}s", "alertname": name, "exp_alerts": list(alerts)}


def fires(name: str, at_seconds: int, *, alerts: int) -> dict[str, Any]:
    """An expectation of promtool: so many alerts of the name fire then, whatever their text."""
    expression = f'count(ALERTS{{alertname="{name}",alertstate="firing"}})'
    samples = [{"labels": "{}", "value": alerts}] if alerts else []
    return {"eval_time": f"{at_seconds}s", "expr": expression, "exp_samples": samples}


def promtool_tests(folder: Path, rules: str, *tests: Mapping[str, Any]) -> None:
    """Run tests of these rules with promtool, evaluated each minute; what it finds wrong is the failure."""
    content = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [*tests]}
    (folder / "rules.yaml").write_text(rules)
    (folder / "test.yaml").write_text(yaml.dump(content, Dumper=yaml.CSafeDumper))
    run_promtool(folder)


def run_promtool(folder: Path) -> None:
    """Run promtool on the tests that are written there."""
    command = ["promtool", "test", "rules", "test.yaml"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
