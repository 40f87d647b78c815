"""What is remembered of a pod's earlier readings changes nothing of what a later one shows."""

import msgspec
import pytest

from collector.kube import pod, pod_said
from collector.remembered import Remembered
from domain.facts import Description
from domain.objects import Pod
from tests.build import at

# Each a part of a pod that may change by itself, as it is written before and after.
CLAIMS = '"resourceClaims":[{"name":"gpu","resourceClaimTemplateName":"t"}]'
CHANGES = {
    "its node": ("spec", f'{{"nodeName":"n1",{CLAIMS}}}'),
    "its node, behind the rest": ("spec", f'{{{CLAIMS},"nodeName":"n1"}}'),
    "its node, in other words": ("spec", f'{{{CLAIMS}, "nodeName": "n1"}}'),
    "a node that it asks for": ("spec", f'{{"nodeSelector":{{"nodeName":"n1"}},{CLAIMS}}}'),
    "its node and one that it asks for": (
        "spec",
        f'{{"nodeSelector":{{"nodeName":"n1"}},"nodeName":"n1",{CLAIMS}}}',
    ),
    "its node and its claims": ("spec", '{"nodeName":"n1"}'),
    "nothing that it asks": ("spec", "null"),
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
        "spec": f"{{{CLAIMS}}}",
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
    monkeypatch.setattr(pod, "SAID", Remembered(pod_said._said))
    fresh = pod.facts(later, at(60))
    monkeypatch.setattr(pod, "SAID", Remembered(pod_said._said))
    pod.facts(read(), at(30))
    assert pod.facts(later, at(60)) == fresh


@pytest.mark.parametrize("bound", ["its node", "its node, behind the rest"])
def test_a_bound_pod_says_the_same_of_itself_and_is_not_read_again(
    bound: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pod, "SAID", Remembered(pod_said._said))
    before = pod.facts(read(), at(30))[-1]
    monkeypatch.setattr(pod_said, "_SPEC", None)
    after = pod.facts(read(*CHANGES[bound]), at(60))[-1]
    assert isinstance(before, Description)
    assert isinstance(after, Description)
    assert after.body == before.body
    assert msgspec.json.decode(after.body, type=Pod).labels == {"team": "red"}


def said(uid: str, spec: str, labels: str = "{}") -> pod_said.Said:
    written = msgspec.Raw(labels.encode()), *[msgspec.Raw()] * 3, msgspec.Raw(spec.encode())
    return pod_said.SAID.of(uid, None, *written)


@pytest.mark.parametrize(
    ("first", "then", "node"),
    [
        ('{"nodeName":"n1","priority":1}', '{"nodeName":"n2","priority":1}', "n2"),
        ('{"nodeName":"n1","priority":1}', '{"priority":1}', ""),
        ('{"nodeName":"n1","priority":1}', '{"nodeName":"n1","priority":2}', "n1"),
        (
            '{"nodeSelector":{"a":"b"},"nodeName":"n1"}',
            '{"nodeSelector":{"nodeName":"n1","a":"b"},"nodeName":"n1"}',
            "n1",
        ),
    ],
)
def test_what_a_bound_pod_asks_for_is_read_when_it_changes(first: str, then: str, node: str) -> None:
    said("changes", first)
    changed, fresh = said("changes", then), said("another", then)
    pod_said.SAID.forget("another")
    assert (changed.node, changed.body) == (node, fresh.body)


def test_a_bound_pod_of_which_a_label_changes_is_not_asked_again_what_it_wants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said("labelled", '{"priority":7}')
    monkeypatch.setattr(pod_said, "_SPEC", None)
    for label in ("red", "blue"):
        told = said("labelled", '{"priority":7,"nodeName":"n1"}', f'{{"team":"{label}"}}')
        body = msgspec.json.decode(told.body, type=Pod)
        assert (told.node, body.priority, body.labels) == ("n1", 7, {"team": label})
