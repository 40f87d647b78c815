"""A cluster need not have a kind, nor allow it to be read; our account asks for all kinds that we read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from kubernetes.client import Configuration

from collector.dcgm.discovery import Asked, By
from collector.dcgm.discovery import discover as discover_exporters
from collector.kube.client import Answer, Connection
from collector.kube.discovery import discover, version_path
from collector.kube.watch_steps import Outcome
from collector.translator import TRANSLATORS, Translator
from collector.visibility import Visible
from domain.errors import UnreachableError
from tests.fake_cluster import FakeCluster

RBAC = Path(__file__).parents[2] / "deploy/rbac.yaml"
README = RBAC.with_name("README.md")
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


READ = ["get", "list", "watch"]


def rules_of(role: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """Verbs by API group and resource; every rule is for whole resources, and none says a thing twice."""
    assert {key for rule in role["rules"] for key in rule} == {"apiGroups", "resources", "verbs"}
    told = [
        ((api_group, resource), rule["verbs"])
        for rule in role["rules"]
        for api_group in rule["apiGroups"]
        for resource in rule["resources"]
    ]
    assert len(told) == len(dict(told))
    return dict(told)


def test_the_account_may_do_what_the_program_asks_and_nothing_else() -> None:
    parts = {part["kind"]: part for part in yaml.safe_load_all(RBAC.read_text())}
    asked = {(kind.group, kind.resource): READ for kind in TRANSLATORS}
    asked |= {(Visible.group, Visible.resource): ["get"]}
    assert rules_of(parts["ClusterRole"]) == asked
    # Somebody has it, and it is the account that is made there.
    binding, account = parts["ClusterRoleBinding"], parts["ServiceAccount"]
    assert set(parts) == {"ClusterRole", "ClusterRoleBinding", "ServiceAccount"}
    assert binding["roleRef"]["name"] == parts["ClusterRole"]["metadata"]["name"]
    assert binding["subjects"] == [{"kind": "ServiceAccount", **account["metadata"]}]


def test_what_is_granted_on_demand_is_written_out_ready_to_use() -> None:
    # Exporters that are found by their services: the rule stands in the file as a comment.
    lines = [line.strip() for line in RBAC.read_text().splitlines()]
    start = next(at for at, line in enumerate(lines) if line.startswith("# - apiGroups"))
    [rule] = yaml.safe_load("\n".join(line.removeprefix("# ") for line in lines[start : start + 3]))
    group, resource = "discovery.k8s.io", "endpointslices"
    assert rules_of({"rules": [rule]}) == {(group, resource): READ}
    with FakeCluster() as cluster:
        connection = Connection(Configuration(host=cluster.url))
        with pytest.raises(UnreachableError):
            discover_exporters(connection, Asked(by=By.SERVICES, namespace="", selector="", port=0))
        connection.close()
    assert [path for path, _ in cluster.requests] == [f"/apis/{group}/v1/{resource}"]
    # Positions in single namespaces.
    _, _, fenced = README.read_text().partition("```yaml\n")
    role = yaml.safe_load(fenced.partition("```")[0])
    assert role["kind"] == "Role"
    assert rules_of(role) == {(Visible.group, Visible.namespaced_resource): ["get"]}
