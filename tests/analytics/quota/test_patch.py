"""Patches against the objects that real control planes gave: one value changes, and drift is refused."""

import gzip
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from analytics.quota.patch import (
    Target,
    flavor_target,
    inverse,
    namespace_target,
    patch,
    volcano_target,
    weight_target,
)
from collector.translator import find
from domain.errors import UsageError
from domain.facts import Description, ObjectKind
from domain.objects import BODY_TYPES, Body, ClusterQueue, Cohort, ResourceQuota, VolcanoQueue
from domain.window import parse_instant
from tests.json_patch import TestFailedError, applied, differences
from tests.shared import shared

Json = dict[str, Any]
SEEN = parse_instant("2026-12-01T00:00:00Z")
FILES = (
    "city/clusterqueues.final.v1beta1", "city/clusterqueues.final.v1beta2", "city/cohorts.final.v1beta2",
    "kueue/clusterqueues.final.v1beta1",
    "volcano/queues.list",
)  # fmt: skip


def read(written: Json) -> Body:
    """What the collector keeps of an object."""
    translator = find(written["apiVersion"].rpartition("/")[0], written["kind"])
    assert translator is not None
    raw = msgspec.convert(written, translator.raw, strict=False)
    [told] = [fact for fact in translator.facts(raw, SEEN) if isinstance(fact, Description)]
    body: Body = msgspec.json.decode(told.body, type=BODY_TYPES[told.kind])
    return body


def targets(written: Json) -> Iterator[tuple[Target, str]]:
    """Every quota of an object, and where a person finds it: an independent way over the raw object."""
    body, meta = read(written), written["metadata"]
    at: Json = {"name": meta["name"], "resource_version": meta["resourceVersion"]}
    if isinstance(body, ClusterQueue | Cohort):
        kind = ObjectKind.COHORT if isinstance(body, Cohort) else ObjectKind.CLUSTER_QUEUE
        for g, group in enumerate(written["spec"].get("resourceGroups", [])):
            for f, flavor in enumerate(group["flavors"]):
                for r, resource in enumerate(flavor["resources"]):
                    found = flavor_target(
                        body, kind=kind, flavor=flavor["name"], resource=resource["name"], **at
                    )
                    assert found is not None
                    yield found, f"/spec/resourceGroups/{g}/flavors/{f}/resources/{r}/nominalQuota"
    elif isinstance(body, VolcanoQueue):
        yield weight_target(body, **at), "/spec/weight"
        for key in ("deserved", "capability"):
            for resource in written["spec"].get(key, {}):
                found = volcano_target(body, resource=resource, **at)
                assert found is not None
                said = "deserved" if resource in written["spec"].get("deserved", {}) else "capability"
                yield found, f"/spec/{said}/{resource.replace('/', '~1')}"


def recorded(name: str) -> list[Json]:
    text = gzip.decompress((shared("data/recorded") / f"{name}.json.gz").read_bytes())
    given = json.loads(text)
    kind = given["kind"].removesuffix("List")
    usual = {"kind": kind, "apiVersion": given["apiVersion"]}
    items: list[Json] = [usual | item for item in given["items"]]
    return items


@pytest.mark.parametrize("name", FILES)
def test_a_patch_changes_the_one_value_and_its_inverse_brings_it_back(name: str) -> None:
    checked = 0
    for written in recorded(name):
        for target, pointer in targets(written):
            after = applied(patch(target, 7_777), written)
            [(path, before, now)] = differences(written, after)
            assert (path, before) == (pointer, target.written)
            # A text stays a text, and a number a number.
            assert (now, type(now)) == (type(before)(7_777), type(before))
            assert applied(inverse(target, 7_777), after) == written
            checked += 1
    assert checked > 0


@pytest.mark.parametrize("name", FILES)
def test_a_value_a_version_or_a_place_that_has_drifted_is_refused(name: str) -> None:
    for written in recorded(name):
        for target, _ in targets(written):
            change = patch(target, 7_777)
            newer = json.loads(json.dumps(written))
            newer["metadata"]["resourceVersion"] += "1"
            moved = applied([change[-1] | {"value": 8_888}], written)
            for drifted in (newer, moved):
                with pytest.raises(TestFailedError):
                    applied(change, drifted)
            with pytest.raises(TestFailedError):
                applied(inverse(target, 7_777), moved)
            for groups in (newer["spec"].get("resourceGroups", []),):
                for group in groups:
                    group["flavors"].insert(0, {"name": "new", "resources": group["flavors"][0]["resources"]})
            if target.names:
                with pytest.raises(TestFailedError):
                    applied(change[1:], newer)


def test_a_resource_quota_is_found_by_its_key() -> None:
    written = {
        "apiVersion": "v1", "kind": "ResourceQuota",
        "metadata": {"name": "gpus", "namespace": "nlp", "uid": "u", "resourceVersion": "12",
                     "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"hard": {"requests.cpu": "40", "requests.nvidia.com/gpu": "8", "pods": "10"}},
    }  # fmt: skip
    body = read(written)
    assert isinstance(body, ResourceQuota)
    place: Json = {"namespace": "nlp", "name": "gpus", "resource_version": "12"}
    target = namespace_target(body, resource="nvidia.com/gpu", **place)
    assert target is not None
    assert patch(target, 6) == (
        {"op": "test", "path": "/metadata/resourceVersion", "value": "12"},
        {"op": "test", "path": "/spec/hard/requests.nvidia.com~1gpu", "value": "8"},
        {"op": "replace", "path": "/spec/hard/requests.nvidia.com~1gpu", "value": "6"},
    )
    assert applied(inverse(target, 6), applied(patch(target, 6), written)) == written
    assert namespace_target(body, resource="nvidia.com/mig-1g.10gb", **place) is None


def test_an_object_that_an_older_version_read_makes_no_patch() -> None:
    from dataclasses import replace

    from domain.quantity import Quota, QuotaKind

    body = ResourceQuota(hard={"nvidia.com/gpu": replace(Quota(QuotaKind.NUMBER, 8_000), written=None)})
    with pytest.raises(UsageError, match="read anew"):
        namespace_target(body, namespace="n", name="q", resource_version="1", resource="nvidia.com/gpu")
