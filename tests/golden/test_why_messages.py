"""
What schedulers say, read into reasons: every text of the samples, and every form of text in the recordings.

`messages.yaml` has the texts of the samples and of the grammars of all releases, with what they tell;
`recorded.yaml` one text of each form in the recordings. `make golden` writes what they are read as.
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analytics.why.messages import read
from store.embedded import Store
from tests.shared import shared

Json = dict[str, Any]
HERE = Path(__file__).parent / "why"
# Of these nobody can say why the workload waits: its pods are being deleted.
UNKNOWN = re.compile(r"skip schedule deleting pod: \S+$")
_UID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_CONDITIONS = ("QuotaReserved", "PodScheduled", "Unschedulable", "UnschedulableOnNodePool")
_EVENTS = ("Pending", "Inadmissible", "FailedScheduling", "Failed", "FailedCreate", "ErrWorkloadCompose",
           "Unschedulable", "PodGroupPending", "ImagePullBackOff")  # fmt: skip
# Most lines of a stream say nothing of this, and to read them takes long.
_MAY_WAIT = re.compile(
    r'"(?:Unschedulable|SchedulingGated|Schedulable|QuotaReserved|' + "|".join(_EVENTS) + r')"'
)
_TEXTS_IN_A_STORE = """
select distinct detail as said, reason
from transition
where state = 'False' and subject in ('QuotaReserved', 'PodScheduled') and detail != ''
union
select distinct note as said, reason
from event_sighting
where reason in (select unnest($events))
"""


def told(said: str, reason: str) -> Json:
    """What a text tells; `~` marks what a search may make more exact."""
    found = read(said, reason=reason)
    return {
        "reads": [f"{one.reason}{'~' * one.is_coarse}" for one in found],
        "evidence": {
            name: list(value) if isinstance(value, tuple) else value
            for one in found
            for name, value in one.evidence.items()
        },
    }


def cases(name: str) -> list[Json]:
    written: list[Json] = yaml.safe_load((HERE / name).read_text())
    return written


def form(said: str) -> str:
    """A text without its numbers and names: what is left is its grammar."""
    said = re.sub(r"pod set \w+", "pod set P", _UID.sub("U", said))
    said = re.sub(r"(Origin reason is|unschedulable, reason:|Pod|PodGroup|in pod) \S+", r"\1 P", said)
    said = re.sub(
        r"(?<=path: )[^\s;]+|(?<=to node )\S+|(?<=flavor )[^\s,]+|(?<=assigned to )[^\s,]+", "N", said
    )
    said = re.sub(r'pods "[^"]+"|(?<=deleting pod: )\S+|\'[^\']+\' group', "P", said)
    return re.sub(r"\d+", "#", said)


def sampled() -> Iterator[tuple[str, str]]:
    """Every text of the samples that says why something waits, with its machine-readable reason."""
    folder = shared("reference/samples")
    for line in (folder / "failed_scheduling_messages.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            yield line, ""
    for file in sorted(folder.glob("*.json")):
        try:
            written = json.loads(file.read_text())
        except json.JSONDecodeError:
            continue
        if isinstance(written, dict):
            yield from texts_of(written)


def texts_of(written: Json) -> Iterator[tuple[str, str]]:
    """The texts of one object: of its conditions, or of an Event its own."""
    status = written.get("status") or {}
    if not isinstance(status, dict):
        return
    for one in [*(status.get("conditions") or ()), *(status.get("schedulingConditions") or ())]:
        waits = one.get("status") == ("False" if one.get("type") in _CONDITIONS[:2] else "True")
        if one.get("type") in _CONDITIONS and waits and one.get("message"):
            yield one["message"], one.get("reason") or ""
    if written.get("reason") in _EVENTS and (note := written.get("message") or written.get("note")):
        yield note, written["reason"]


def recorded(name: str) -> Iterator[tuple[str, str]]:
    """The texts of a small recording, from its bytes."""
    for kind in ("core-events", "pods", "workloads", "podgroups"):
        for file in shared(f"data/recorded/{name}").glob(f"{kind}.watch.ndjson.gz"):
            with gzip.open(file, "rt") as lines:
                for line in filter(_MAY_WAIT.search, lines):
                    written = json.loads(line)["object"]
                    if written.get("kind") != "Status" and "conditions" not in written:
                        yield from texts_of(written)


def keep(name: str, written: Iterable[Json]) -> None:
    text = yaml.safe_dump(list(written), sort_keys=False, allow_unicode=True, width=110)
    (HERE / name).write_text(text)


def test_messages_are_read_as_written(*, golden_rewrite: bool) -> None:
    if golden_rewrite:
        listed = [(one["said"], one["reason"]) for one in cases("messages.yaml")]
        texts = dict.fromkeys([*listed, *sampled()])
        keep("messages.yaml", [{"said": s, "reason": r, **told(s, r)} for s, r in texts])
    known = cases("messages.yaml")
    wrong = [one for one in known if one != {**one, **told(one["said"], one["reason"])}]
    assert not wrong
    unread = [one["said"] for one in known if one["reads"] == ["UNKNOWN"] and not UNKNOWN.match(one["said"])]
    assert not unread


def test_every_text_of_the_samples_is_among_them() -> None:
    known = {(one["said"], one["reason"]) for one in cases("messages.yaml")}
    assert [said for said in sampled() if said not in known] == []


def check_forms(texts: Iterable[tuple[str, str]], *, rewrite: bool) -> None:
    known = {one["form"]: one for one in cases("recorded.yaml")}
    found: dict[str, tuple[str, str]] = {}
    for said, reason in texts:
        found.setdefault(form(said), (said, reason))
    if rewrite:
        for each, (said, reason) in found.items():
            known.setdefault(each, {"form": each, "said": said, "reason": reason})["reads"] = told(
                said, reason
            )["reads"]
        keep("recorded.yaml", sorted(known.values(), key=lambda one: one["form"]))
    assert [each for each in found if each not in known] == []
    wrong = {
        each: (reads, known[each]["reads"])
        for each, (said, reason) in found.items()
        if (reads := told(said, reason)["reads"]) != known[each]["reads"]
    }
    assert not wrong
    unread = [said for each, (said, _) in found.items() if known[each]["reads"] == ["UNKNOWN"]]
    assert [said for said in unread if not UNKNOWN.match(said)] == []


@pytest.mark.recordings
@pytest.mark.parametrize("name", ["native", "kueue", "volcano"])
def test_every_text_of_a_recording_has_a_reason(name: str, *, golden_rewrite: bool) -> None:
    check_forms(recorded(name), rewrite=golden_rewrite)


def texts_in(store: Store) -> list[tuple[str, str]]:
    """The texts of a store that holds a recording; for the recording that is imported once in a run."""
    rows = store.rows(_TEXTS_IN_A_STORE, {"events": list(_EVENTS)})
    return sorted((str(row["said"]), str(row["reason"])) for row in rows)
