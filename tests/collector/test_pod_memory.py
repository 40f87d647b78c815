"""What is remembered of a pod's earlier readings changes nothing of what a later one shows."""

import msgspec
import pytest

from collector.kube import pod
from collector.remembered import Remembered
from domain.facts import Description
from domain.objects import Pod
from tests.build import at

# Each a part of a pod that may change by itself, as it is written before and after.
CHANGES = {
    "its node": ("spec", '{"nodeName":"n1"}'),
    "its node and its GPUs": (
        "spec",
        '{"nodeName":"n1","containers":[{"resources":{"requests":{"nvidia.com/gpu":"2"}}}]}',
    ),
    "a gate": ("spec", '{"schedulingGates":[{"name":"quota"}]}'),
    "a label": ("labels", '{"team":"blue"}'),
    "an annotation": ("annotations", '{"scheduling.k8s.io/group-name":"gang"}'),
    "its owner": ("ownerReferences", '[{"kind":"Job","name":"j","uid":"o","controller":true}]'),
    "a claim": ("resourceClaimStatuses", '[{"name":"gpu","resourceClaimName":"made"}]'),
}


def read(part: str = "", written: str = "null") -> pod.RawPod:
    parts = {
        "labels": '{"team":"red"}',
        "annotations": "{}",
        "ownerReferences": "[]",
        "spec": '{"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"t"}]}',
        "resourceClaimStatuses": "[]",
    }
    if part:
        parts[part] = written
    spec, claims = parts.pop("spec"), parts.pop("resourceClaimStatuses")
    metadata = ",".join(f'"{name}":{text}' for name, text in parts.items())
    return msgspec.json.decode(
        f'{{"metadata":{{"name":"p","namespace":"t","uid":"u","creationTimestamp":"2026-03-02T09:00:00Z",'
        f'{metadata}}},"spec":{spec},"status":{{"resourceClaimStatuses":{claims}}}}}',
        type=pod.RawPod,
    )


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_part_is_told_as_if_it_were_the_first(change: str, monkeypatch: pytest.MonkeyPatch) -> None:
    later = read(*CHANGES[change])
    monkeypatch.setattr(pod, "_SAID", Remembered(pod._said))
    fresh = pod.facts(later, at(60))
    monkeypatch.setattr(pod, "_SAID", Remembered(pod._said))
    pod.facts(read(), at(30))
    assert pod.facts(later, at(60)) == fresh


def test_a_bound_pod_says_the_same_of_itself() -> None:
    before, after = pod.facts(read(), at(30))[-1], pod.facts(read(*CHANGES["its node"]), at(60))[-1]
    assert isinstance(before, Description)
    assert isinstance(after, Description)
    body = msgspec.json.decode(before.body, type=Pod)
    assert body.labels == {"team": "red"}
    assert msgspec.json.decode(after.body, type=Pod) == msgspec.structs.replace(body, claims=())
