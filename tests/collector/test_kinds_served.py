"""A cluster need not have a kind, nor allow it to be read; our account asks for all kinds that we read."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
import yaml

from collector.kube.client import Answer
from collector.kube.discovery import discover, version_path
from collector.kube.watch_steps import Outcome
from collector.translator import TRANSLATORS, Translator
from collector.visibility import Visible

RBAC = Path(__file__).parents[2] / "deploy/rbac.yaml"
MAY_BE_MISSING = [one for one in TRANSLATORS if one.group not in {"", "batch"}]


class Serves:
    """An API server that has these answers, and of everything else does not know."""

    def __init__(self, answers: Mapping[str, object], status: int = 404) -> None:
        self._answers = answers
        self._status = status

    def get(self, path: str, params: Mapping[str, str], *, read_seconds: float = 0) -> Answer:  # noqa: ARG002
        found = self._answers.get(path)
        body = b"{}" if found is None else json.dumps(found).encode()
        return Answer(status=self._status if found is None else 200, body=body, headers={})


def group(kind: Translator, *resources: str) -> dict[str, object]:
    """A server that has the group of a kind in all versions, with these resources."""
    versions = [{"version": version} for version in kind.versions]
    answers: dict[str, object] = {f"/apis/{kind.group}": {"versions": versions}}
    for version in kind.versions:
        answers[version_path(kind, version)] = {"resources": [{"name": name} for name in resources]}
    return answers


@pytest.mark.parametrize("kind", MAY_BE_MISSING, ids=lambda kind: kind.kind)
def test_a_kind_that_is_not_there_or_not_allowed_is_told_and_the_best_version_is_read(
    kind: Translator,
) -> None:
    answers = {
        "no group": Serves({}),
        "the group without the kind": Serves(group(kind, "others")),
        "forbidden": Serves({}, status=403),
        "there": Serves(group(kind, kind.resource)),
    }
    found = {name: discover(server, kind) for name, server in answers.items()}
    assert {name: answered.outcome for name, answered in found.items()} == {
        "no group": Outcome.NOT_INSTALLED,
        "the group without the kind": Outcome.NOT_INSTALLED,
        "forbidden": Outcome.NO_PERMISSION,
        "there": Outcome.FOUND,
    }
    assert found["there"].version == kind.versions[0]


def test_the_account_may_read_the_kinds_that_we_read_and_nothing_else() -> None:
    [role] = [part for part in yaml.safe_load_all(RBAC.read_text()) if part["kind"] == "ClusterRole"]
    allowed = {
        (api_group, resource)
        for rule in role["rules"]
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
    }
    positions = (Visible.group, Visible.resource)
    assert allowed == {(kind.group, kind.resource) for kind in TRANSLATORS} | {positions}
    verbs = {group: tuple(rule["verbs"]) for rule in role["rules"] for group in rule["apiGroups"]}
    assert verbs.pop(Visible.group) == ("get",)
    assert set(verbs.values()) == {("get", "list", "watch")}
