"""The running service: collectors, measurement tick and API around one open store."""

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from types import TracebackType
from typing import Self

from alerts.exporter import Exporter, Outside
from alerts.wording import Links
from analytics.metrics import REGISTRY
from api.app import Api, create_app
from api.server import Server
from collector.decoding import Payload
from domain.errors import ProductError, StoreBrokenError, UnreachableError
from domain.metric import Measurement
from domain.window import Clock, SystemClock
from service import left_out, orders, running, sources
from service.alarms import Alarms
from service.alerting import Alerting
from service.answers import Answers
from service.books import books_of
from service.checkpoint_metrics import CheckpointPoller, checkpoint_pollers
from service.checkpoints import Checkpoints
from service.clocks import clock_of
from service.close_orders import CloseOrders
from service.collecting import Collectors
from service.corrections import find_corrections, note_left
from service.counters import keep_counted
from service.first_cut import FirstCut
from service.gateways import Gateways
from service.gpu_metrics import Poller, pollers
from service.held_days import keep_days
from service.keeping import Keeper
from service.kueue_checks import KueueChecks
from service.measure import Measurer
from service.patience import DISK, STORE
from service.positions import EVERY_SECONDS, Positions
from service.quota_orders import QuotaOrders
from service.recovery import open_store
from service.schedule import Ticker
from service.settings import Settings
from service.stopping import Stop
from service.version import version
from service.weekly import WeeklyReports
from store.embedded import Store
from store.gate import Gate

log = logging.getLogger("gpuledger.service")

_ORDERS_EVERY_SECONDS = 1
_HOUSEKEEPING_EVERY_SECONDS = 3600
_WEEKLY_CHECK_SECONDS = 3600
_EXCHANGED = "reading pauses while the operator acts on the books; it goes on by itself"


class Runtime:
    """
    Everything that `gpuledger serve` runs. Use it as a context, or call `start` and `stop`.

    Args:
        settings: what to run.
        store: an open store; by default the one of the settings, opened and closed here.
        clock: what "now" is; by default the machine's time, or the end of imported data.
        machine: the machine's clock, by which is read what clusters say and told how old it is.
        past_looks: as in `service.wait_reasons`, for a store into which history was just read.

    Raises:
        SettingsError: the settings cannot be served, for example no authentication on a public address.
        StoreError: another process holds the store.
        UnreachableError: the port is taken.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        store: Store | None = None,
        clock: Clock | None = None,
        machine: Clock | None = None,
        past_looks: int = 0,
    ) -> None:
        auth = settings.authentication()
        auth.check_bind(settings.server.host)
        self.settings = settings
        self._machine = machine or SystemClock()
        self._past_looks = past_looks
        self.stopping = Stop()
        self._owns_store = store is None
        self.store = store or open_store(settings)
        self.alarms = Alarms()
        watched = {cluster.name for cluster in settings.clusters}
        self._first_cut = FirstCut(self.store, watched, self._machine)
        try:
            self.answers = Answers(
                self.store,
                settings.tenancy_rules(),
                settings.thresholds(),
                clock or clock_of(settings, self.store),
                agreement=settings.money.agreement(),
                quotas=settings.quota,
                alarms=self.alarms,
                kueue_checks=KueueChecks(self.store, settings.kueue_metrics, self._machine),
                alone=lambda: self._measuring,
                checkpoints=Checkpoints(
                    self.store, watched, self._tell, self._machine, first_cut=self._first_cut
                ),
            )
            self._gateways = Gateways(settings.gateways, self._machine)
            self.alerting = self._alerting()
            self.exporter = Exporter(
                REGISTRY,
                self._machine,
                alarms=self.alarms.sounding,
                outside=self._outside,
                ledger=settings.server.name,
                policy=self.answers.policy,
            )
            self.measurer = self._measurer()
            app = create_app(
                Api(
                    answers=self.answers,
                    auth=auth,
                    metrics_text=self.exporter.text,
                    base_url=settings.server.base_url,
                    version=version(),
                )
            )
            self._server = Server(app, settings.server.host, settings.server.port)
        except BaseException:
            self._close_store()
            raise
        self._ticker = Ticker()
        self._pollers: list[Poller | CheckpointPoller | Positions] = []
        self._measuring = threading.Lock()
        self._polling = Gate()
        self._keeper = Keeper(settings, self.store, alone=self._alone, renewed=self._renewed)
        self._collectors = Collectors(
            settings,
            self.store,
            alarms=self.alarms,
            forgotten=self._keeper.forgotten,
            failed=self._failed,
            clock=self._machine,
        )
        self._error: BaseException | None = None
        self._began_ms = self._machine.now_ms()

    @property
    def url(self) -> str:
        """Where the API answers on this machine."""
        return self._server.url

    def start(self) -> Self:
        """Measure once, then serve, tick and watch."""
        try:
            self.store.forget_unread(
                (cluster.name for cluster in self.settings.clusters),
                (source.cluster for source in self.settings.gpu_metrics),
            )
            self._tick()
            self.alerting.start()
            self._server.start()
            self._ticker.every(self.settings.schedule.measure_every_seconds, self._tick, name="measure")
            for name, seconds, poller in pollers(
                self.settings.gpu_metrics, self.store, self._machine, connect=self._collectors.connect
            ):
                self._pollers.append(poller)
                self._ticker.every(seconds, partial(self._poll, poller), name=name, asks_others=True)
            assert self.answers.checkpoints is not None
            for name, seconds, telling in checkpoint_pollers(
                self.settings.checkpoints.metrics, self.answers.checkpoints
            ):
                self._pollers.append(telling)
                self._ticker.every(seconds, telling.poll, name=name, asks_others=True)
            beat = self.settings.schedule.measure_every_seconds
            self._ticker.every(beat, self.alerting.watch, name="alerts about ourselves")
            self._ticker.every(beat, partial(self._collectors.room.lacking, self.alarms), name="room")
            self._ask_for_positions()
            self._compare()
            self._ticker.every(_WEEKLY_CHECK_SECONDS, self._weekly().write_due, name="weekly")
            self._ticker.every(_ORDERS_EVERY_SECONDS, self._take_orders, name="orders")
            self._collectors.start()
            self._ticker.every(_HOUSEKEEPING_EVERY_SECONDS, self._keep_house, name="housekeeping")
            self._ticker.start()
            running.announce(self.settings.serve_file, self.url)
        except BaseException:
            self.stop()
            raise
        return self

    def wait(self) -> None:
        """
        Until somebody sets `stopping`.

        Raises:
            ProductError: a collector cannot go on, for example because the disk is full.
        """
        self.stopping.wait()
        if self._error is not None:
            raise self._error

    def stop(self) -> None:
        """Stop watching, commit what was read, let the tick and open requests end, close the store."""
        self.stopping.set()
        running.withdraw(self.settings.serve_file)
        self._ticker.stop()
        for poller in self._pollers:
            poller.close()
        self.alerting.stop()
        self._collectors.stop()
        self._server.stop()
        self._close_store()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _publish(self, measurements: Sequence[Measurement], as_of_ms: int) -> None:
        watched = {cluster.name for cluster in self.settings.clusters}
        policy = self.answers.policy
        live = sources.last_good(
            self.store.marks(), as_of_ms, policy=policy, clusters=watched, since_ms=self._began_ms
        )
        self.exporter.publish(measurements, as_of_ms, live, failed=self.measurer.failed)
        left_out.say(self.exporter.left_out, self.alarms)
        self.alerting.take(measurements, as_of_ms, live)

    def _outside(self) -> Iterator[Outside]:
        yield from self._gateways.outside()
        yield from self.alerting.outside()

    def _alerting(self) -> Alerting:
        settings = self.settings
        links = Links(
            dashboard_url=settings.dashboard_url.rstrip("/"),
            runbooks_url=settings.alerting.runbooks_url.rstrip("/"),
        )
        every = timedelta(seconds=settings.schedule.measure_every_seconds)
        return Alerting(
            self.answers,
            settings.alerting,
            links=links,
            every=every,
            clock=self._machine,
            ledger=settings.server.name,
        )

    def _weekly(self) -> WeeklyReports:
        return WeeklyReports(
            answers=self.answers,
            clock=self.answers.clock,
            folder=self.settings.reports_dir,
            first_ms=self.answers.first_ms,
            dashboard_url=self.settings.dashboard_url,
            zone=self.answers.agreement.zone,
        )

    def _close_store(self) -> None:
        if self._owns_store:
            self.store.close()

    def _tick(self) -> None:
        if self._disk_is_full:
            return
        with self._measuring:
            try:
                self.measurer.tick()
            except StoreBrokenError as cause:
                self.alarms.sound(STORE, f"{cause}; opening it again", stops_reading=True)
                self.store.reopen()
                raise
            self.alarms.end(STORE)

    @property
    def _disk_is_full(self) -> bool:
        """Whether reading pauses for room: what measuring and polling write would take the rest."""
        return DISK in self.alarms.sounding()

    def _poll(self, poller: Poller | Positions) -> None:
        # A site may read GPU metrics only: then nobody else looks.
        if self._collectors.room.lacking(self.alarms):
            return
        with self._polling.passing():
            poller.poll()

    def _ask_for_positions(self) -> None:
        """Ask each cluster for Kueue's own order of its queues."""
        for cluster in self.settings.clusters:
            connection = self._collectors.connect(cluster.name)
            asking = Positions(cluster.name, connection, self.store, self._machine)
            self._pollers.append(asking)
            self._ticker.every(
                EVERY_SECONDS,
                partial(self._poll, asking),
                name=f"queue positions/{cluster.name}",
                asks_others=True,
            )

    def _compare(self) -> None:
        """Ask others what they say of queues, each as often as its settings tell."""
        checks = self.answers.kueue_checks
        assert checks is not None
        for number, one in enumerate(self.settings.kueue_metrics):
            name, seconds = f"kueue-metrics/{one.cluster}/{number}", int(one.every.total_seconds())
            self._ticker.every(seconds, partial(checks.poll, number), name=name, asks_others=True)
        for number, gateway in enumerate(self.settings.gateways):
            name, seconds = f"gateway/{gateway.name}/{number}", int(gateway.every.total_seconds())
            self._ticker.every(seconds, partial(self._gateways.poll, number), name=name, asks_others=True)

    def _tell(self, cluster: str, payload: Payload, observed_ms: int) -> None:
        with self._polling.passing_at_once() as inside:
            if not inside:
                # Whoever waited here would hold one of the few threads that answer questions.
                message = f"cluster {cluster} is not read just now ({_EXCHANGED}); tell it again"
                raise UnreachableError(message)
            self._collectors.tell(cluster, payload, observed_ms)

    def _take_orders(self) -> None:
        quotas = QuotaOrders(
            store=self.store,
            policy=self.answers.policy,
            agreement=self.answers.agreement,
            terms=self.answers.quotas,
            clock=self.answers.clock,
            alone=lambda: self._measuring,
        )
        closing = CloseOrders(self.answers.closer)
        handlers = {**self._keeper.handlers(), **quotas.handlers(), **closing.handlers()}
        orders.take(self.settings.orders_dir, handlers)

    def _keep_house(self) -> None:
        now_ms = self._machine.now_ms()
        self._collectors.check_credentials(now_ms)
        with self._measuring:
            if self.settings.keeping.retention is not None:
                # What is dropped cannot be booked any more, and what is in no book yet holds booking up.
                if not self._disk_is_full:
                    self.measurer.tick()
                if self._first_cut.was_refreshed:
                    find_corrections(self.store, self.answers.tenancy, now_ms=now_ms)
            dropped = self._keeper.drop_old(now_ms)
            note_left(self.store)
            rewritten = self.store.put_in_order()
        # After what is too old was dropped, and a statement need not add it up again.
        keep_days(self.store, self.answers.agreement, as_of_ms=now_ms)
        metrics = self.answers.registry().values()
        keep_counted(self.store, metrics, as_of_ms=now_ms, policy=self.answers.policy)
        if rewritten:
            log.info("wrote anew, in the order in which rows cease to count: %s", ", ".join(rewritten))
        if dropped:
            log.info("dropped %d workloads that ended before keeping.retention", dropped)

    def _measurer(self) -> Measurer:
        books = books_of(
            self.store,
            tenancy=self.answers.tenancy,
            policy=self.answers.policy,
            clock=self.answers.clock,
            agreement=self.answers.agreement,
            quotas=self.answers.quotas,
            past_looks=self._past_looks,
            orders=self.answers.orders,
        )
        return Measurer(
            answers=self.answers,
            refresh=lambda: self._first_cut.after(books.refresh),
            publish=self._publish,
        )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        self.alarms.sound("reading_pauses", _EXCHANGED, stops_reading=True)
        try:
            with self._collectors.paused(), self._polling.closed(), self._measuring:
                yield
        finally:
            self.alarms.end("reading_pauses")

    def _renewed(self) -> None:
        """What the stages and the measurer kept in memory is about other facts."""
        self._first_cut.begin_anew()
        self.measurer = self._measurer()
        for poller in self._pollers:
            if isinstance(poller, Poller):
                poller.forget()

    def _failed(self, error: ProductError) -> None:
        self._error = self._error or error
        self.stopping.set()
