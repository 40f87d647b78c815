"""
Read one live cluster: a thread for each kind, one intake for all, a commit every 200 ms.

Rows wait in the intake until they are committed together with the positions they stand for. The
intake commits by itself when it is full, in the reader that filled it: a slow store slows the
watches down.
"""

import random
import threading
from collections.abc import Callable, Sequence
from time import monotonic

import msgspec

from collector.decoding import UNREADABLE
from collector.kube.client import Connection
from collector.kube.watch import KindReader
from collector.kube.watch_steps import Outcome, Pace, delay_seconds
from collector.shared_intake import SharedIntake, TakesIn
from collector.translator import Translator
from domain.errors import UnreachableError
from domain.facts import ObjectKind
from domain.window import Clock

# A reader that waits for the head of an answer cannot be woken; it holds nothing, so we leave it.
_JOIN_SECONDS = 2.0
_LOOK_SECONDS = 0.2
_IDENTITY_PATH = "/api/v1/namespaces/kube-system"
_OK = 200
_REFUSED = (403, 404)
_NOT_TO_BE_READ = Outcome.NOT_INSTALLED


class _Metadata(msgspec.Struct, gc=False):
    uid: str = ""


class _Namespace(msgspec.Struct, gc=False):
    metadata: _Metadata


def run_cluster(  # noqa: PLR0913 - everything that it uses is given to it
    cluster: str,
    *,
    connection: Connection,
    intake: TakesIn | SharedIntake,
    translators: Sequence[Translator],
    clock: Clock,
    stop: threading.Event,
    pace: Pace | None = None,
    draw: Callable[[], float] = random.random,
    meet: Callable[[str], str] = lambda _: "",
) -> None:
    """
    Read every kind of one cluster into the intake until `stop` is set; then close the connection.

    A kind that cannot be read says why in its mark and is tried again; the others go on.

    Args:
        cluster: its name in the settings, for the names of threads.
        connection: nobody else may use it: closing it is how readers are woken.
        intake: of this cluster.
        translators: the kinds. Of two for one kind (Events have two views) the first is read.
        clock: stamps what is seen.
        stop: ends the reading within a second or two.
        pace: of the reading.
        draw: random numbers in [0, 1), for delays.
        meet: told the uid of its namespace kube-system, "" where the account may not see it, before anything
            is read; gives why the cluster must not be read, and is asked again later.

    Raises:
        ProductError: the store refused a batch; nothing is read any more. Make a new intake from
            what the store knows, and a new connection, and call again.
    """
    pace = pace or Pace()
    shared = intake if isinstance(intake, SharedIntake) else SharedIntake(intake)
    crew = _Crew(cluster, stop)
    readers = {
        translator.kind: KindReader(
            translator,
            connection=connection,
            intake=shared,
            clock=clock,
            stop=stop,
            pace=pace,
            draw=draw,
        )
        for translator in reversed(translators)
    }

    def trouble(because: str) -> None:
        for translator in translators:
            shared.troubled(translator, because, clock.now_ms())
        shared.flush()

    try:
        failures, told = 0, ""
        while not stop.is_set() and (because := crew.ask(lambda: _identify(connection, shared, pace, meet))):
            failures += 1
            # Each try that failed is counted; that it must not be read is said once.
            if because != told or not because.startswith(_NOT_TO_BE_READ):
                trouble(because)
            told = because
            stop.wait(delay_seconds(failures, pace, draw=draw()))
        for kind, reader in readers.items():
            crew.start(kind, reader)
        while not stop.wait(pace.flush_seconds):
            for reader in readers.values():
                reader.settle()
            shared.flush()
    finally:
        stop.set()
        connection.close()
        crew.join()
    crew.raise_crash()
    shared.flush()


def _identify(connection: Connection, shared: SharedIntake, pace: Pace, meet: Callable[[str], str]) -> str:
    """
    Tell the intake which cluster this is, before anything of it is read; gives what hindered.

    An account that may not see the namespace kube-system reads on without: a cluster that was
    made anew is then known by its versions only.
    """
    try:
        uid = uid_of_cluster(connection, read_seconds=pace.request_seconds)
    except (UnreachableError, *UNREADABLE) as cause:
        return f"retry: {cause}"
    if against := meet(uid):
        # Nothing is missing: its objects are read elsewhere.
        return f"{_NOT_TO_BE_READ}: {against}"
    if uid:
        shared.identify(uid)
    return ""


def uid_of_cluster(connection: Connection, *, read_seconds: float) -> str:
    """
    Which cluster this is: the uid of its namespace kube-system; "" for an account that may not see it.

    Raises:
        UnreachableError: nobody answers, or answers otherwise.
        msgspec.MsgspecError: the answer is no namespace.
    """
    answer = connection.get(_IDENTITY_PATH, {}, read_seconds=read_seconds)
    if answer.status == _OK:
        return msgspec.json.decode(answer.body, type=_Namespace).metadata.uid
    if answer.status in _REFUSED:
        return ""
    message = f"GET {_IDENTITY_PATH}: the API server answered {answer.status}"
    raise UnreachableError(message)


class _Crew:
    """The readers' threads. The first that crashes ends the others, and its error is raised again."""

    def __init__(self, cluster: str, stop: threading.Event) -> None:
        self._cluster = cluster
        self._stop = stop
        self._threads: list[threading.Thread] = []
        self._crash: BaseException | None = None

    def start(self, kind: ObjectKind, reader: KindReader) -> None:
        thread = threading.Thread(
            target=self._run, args=(reader,), name=f"{self._cluster}/{kind}", daemon=True
        )
        self._threads.append(thread)
        thread.start()

    def ask(self, question: Callable[[], str]) -> str:
        """The answer to a question that cannot be woken; empty when we are told to stop meanwhile."""
        answers: list[str] = []
        answered = threading.Event()

        def run() -> None:
            try:
                answers.append(question())
            except BaseException as error:  # noqa: BLE001 - it crosses to the thread that waits for it
                self._crash = self._crash or error
                self._stop.set()
            finally:
                answered.set()

        threading.Thread(target=run, name=f"{self._cluster}/identity", daemon=True).start()
        while not answered.wait(_LOOK_SECONDS) and not self._stop.is_set():
            pass
        return answers[0] if answers else ""

    def join(self) -> None:
        give_up = monotonic() + _JOIN_SECONDS
        for thread in self._threads:
            thread.join(max(0.0, give_up - monotonic()))

    def raise_crash(self) -> None:
        if self._crash is not None:
            raise self._crash

    def _run(self, reader: KindReader) -> None:
        try:
            reader.run()
        except BaseException as error:  # noqa: BLE001 - it crosses to the thread that waits for it
            self._crash = self._crash or error
            self._stop.set()
