"""What lies in `deploy/` for others is what they accept: no unknown field, and no value of another kind."""

import json
import re
import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from service.settings import Settings

DEPLOY = Path(__file__).parents[2] / "deploy"
ACCEPTED = yaml.safe_load((Path(__file__).parent / "accepted_fields.yaml").read_text(encoding="utf-8"))
_DURATION = "(0|([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?)"


def _matches(pattern: str) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, str) and re.fullmatch(pattern, given) is not None


def _whole(least: int, most: int) -> Callable[[Any], bool]:
    return lambda given: isinstance(given, int) and not isinstance(given, bool) and least <= given <= most


KINDS: Final[Mapping[str, Callable[[Any], bool]]] = {
    "text": _matches("(?s).+"),
    "name": _matches("[a-z0-9]([-a-z0-9]*[a-z0-9])?"),
    "duration": _matches(f"(?=.){_DURATION}"),
    "texts": lambda given: isinstance(given, dict) and all(isinstance(each, str) for each in given.values()),
    "truth": lambda given: isinstance(given, bool),
    "whole": _whole(0, 2**31 - 1),
    "positive": _whole(1, 2**31 - 1),
    "column": _whole(0, 23),
    "width": _whole(1, 24),
}


def wrong(given: Any, accepted: Any, place: str) -> Iterator[str]:
    """What is not accepted, each with its place."""
    if isinstance(accepted, list):
        if not isinstance(given, list):
            yield f"{place}: expected a list"
        elif given:
            for number, each in enumerate(given):
                yield from wrong(each, accepted[0] if accepted else "nothing", f"{place}[{number}]")
    elif isinstance(accepted, dict):
        if not isinstance(given, dict):
            yield f"{place}: expected fields"
            return
        known = {name.removesuffix("!"): kind for name, kind in accepted.items()}
        missing = {name[:-1] for name in accepted if name.endswith("!")} - given.keys()
        yield from (f"{place}.{name}: missing" for name in sorted(missing))
        for name, value in given.items():
            if name in known:
                yield from wrong(value, known[name], f"{place}.{name}")
            else:
                yield f"{place}.{name}: nobody knows it"
    elif not _is(given, str(accepted)):
        yield f"{place}: {given!r} is not {accepted}"


def _is(given: Any, accepted: str) -> bool:
    if accepted in KINDS:
        return KINDS[accepted](given)
    if accepted.startswith("/"):
        return _matches(accepted[1:-1])(given)
    return given in accepted.split("|")


def objects() -> list[Any]:
    """Every object of ours, with the name of its kind."""
    files = [DEPLOY / "prometheus" / f"{name}.yaml" for name in ("prometheusrule", "servicemonitor")]
    of_cluster = [
        each
        for file in (*files, DEPLOY / "keda.yaml")
        for each in yaml.safe_load_all(file.read_text(encoding="utf-8"))
    ]
    dashboards = [
        json.loads(file.read_text(encoding="utf-8")) for file in sorted((DEPLOY / "grafana").iterdir())
    ]
    return [
        *(pytest.param(each["kind"], each, id=each["kind"]) for each in of_cluster),
        *(pytest.param("dashboard", each, id=each["uid"]) for each in dashboards),
    ]


@pytest.mark.parametrize(("kind", "given"), objects())
def test_others_accept_it(kind: str, given: Any) -> None:
    assert list(wrong(given, ACCEPTED[kind], kind)) == []


def test_each_kind_that_is_described_is_there() -> None:
    assert {each.values[0] for each in objects()} == ACCEPTED.keys()


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"endpoints": [{"port": 8080}]}, "spec.endpoints[0].port: 8080 is not text"),
        ({"endpoints": [{"intervall": "15s"}]}, "spec.endpoints[0].intervall: nobody knows it"),
        ({"endpoints": [{"interval": "15"}]}, "spec.endpoints[0].interval: '15' is not duration"),
        ({"endpoints": {}}, "spec.endpoints: expected a list"),
        ({"selector": "gpuledger"}, "spec.selector: expected fields"),
        ({"endpoints": [{"scheme": "ftp"}]}, "spec.endpoints[0].scheme: 'ftp' is not http|https"),
        ({"sampleLimit": True}, "spec.sampleLimit: True is not whole"),
    ],
)
def test_what_is_not_accepted_is_told_with_its_place(change: dict[str, Any], told: str) -> None:
    spec = {"selector": {}, "endpoints": [], **change}
    assert list(wrong(spec, ACCEPTED["ServiceMonitor"]["spec!"], "spec")) == [told]
    assert list(wrong({}, {"a!": "text"}, "spec")) == ["spec.a: missing"]


def test_the_service_leads_to_the_port_that_is_scraped_and_its_secret_is_said_to_be_optional() -> None:
    text = (DEPLOY / "prometheus/servicemonitor.yaml").read_text(encoding="utf-8")
    service, monitor = yaml.safe_load_all(text)
    (port,), (endpoint,) = service["spec"]["ports"], monitor["spec"]["endpoints"]
    assert (port["name"], port["port"]) == (endpoint["port"], Settings().server.port)
    assert service["metadata"]["labels"].items() >= monitor["spec"]["selector"]["matchLabels"].items()
    remark = text.partition("apiVersion")[0]
    assert endpoint["authorization"]["credentials"]["name"] in remark
    assert "take `authorization` out" in remark


def test_a_rule_records_or_alerts() -> None:
    content = yaml.safe_load((DEPLOY / "prometheus/prometheusrule.yaml").read_text(encoding="utf-8"))
    rules = [rule for group in content["spec"]["groups"] for rule in group["rules"]]
    assert rules
    for rule in rules:
        assert ("record" in rule) is not ("alert" in rule)
        assert "alert" in rule or not {"for", "keep_firing_for", "annotations"} & rule.keys()


@pytest.mark.prometheus
def test_promtool_accepts_what_a_prometheus_rule_holds(tmp_path: Path) -> None:
    content = yaml.safe_load((DEPLOY / "prometheus/prometheusrule.yaml").read_text(encoding="utf-8"))
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(content["spec"], sort_keys=False))
    command = ["promtool", "check", "rules", "rules.yaml"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    number = sum(len(group["rules"]) for group in content["spec"]["groups"])
    assert f"{number} rules found" in done.stdout
