"""The running service: collectors, measurement tick and API around one open store."""

import logging
import threading
from collections.abc import Sequence
from importlib import metadata
from types import TracebackType
from typing import Self

from alerts.exporter import Exporter
from analytics.metrics import REGISTRY
from api.app import Api, create_app
from api.server import Server
from collector.intake import Intake
from collector.kube.client import Connection
from collector.live import run_cluster
from collector.translator import TRANSLATORS
from domain.errors import ProductError
from domain.metric import Measurement
from domain.window import Clock, SystemClock
from service import running, sources
from service.answers import Answers
from service.books import books_of
from service.clocks import clock_of
from service.gpu_metrics import Poller, pollers
from service.measure import Measurer
from service.schedule import Ticker
from service.settings import ClusterSettings, Settings
from service.weekly import WeeklyReports
from store.embedded import Store

log = logging.getLogger("gpuledger.service")

_WEEKLY_CHECK_SECONDS = 3600


def version() -> str:
    """The installed version of the product."""
    try:
        return metadata.version("gpuledger")
    except metadata.PackageNotFoundError:
        return "not installed"


class Runtime:
    """
    Everything that `gpuledger serve` runs. Use it as a context, or call `start` and `stop`.

    Args:
        settings: what to run.
        store: an open store; by default the one of the settings, opened and closed here.
        clock: what "now" is; by default the machine's time, or the end of imported data.

    Raises:
        SettingsError: the settings cannot be served, for example no authentication on a public address.
        StoreError: another process holds the store.
        UnreachableError: the port is taken.
    """

    def __init__(self, settings: Settings, *, store: Store | None = None, clock: Clock | None = None) -> None:
        auth = settings.authentication()
        auth.check_bind(settings.server.host)
        self.settings = settings
        self.stopping = threading.Event()
        self._owns_store = store is None
        self.store = store or Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
        try:
            self.answers = Answers(
                self.store,
                settings.tenancy_rules(),
                settings.thresholds(),
                clock or clock_of(settings, self.store),
                agreement=settings.money.agreement(),
                quotas=settings.quota,
            )
            self.exporter = Exporter(REGISTRY)
            books = books_of(
                self.store,
                tenancy=self.answers.tenancy,
                policy=self.answers.policy,
                clock=self.answers.clock,
                agreement=self.answers.agreement,
                quotas=self.answers.quotas,
            )
            self.measurer = Measurer(answers=self.answers, refresh=books.refresh, publish=self._publish)
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
        self._pollers: list[Poller] = []
        self._collectors: list[threading.Thread] = []
        self._error: BaseException | None = None

    @property
    def url(self) -> str:
        """Where the API answers on this machine."""
        return self._server.url

    def start(self) -> Self:
        """Measure once, then serve, tick and watch."""
        try:
            self.measurer.tick()
            self._server.start()
            self._ticker.every(
                self.settings.schedule.measure_every_seconds, self.measurer.tick, name="measure"
            )
            for name, seconds, poller in pollers(self.settings.gpu_metrics, self.store, SystemClock()):
                self._pollers.append(poller)
                self._ticker.every(seconds, poller.poll, name=name)
            self._ticker.every(_WEEKLY_CHECK_SECONDS, self._weekly().write_due, name="weekly")
            self._ticker.start()
            self._collectors = [self._collect(cluster) for cluster in self.settings.clusters]
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
        for collector in self._collectors:
            collector.join()
        self._ticker.stop()
        for poller in self._pollers:
            poller.close()
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
        live = sources.last_good(self.store.marks(), as_of_ms, policy=policy, clusters=watched)
        self.exporter.publish(measurements, as_of_ms, live)

    def _weekly(self) -> WeeklyReports:
        return WeeklyReports(
            answers=self.answers,
            clock=self.answers.clock,
            folder=self.settings.store.data_dir / "reports",
            first_ms=self.answers.first_ms,
            dashboard_url=self.settings.dashboard_url,
        )

    def _close_store(self) -> None:
        if self._owns_store:
            self.store.close()

    def _collect(self, cluster: ClusterSettings) -> threading.Thread:
        # A wrong kubeconfig fails here, at start.
        connection = Connection.open(kubeconfig=cluster.kubeconfig, context=cluster.context)
        intake = Intake(cluster.name, self.store, self.store.known(cluster.name))

        def run() -> None:
            try:
                run_cluster(
                    cluster.name,
                    connection=connection,
                    intake=intake,
                    translators=TRANSLATORS,
                    clock=SystemClock(),
                    stop=self.stopping,
                )
            except ProductError as error:
                log.exception("collector stopped", extra={"cluster": cluster.name})
                self._error = self._error or error
                self.stopping.set()

        thread = threading.Thread(target=run, name=f"collector/{cluster.name}")
        thread.start()
        return thread
