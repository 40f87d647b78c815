"""`gpuledger demo`: everything on a sample, as it stood at its end, or the small one played up to now."""

import logging
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from types import FrameType

from collector.dcgm.parquet import read_parquet
from collector.intake import Intake
from collector.recording import import_recording
from domain.errors import UnreachableError, UsageError
from domain.window import Clock, FixedClock, SystemClock, parse_instant
from sample_data import SETTINGS, SMALL, Sample, fortnight
from sample_data.generate import END, SEED, generate
from service import children
from service.gpu_metrics import keep_parts
from service.play import Feed, PlayClock, Player
from service.runtime import Runtime
from service.settings import Settings
from service.settings_file import load_settings
from store.embedded import Store

CLUSTER = "sample"
PLAYED_MINUTES = 60
_MS_PER_MINUTE = 60_000
_GPU_METRICS = "dcgm-exporter"
_MEASURE_SELDOM_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class _Scene:
    """What the demo shows: a clock to answer by and, when it is played, who moves it."""

    clock: Clock
    player: Player | None = None


def demo(  # noqa: PLR0913 - what the command line offers
    *,
    sample: Sample | None = None,
    play: float | None = None,
    host: str | None = None,
    port: int | None = None,
    dashboard_port: int | None = None,
    data_dir: Path | None = None,
    played_minutes: int = PLAYED_MINUTES,
    say: Callable[[str], None] = print,
) -> None:
    """
    Serve API and dashboard on a sample until Ctrl-C, then clean up.

    Args:
        sample: which one; by default the fortnight, and the small one where it is played.
        play: speed at which the last part of the sample is played; None shows its end at once. A
            played sample ends at the machine's time at which the playback does; there it stops.
        host: address to listen on; by default this machine only.
        port: of the API.
        dashboard_port: of the dashboard.
        data_dir: where the store is made and left; by default a folder that goes with the demo.
        played_minutes: how much of the sample is played.
        say: told what is done and how long it took, and the addresses when both answer.

    Raises:
        UsageError: `data_dir` has a store already, the speed is not positive, or the sample is one that
            is not played.
        UnreachableError: a port is taken, or the dashboard does not come up.
    """
    if play is not None and play <= 0:
        message = f"--play {play}: expected a speed above 0, for example 30"
        raise UsageError(message)
    if play is not None and sample is Sample.FORTNIGHT:
        message = f"--play {play} with --sample {sample}: expected --sample small, the one that can be played"
        raise UsageError(message)
    chosen = sample or (Sample.FORTNIGHT if play is None else Sample.SMALL)
    # The addresses are for reading; of the log only what went wrong.
    logging.basicConfig(level=logging.WARNING, format="level=%(levelname)s logger=%(name)s msg=%(message)s")
    stop = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(_signals_set(stop))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuledger-demo-")))
        settings = _settings(chosen, data_dir or folder, host=host, port=port, dashboard_port=dashboard_port)
        store = stack.enter_context(_new_store(settings))
        if chosen is Sample.FORTNIGHT:
            scene = _fortnight(store, say)
        elif play is None:
            scene = _still(store)
        else:
            scene = _played(store, folder / "recording", speed=play, minutes=played_minutes)
        runtime = Runtime(settings, store=store, clock=scene.clock)
        began = perf_counter()
        # In this order, whatever happens: the playback, the dashboard, the API, then the store.
        with runtime, ExitStack() as shown:
            if chosen is Sample.FORTNIGHT:
                say(f"books kept and measured in {perf_counter() - began:.1f} s")
            dashboard = children.start(
                children.dashboard_command(settings),
                environment=children.dashboard_environment(
                    settings, api_url=runtime.url, played=scene.player is not None
                ),
            )
            shown.callback(children.end_all, {"dashboard": dashboard})
            if scene.player is not None:
                shown.enter_context(scene.player)
            _show(runtime, dashboard, scene, stop=stop, say=say)


def _show(
    runtime: Runtime,
    dashboard: children.Child,
    scene: _Scene,
    *,
    stop: threading.Event,
    say: Callable[[str], None],
) -> None:
    """Say where everything is once it answers, then wait for the end."""
    page = children.dashboard_address(runtime.settings)
    if children.wait_for(f"{page}/_stcore/health", dashboard, stop):
        say(f"dashboard   {page}")
        say(f"API         {runtime.url}/api/v1/metrics/queue_wait_seconds")
        say(f"Prometheus  {runtime.url}/metrics")
        say("Ctrl-C stops the demo.")
    elif not stop.is_set():
        message = f"the dashboard does not answer on {page}: its messages above say why"
        raise UnreachableError(message)
    while not stop.wait(0.2):
        if dashboard.poll() is not None:
            message = f"the dashboard ended with code {dashboard.returncode}: its messages above say why"
            raise UnreachableError(message)
        if scene.player is not None and scene.player.error is not None:
            raise scene.player.error


def _still(store: Store) -> _Scene:
    import_recording(SMALL, CLUSTER, store)
    return _Scene(FixedClock(parse_instant(END)))


def _fortnight(store: Store, say: Callable[[str], None]) -> _Scene:
    say("the fortnight: reading what the API server and the GPU exporters of 32 nodes told")
    began = perf_counter()
    parts = read_parquet(fortnight.FORTNIGHT / fortnight.SAMPLES, source=_GPU_METRICS)
    # Columns are read by libraries that leave the interpreter to the objects.
    with ThreadPoolExecutor(1) as beside:
        taking = beside.submit(keep_parts, store, CLUSTER, parts)
        summary = import_recording(fortnight.FORTNIGHT, CLUSTER, store)
        taken = taking.result()
    say(
        f"{summary.lines:,} changes of objects and {taken.read:,} GPU samples read in"
        f" {perf_counter() - began:.1f} s; keeping the books"
    )
    return _Scene(FixedClock(parse_instant(fortnight.END)))


def _played(store: Store, folder: Path, *, speed: float, minutes: int) -> _Scene:
    length_ms = minutes * _MS_PER_MINUTE
    clock = PlayClock.over(SystemClock(), length_ms=length_ms, speed=speed)
    generate(seed=SEED, end_ms=clock.end_ms).write(folder)
    feed = Feed.of(folder, Intake(CLUSTER, store, store.known(CLUSTER)))
    feed.advance(clock.end_ms - length_ms)
    return _Scene(feed, Player(feed, clock))


def _settings(
    sample: Sample, data_dir: Path, *, host: str | None, port: int | None, dashboard_port: int | None
) -> Settings:
    overrides = {
        "store.data_dir": data_dir,
        "server.host": host,
        "server.port": port,
        "server.dashboard_port": dashboard_port,
        # The small sample may run many times faster than the machine's clock; the other stands still.
        "schedule.measure_every_seconds": 1 if sample is Sample.SMALL else _MEASURE_SELDOM_SECONDS,
    }
    return load_settings(SETTINGS if sample is Sample.SMALL else fortnight.SETTINGS, overrides=overrides)


@contextmanager
def _new_store(settings: Settings) -> Iterator[Store]:
    if settings.store_file.exists():
        message = (
            f"--data-dir {settings.store.data_dir}: there is a store already; the demo needs an empty folder"
        )
        raise UsageError(message)
    settings.store.data_dir.mkdir(parents=True, exist_ok=True)
    store = Store.open(settings.store_file, memory_limit=settings.store.memory_limit)
    try:
        yield store
    finally:
        store.close()


@contextmanager
def _signals_set(stop: threading.Event) -> Iterator[None]:
    """Ctrl-C and SIGTERM set `stop` meanwhile; outside of the main thread nobody sends us any."""

    def handle(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
