"""
Schedules of trouble: a recorded cluster is read while its API server misbehaves at random.

A schedule moves a recording on in steps. All lines of a step are received at one instant, with
trouble or without, so what is read must not depend on the trouble: lines come late, in pieces,
twice, after a silence, and lists are asked for in between.
"""

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

import msgspec
from kubernetes.client import Configuration

from collector.intake import Intake
from collector.kube.client import Connection
from collector.kube.watch_steps import Pace
from collector.live import run_cluster
from domain.facts import Batch
from tests.collector_live.running import HandClock, until
from tests.fake_etcd import Body, Canned, status_body
from tests.fakes import MemorySink
from tests.recorded_cluster import RecordedCluster, RecordedKind, recorded, recorded_gap

STEPS = 8
PLAYED = 2
# The product's own pace, several hundred times as fast: a schedule takes a part of a second.
SCALED = Pace(
    watch_seconds=0,
    silence_seconds=0.25,
    bookmark_seconds=0.25,
    first_delay_seconds=0.001,
    longest_delay_seconds=0.01,
    longest_wish_seconds=0.01,
    probe_seconds=0.01,
    flush_seconds=0.02,
)


@dataclass(frozen=True, slots=True)
class Scene:
    """A part of a recording: what was there at its begin is listed, what came then is watched."""

    name: str
    first: int

    def instants(self) -> tuple[int, ...]:
        """When the list and the lines of each step are received."""
        return _steps(self.name)[self.first : self.first + PLAYED + 1]


SCENES = [
    Scene(name, first) for name in ("native", "kueue", "volcano") for first in range(STEPS - PLAYED + 1)
]


@cache
def _steps(name: str) -> tuple[int, ...]:
    """Instants that cut the lines of a recording into parts of one length."""
    stamps = sorted(line.at_ms for kind in recorded(name) for line in kind.lines)
    return (stamps[0] - 1, *(stamps[len(stamps) * step // STEPS - 1] for step in range(1, STEPS + 1)))


def undisturbed(scene: Scene) -> Batch:
    """What an intake takes from the recording itself, step by step, without any server."""
    sink = MemorySink()
    intake = Intake("c", sink, sink.known("c"))
    begin_ms, *later = scene.instants()
    with RecordedCluster(recorded(scene.name)) as cluster:
        for kind in recorded(scene.name):
            cluster.let_out(kind.path, begin_ms)
            items, version = cluster.items(kind.path), cluster.newest(kind.path)
            intake.relisted(kind.translator, items, version, begin_ms)
    for at_ms in later:
        for kind in recorded(scene.name):
            for line in kind.lines:
                if begin_ms < line.at_ms <= at_ms:
                    intake.see_line(kind.translator, line.line, at_ms)
        begin_ms = at_ms
    intake.flush()
    return batch_of(sink)


def batch_of(sink: MemorySink) -> Batch:
    """All that a sink was given, as one batch."""
    return Batch(
        cluster="c",
        transitions=sink.transitions,
        descriptions=sink.descriptions,
        events=sink.events,
        objects=sink.objects,
        marks=sink.marks,
        set_aside=sink.set_aside,
    )


@dataclass(slots=True)
class Play:
    """A schedule in progress."""

    cluster: RecordedCluster
    intake: Intake
    clock: HandClock
    kinds: tuple[RecordedKind, ...]
    chance: random.Random
    counted: dict[str, int]
    watches_due: dict[str, int]

    def run(self, scene: Scene, *, troubles_per_step: int) -> None:
        """Let the scene out, with trouble in each step."""
        _, *later = scene.instants()
        self.settle()
        for at_ms in later:
            self.clock.at_ms = at_ms
            for _ in range(troubles_per_step):
                self._let_some_out(at_ms)
                self._do(self.chance.choice(HARMLESS), self._busy_path())
            for kind in self.kinds:
                self.cluster.let_out(kind.path, at_ms)
            self.settle()
            for kind in self.kinds:
                self.cluster.slow_down(kind.path, slow=False)
            # From here on nothing is on its way, so that a list hides no step between two.
            for _ in range(troubles_per_step):
                self._do(self.chance.choice(LISTING), self._busy_path())
            self.settle()

    def settle(self) -> None:
        """Wait until every kind was read up to what was let out, by a watch that still follows."""
        until(lambda: all(self._is_settled(kind) for kind in self.kinds), pause=0.001)

    def end_watch(self, path: str, how: Callable[[str], None]) -> None:
        """End the open watches of a kind; another one is due."""
        with self.cluster.changed:
            self.watches_due[path] = self.cluster.opened(path) + 1
            how(path)

    def _do(self, trouble: "Trouble", path: str) -> None:
        self.counted[trouble.__name__] = self.counted.get(trouble.__name__, 0) + 1
        trouble(self, path)

    def _let_some_out(self, at_ms: int) -> None:
        for kind in self.kinds:
            self.cluster.let_out(kind.path, at_ms, most=self.chance.randrange(60))

    def _busy_path(self) -> str:
        """Kinds with many lines have more trouble."""
        return self.chance.choices(
            [kind.path for kind in self.kinds], [10 + len(kind.lines) for kind in self.kinds]
        )[0]

    def _is_settled(self, kind: RecordedKind) -> bool:
        position = self.intake._positions.of(kind.translator.kind).resource_version
        return (
            position == self.cluster.newest(kind.path)
            and self.cluster.opened(kind.path) >= self.watches_due.get(kind.path, 1)
            and not self.cluster.has_canned(kind.path)
        )


Trouble = Callable[[Play, str], None]


# ------------------------------------------------------------ trouble that loses the reader no place


def closes_in_good_order(play: Play, path: str) -> None:
    play.end_watch(path, play.cluster.close_watches)


def cuts_a_line(play: Play, path: str) -> None:
    play.end_watch(path, play.cluster.cut_watches)


def repeats_the_history(play: Play, path: str) -> None:
    play.cluster.replay_on_reconnect(path)
    play.end_watch(path, play.cluster.close_watches)


def falls_silent(play: Play, path: str) -> None:
    play.cluster.silence(path)
    play.cluster.let_out(path, play.clock.at_ms, most=play.chance.randrange(30))
    opened = play.cluster.opened(path)
    until(lambda: play.cluster.opened(path) > opened, pause=0.001)
    play.cluster.silence(path, silent=False)


def becomes_slow(play: Play, path: str) -> None:
    play.cluster.slow_down(path)


def is_busy(play: Play, path: str) -> None:
    status, reason = play.chance.choice(
        [(429, "TooManyRequests"), (503, "ServiceUnavailable"), (500, "InternalError"), (401, "Unauthorized")]
    )
    body = status_body(status, reason)
    with play.cluster.changed:
        play.cluster.answer_next_with(path, Canned(status, body, {"Retry-After": "7"}, watch=True))
        play.end_watch(path, play.cluster.close_watches)


HARMLESS: tuple[Trouble, ...] = (
    closes_in_good_order,
    cuts_a_line,
    repeats_the_history,
    falls_silent,
    becomes_slow,
    is_busy,
)


# ------------------------------------------------------------ trouble that a list has to mend


def says_410_in_a_line(play: Play, path: str) -> None:
    line = recorded_gap()[play.chance.choice(["resume pods", "resume core-events"])]
    _ends_a_watch(play, path, line=bytes(line))


def answers_410_as_a_line(play: Play, path: str) -> None:
    _answers_watch(play, path, 200, recorded_gap()["watch rv=1 core-events"])


def answers_410_as_a_status(play: Play, path: str) -> None:
    _answers_watch(play, path, 410, recorded_gap()["list exact rv=1"])


def says_that_we_are_ahead(play: Play, path: str) -> None:
    _answers_watch(play, path, 504, recorded_gap()["list future rv"])


def fails_inside(play: Play, path: str) -> None:
    error = {"type": "ERROR", "object": status_body(500, "InternalError")}
    _ends_a_watch(play, path, line=msgspec.json.encode(error) + b"\n")


def sends_a_broken_line(play: Play, path: str) -> None:
    _ends_a_watch(play, path, line=b'{"type":"MODIFIED","obj\n')


def sends_an_old_bookmark(play: Play, path: str) -> None:
    line = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"1"}}}\n'
    _ends_a_watch(play, path, line=line)


def is_not_there_for_a_moment(play: Play, path: str) -> None:
    _answers_watch(play, path, 404, status_body(404, "NotFound"))


def lists_in_pages_whose_tokens_expire(play: Play, path: str) -> None:
    play.cluster.page_limit = play.chance.randint(1, 9)
    play.cluster.expired_tokens = play.chance.randrange(4)
    says_410_in_a_line(play, path)


def cuts_the_list(play: Play, path: str) -> None:
    play.cluster.cut_next_lists(path, play.chance.randint(1, 3))
    says_410_in_a_line(play, path)


def refuses_the_list(play: Play, path: str) -> None:
    status, reason = play.chance.choice(
        [(429, "TooManyRequests"), (503, "ServiceUnavailable"), (403, "Forbidden"), (401, "Unauthorized")]
    )
    body = status_body(status, reason)
    play.cluster.answer_next_with(path, Canned(status, body, {"Retry-After": "7"}, watch=False))
    says_410_in_a_line(play, path)


def gives_no_list(play: Play, path: str) -> None:
    body: Body = play.chance.choice(
        [status_body(500, "InternalError"), {"kind": "PodList", "metadata": {}, "items": []}, {}]
    )
    play.cluster.answer_next_with(path, Canned(200, body, {}, watch=False))
    says_410_in_a_line(play, path)


def _ends_a_watch(play: Play, path: str, *, line: bytes) -> None:
    """The next watch repeats some lines and ends with this one."""
    repeated = play.cluster.last_lines(path, play.chance.randrange(4))
    _answers_watch(play, path, 200, msgspec.Raw(repeated + line))


def _answers_watch(play: Play, path: str, status: int, body: Body) -> None:
    with play.cluster.changed:
        play.cluster.answer_next_with(path, Canned(status, body, {}, watch=True))
        play.end_watch(path, play.cluster.close_watches)


LISTING: tuple[Trouble, ...] = (
    says_410_in_a_line,
    answers_410_as_a_line,
    answers_410_as_a_status,
    says_that_we_are_ahead,
    fails_inside,
    sends_a_broken_line,
    sends_an_old_bookmark,
    is_not_there_for_a_moment,
    lists_in_pages_whose_tokens_expire,
    cuts_the_list,
    refuses_the_list,
    gives_no_list,
)


# ------------------------------------------------------------ the reading


@contextmanager
def playing(scene: Scene, seed: int) -> Iterator[tuple[Play, MemorySink]]:
    """A reading of the scene in a thread; an error of it fails the test."""
    kinds, sink, clock = recorded(scene.name), MemorySink(), HandClock()
    clock.at_ms = scene.instants()[0]
    intake = Intake("c", sink, sink.known("c"))
    stop = threading.Event()
    errors: list[BaseException] = []
    with RecordedCluster(kinds) as cluster:
        for kind in kinds:
            cluster.let_out(kind.path, clock.at_ms)

        def run() -> None:
            try:
                run_cluster(
                    "c",
                    connection=Connection(Configuration(host=cluster.url)),
                    intake=intake,
                    translators=[kind.translator for kind in kinds],
                    clock=clock,
                    stop=stop,
                    pace=SCALED,
                )
            except BaseException as error:  # noqa: BLE001 - the test's thread asks for it
                errors.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield Play(cluster, intake, clock, kinds, random.Random(seed), {}, {}), sink
        finally:
            stop.set()
            thread.join(10)
    assert not thread.is_alive()
    assert errors == []
