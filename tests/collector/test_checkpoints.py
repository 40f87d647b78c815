"""Checkpoints of annotations: which stamps are believed, and how often one that is not is told of."""

import pytest

from collector.checkpoints import ANNOTATION, BEFORE_THE_START, OF_THE_FUTURE, UNREADABLE_STAMP
from collector.intake import Intake
from collector.translator import find
from domain.facts import Known, Moment
from domain.window import parse_instant
from tests.fakes import MemorySink

SEEN_MS = parse_instant("2026-05-04T10:00:00Z")
OTHER = "ml.example/saved-at"


def seen(*written: str, key: str = ANNOTATION, keys: tuple[str, ...] = (ANNOTATION,)) -> MemorySink:
    """A JobSet, created at 9:00 and seen each minute from 10:00 on with another annotation."""
    translator = find("jobset.x-k8s.io", "JobSet")
    assert translator is not None
    sink = MemorySink()
    intake = Intake("c", sink, Known(), checkpoint_keys=keys)
    for minute, text in enumerate(written):
        metadata = {
            "uid": "j", "name": "j", "namespace": "n", "resourceVersion": str(minute + 1),
            "creationTimestamp": "2026-05-04T09:00:00Z", "annotations": {key: text},
        }  # fmt: skip
        intake.see(translator, "MODIFIED", {"metadata": metadata}, SEEN_MS + 60_000 * minute)
    intake.flush()
    return sink


def saved(sink: MemorySink) -> list[tuple[int, str]]:
    return [(one.at_ms, one.subject) for one in sink.transitions if one.moment is Moment.CHECKPOINT]


def counted(sink: MemorySink) -> dict[str, int]:
    return {one.because: one.count for one in sink.set_aside}


def test_an_object_of_any_kind_tells_each_checkpoint_once() -> None:
    sink = seen("2026-05-04T09:30:00Z", "2026-05-04T09:30:00Z", "2026-05-04T09:58:00Z")
    assert saved(sink) == [
        (parse_instant("2026-05-04T09:30:00Z"), ""),
        (parse_instant("2026-05-04T09:58:00Z"), ""),
    ]
    assert counted(sink) == {}


def test_another_key_counts_where_the_settings_name_it() -> None:
    assert saved(seen("2026-05-04T09:30:00Z", key=OTHER)) == []
    told = seen("2026-05-04T09:30:00Z", key=OTHER, keys=(ANNOTATION, OTHER))
    assert saved(told) == [(parse_instant("2026-05-04T09:30:00Z"), OTHER)]


@pytest.mark.parametrize(
    ("text", "because"),
    [
        ("five minutes ago", UNREADABLE_STAMP),
        ("2026-05-04T08:58:59Z", BEFORE_THE_START),
        ("2026-05-04T10:01:01Z", OF_THE_FUTURE),
    ],
)
def test_a_wrong_stamp_is_counted_once_and_does_not_come_true(text: str, because: str) -> None:
    sink = seen(text, text, text)
    assert saved(sink) == []
    assert counted(sink) == {because: 1}


@pytest.mark.parametrize("text", ["2026-05-04T08:59:00Z", "2026-05-04T10:01:00Z"])
def test_a_minute_of_skew_is_tolerated(text: str) -> None:
    assert saved(seen(text)) == [(parse_instant(text), "")]
