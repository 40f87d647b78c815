"""The account of `deploy/rbac.yaml`, and a cluster that has every kind and lets it do just that."""

from pathlib import Path

import yaml

from collector.kube.discovery import version_path
from collector.translator import TRANSLATORS, Translator
from tests.fake_cluster import FakeCluster

RBAC = Path(__file__).parents[2] / "deploy/rbac.yaml"


def granted() -> set[tuple[str, str]]:
    """(API group, resource) that the account may get, list and watch, and nothing beside that."""
    [role] = [part for part in yaml.safe_load_all(RBAC.read_text()) if part["kind"] == "ClusterRole"]
    assert all(set(rule["verbs"]) <= {"get", "list", "watch"} for rule in role["rules"])
    return {
        (group, resource)
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def path_of(kind: Translator) -> str:
    """Where its objects are, in the version that we read first."""
    return f"{version_path(kind, kind.versions[0])}/{kind.resource}"


def serve_all(cluster: FakeCluster) -> None:
    """Install every kind, with one object each, behind that account."""
    cluster.serve(*map(path_of, TRANSLATORS))
    cluster.granted = granted()
    for kind in TRANSLATORS:
        add(cluster, kind, 0)


def add(cluster: FakeCluster, kind: Translator, number: int) -> str:
    """One more object, as small as an object can be; gives its uid."""
    uid = f"{kind.kind}-{number}"
    metadata = {"uid": uid, "name": uid.lower(), "creationTimestamp": "2026-05-04T08:00:00Z"}
    if kind.namespaced:
        metadata["namespace"] = "team"
    body = {"metadata": metadata}
    if kind.api_kind == "Event":
        involved = {"kind": "Pod", "uid": "u", "name": "p", "namespace": "team"}
        body |= {"involvedObject": involved, "reason": "Scheduled", "lastTimestamp": "2026-05-04T08:00:00Z"}  # type: ignore[dict-item]
    cluster.apply(path_of(kind), body)
    return uid
