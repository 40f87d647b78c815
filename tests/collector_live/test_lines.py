"""A line of a watch is read in one step as API servers write it, and as well when it is written otherwise."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import pytest

from collector.intake import Intake
from collector.kube.client import Connection
from collector.kube.watch import KindReader
from collector.kube.watch_steps import Answered, Outcome, Pace, Place
from collector.shared_intake import SharedIntake
from collector.translator import find
from domain.facts import Known
from domain.window import FixedClock
from tests.collector_live.running import START_MS, pod
from tests.fakes import MemorySink

OBJECT = json.dumps(pod("u1", node="n1"), separators=(",", ":")).replace(
    '"metadata":{', '"metadata":{"resourceVersion":"7",'
)


@dataclass(slots=True)
class Lines:
    """A connection whose watch gives these lines and ends."""

    lines: list[bytes]
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)

    def stream(self, *_: object, **__: object) -> "Lines":
        return self

    def release(self, stream: "Lines") -> None:
        """Nothing is held."""

    def __iter__(self) -> Iterator[bytes]:
        return iter(self.lines)


def watched(line: str) -> tuple[Answered, MemorySink]:
    translator, sink = find("", "Pod"), MemorySink()
    assert translator is not None
    intake = SharedIntake(Intake("north", sink, Known()))
    reader = KindReader(
        translator,
        connection=cast("Connection", Lines([line.encode()])),
        intake=intake,
        clock=FixedClock(START_MS),
        stop=threading.Event(),
        pace=Pace(),
    )
    answered = reader.watch(Place(resource_version="5"))
    intake.flush()
    return answered, sink


PLAIN = f'{{"type":"ADDED","object":{OBJECT}}}'


@pytest.mark.parametrize(
    "line",
    [
        f'{{"type": "ADDED", "object": {OBJECT}}} ',
        f'{{"object":{OBJECT},"type":"ADDED"}}',
        f'{{"since":1,"type":"ADDED","object":{OBJECT}}}',
        f'{{"type":"\\u0041DDED","object":{OBJECT}}}',
    ],
)
def test_a_line_that_is_written_otherwise_gives_the_same_facts(line: str) -> None:
    answered, sink = watched(line)
    plain, expected = watched(PLAIN)
    assert (answered, sink.transitions, sink.descriptions) == (
        plain,
        expected.transitions,
        expected.descriptions,
    )
    assert (answered.outcome, answered.resource_version, len(sink.transitions)) == (Outcome.CLOSED, "7", 2)


def test_a_member_after_the_object_is_no_part_of_it_and_a_new_list_is_asked_for() -> None:
    answered, sink = watched(f'{{"type":"ADDED","object":{OBJECT},"since":1}}')
    assert (answered.outcome, sink.transitions) == (Outcome.LOST, [])


def test_an_object_that_cannot_be_read_is_set_aside_with_its_own_beginning() -> None:
    answered, sink = watched(PLAIN.replace('"spec":{', '"status":[],"spec":{'))
    assert (answered.outcome, answered.resource_version) == (Outcome.CLOSED, "7")
    (aside,) = sink.set_aside
    assert OBJECT.startswith(aside.sample[:40])
