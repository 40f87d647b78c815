"""The collectors of a running service: one for each cluster, from the API server into the store."""

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial

from collector import checkpoints
from collector.decoding import Payload
from collector.intake import Intake
from collector.journal import Journal, JournaledIntake
from collector.kube.client import Connection
from collector.live import run_cluster
from collector.shared_intake import SharedIntake, TakesIn
from collector.translator import TRANSLATORS
from domain.errors import ProductError, SettingsError, StoreBrokenError, UnreachableError
from domain.window import MS_PER_HOUR, Clock, SystemClock, format_instant
from service.alarms import Alarms
from service.forgotten import Forgotten
from service.identity import TWICE, Identities, names_by_uid, of_settings, of_the_past, told_twice
from service.patience import PatientSink, Room
from service.recovery import journal_folder
from service.settings import ClusterSettings, Settings
from store.embedded import Store
from store.limits import size_bytes

log = logging.getLogger("gpuledger.collecting")
# A watch can be replayed for minutes, as far back as its API server keeps changes.
_GONE_KEPT_MS = 2 * MS_PER_HOUR
_AGAIN_SECONDS = 1.0


@dataclass(slots=True)
class _Running:
    """The collectors between a start and a stop; each has an event that ends it."""

    told_to_stop: bool = False
    stops: list[threading.Event] = field(default_factory=list)
    threads: list[threading.Thread] = field(default_factory=list)
    connections: dict[str, Connection] = field(default_factory=dict)
    intakes: dict[str, SharedIntake] = field(default_factory=dict)

    def new_stop(self) -> threading.Event:
        stop = threading.Event()
        self.stops.append(stop)
        return stop


class Collectors:
    """
    Reads the clusters of the settings while it is started; may be stopped and started again.

    `room` is what is left on the disk, for whoever else writes there.

    Args:
        settings: the clusters, and what is kept.
        store: takes the facts.
        alarms: told of a full disk, and of credentials that end.
        forgotten: names that stay out of the store.
        failed: told why a collector cannot go on.
        clock: stamps what is seen; by default the machine's.
    """

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        alarms: Alarms,
        forgotten: Forgotten,
        failed: Callable[[ProductError], None],
        clock: Clock | None = None,
    ) -> None:
        self._settings = settings
        self._store = store
        self._alarms = alarms
        self._forgotten = forgotten
        self._failed = failed
        self._clock = clock or SystemClock()
        self.room = Room(settings.store.data_dir, size_bytes(settings.keeping.min_free))
        self._running = _Running()
        names = [cluster.name for cluster in settings.clusters]
        self._identities = Identities(names, names_by_uid(store.marks()))

    def start(self) -> None:
        """
        Read every cluster, each in a thread.

        Raises:
            SettingsError: a kubeconfig is wrong.
        """
        self._running = running = _Running()
        for cluster in self._settings.clusters:
            stop = running.new_stop()
            self._open(cluster, running, stop)
            self._read(cluster, running, stop)

    def _resume(self) -> None:
        """As `start`; what cannot be opened now, for example because the disk is full, is tried again."""
        self._running = running = _Running()
        for cluster in self._settings.clusters:
            self._read(cluster, running, running.new_stop())

    def stop(self) -> None:
        """Commit what was read, and read no more; stopping twice does nothing."""
        self._running.told_to_stop = True
        for stop in self._running.stops:
            stop.set()
        for thread in self._running.threads:
            thread.join()
        self._running.threads.clear()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Read nothing meanwhile; then go on from what the store holds."""
        were_running = bool(self._running.threads)
        self.stop()
        try:
            yield
        finally:
            if were_running:
                self._resume()

    def tell(self, cluster: str, payload: Payload, observed_ms: int) -> None:
        """
        Take in a checkpoint that a job or a metric tells of; returns when it is committed.

        Raises:
            UnreachableError: nothing is kept just now.
        """
        intake = self._running.intakes.get(cluster)
        because = self._alarms.why_not_ready()
        if intake is None or self._running.told_to_stop or because:
            message = f"cluster {cluster} is not read just now ({because or 'reading pauses'}); tell it again"
            raise UnreachableError(message)
        try:
            intake.tell(checkpoints.TRANSLATOR, payload, observed_ms)
        except ProductError as cause:
            message = f"cluster {cluster}: not kept, tell it again: {cause}"
            raise UnreachableError(message) from cause

    def check_credentials(self, now_ms: int) -> None:
        """Let an alarm sound for each cluster whose credentials were not renewed in time."""
        # A copy: after a pause clusters are opened, each in its thread.
        for name, connection in list(self._running.connections.items()):
            lives = [*connection.lifetimes(), *connection.server_lifetimes()]
            ends = [life for life in lives if life.is_near_its_end(now_ms)]
            if not ends:
                self._alarms.end(f"credentials_end/{name}")
                continue
            first = min(ends, key=lambda life: life.end_ms)
            self._alarms.sound(
                f"credentials_end/{name}",
                f"cluster {name}: the {first.what} ends at {format_instant(first.end_ms)} and was not "
                "renewed; renew it, and reading goes on by itself",
            )

    def connect(self, name: str) -> Connection:
        """
        A further connection to a cluster of the settings, for whoever asks it something else.

        Raises:
            SettingsError: there is no such cluster, or its kubeconfig is wrong.
        """
        for cluster in self._settings.clusters:
            if cluster.name == name:
                return Connection.open(kubeconfig=cluster.kubeconfig, context=cluster.context)
        known = ", ".join(cluster.name for cluster in self._settings.clusters) or "none"
        message = (
            f"gpu_metrics.cluster = {name!r}: expected one of clusters ({known}) to discover exporters in"
        )
        raise SettingsError(message)

    def _open(self, cluster: ClusterSettings, running: _Running, stop: threading.Event) -> None:
        running.connections[cluster.name] = self.connect(cluster.name)
        running.intakes[cluster.name] = SharedIntake(self._intake(cluster.name, stop))

    def _open_patiently(self, cluster: ClusterSettings, running: _Running, stop: threading.Event) -> None:
        """Open it, as often as it takes; returns when it is open, or when we are told to stop."""
        alarm = f"not_resumed/{cluster.name}"
        while cluster.name not in running.intakes and not stop.is_set():
            try:
                self._open(cluster, running, stop)
            except (ProductError, OSError) as cause:
                because = f"cluster {cluster.name} is not read yet after a pause, trying again: {cause}"
                self._alarms.sound(alarm, because, stops_reading=True)
                if isinstance(cause, StoreBrokenError):
                    with suppress(ProductError):
                        self._store.reopen()
                stop.wait(_AGAIN_SECONDS)
        self._alarms.end(alarm)

    def _read(self, cluster: ClusterSettings, running: _Running, stop: threading.Event) -> None:
        """Read a cluster in a thread."""

        def run() -> None:
            try:
                self._open_patiently(cluster, running, stop)
                if stop.is_set():
                    return
                run_cluster(
                    cluster.name,
                    connection=running.connections[cluster.name],
                    intake=running.intakes[cluster.name],
                    translators=TRANSLATORS,
                    clock=self._clock,
                    stop=stop,
                    meet=partial(self._meet, cluster.name),
                )
            except Exception as error:
                if running.told_to_stop:
                    log.warning("collector of %s stopped: %s", cluster.name, error)
                    return
                # Nobody else would notice: the others go on, and what was read looks like all there is.
                log.exception("collector stopped", extra={"cluster": cluster.name})
                self._failed(error if isinstance(error, ProductError) else _defect(cluster.name, error))

        thread = threading.Thread(target=run, name=f"collector/{cluster.name}")
        running.threads.append(thread)
        thread.start()

    def _meet(self, name: str, uid: str) -> str:
        """Why a cluster is not read under this name; an alarm tells of one that has two."""
        other = self._identities.meet(name, uid)
        named = {cluster.name for cluster in self._settings.clusters}
        earlier = [one for one in names_by_uid(self._store.marks()).get(uid, ()) if one not in named]
        against = told = ""
        if other:
            told = against = (
                f"cluster {told_twice(name, other)}; it is not read again: {of_settings(name, other)}"
            )
        elif earlier:
            told = f"cluster {told_twice(name, earlier[0])}, and counts twice: {of_the_past(earlier[0])}"
        if told:
            self._alarms.sound(f"{TWICE}/{name}", told)
        else:
            self._alarms.end(f"{TWICE}/{name}")
        return against

    def _intake(self, cluster: str, stop: threading.Event) -> TakesIn:
        size = self._settings.keeping.journal_size
        known = self._store.known(cluster, gone_within_ms=_GONE_KEPT_MS)
        journal = None
        if size is not None:
            journal = Journal(
                journal_folder(self._settings, cluster),
                most_bytes=size_bytes(size),
                rewrite=self._forgotten.clean,
                marks=known.marks,
            )
        sink = PatientSink(
            self._store,
            room=self.room,
            alarms=self._alarms,
            stop=stop,
            forgotten=self._forgotten,
            before=(lambda: None) if journal is None else journal.commit,
        )
        keys = self._settings.checkpoints.keys
        intake = Intake(cluster, sink, known, checkpoint_keys=keys, forget_after_ms=_GONE_KEPT_MS, live=True)
        return intake if journal is None else JournaledIntake(intake, journal)


def _defect(cluster: str, cause: Exception) -> ProductError:
    message = (
        f"cluster {cluster}: reading ended by a fault of ours, {type(cause).__name__}: {cause}; start again,"
        " and report the log"
    )
    error = ProductError(message)
    error.__cause__ = cause
    return error
