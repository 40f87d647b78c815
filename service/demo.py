"""`gpuledger demo`: everything on a sample, as it stood at its end, or its last hours played."""

import logging
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from collector.dcgm.parquet import read_parquet
from collector.intake import Intake
from collector.recording import import_recording
from domain.errors import UnreachableError, UsageError
from domain.window import Clock, FixedClock, SystemClock, format_instant, parse_instant
from sample_data import SETTINGS, SMALL, Sample, fortnight
from sample_data.generate import END, SEED, generate
from service import children
from service.gpu_metrics import keep_parts
from service.play import Feed, Meters, PlayClock, Player
from service.runtime import Runtime
from service.settings import Settings
from service.settings_file import load_settings
from service.stopping import Stop, on_signals
from service.wait_reasons import PAST_LOOKS
from store.embedded import Store

CLUSTER = "sample"
PLAYED_MINUTES = {Sample.FORTNIGHT: 6 * 60, Sample.SMALL: 60}
_MS_PER_MINUTE = 60_000
_GPU_METRICS = "dcgm-exporter"
_MEASURE_SELDOM_SECONDS = 3600


@dataclass(frozen=True, slots=True)
class _Scene:
    """
    What the demo shows: a clock to answer by and, when it is played, who moves it once all is up.

    `play` is given what tells the last instant that was measured.
    """

    clock: Clock
    play: Callable[[Callable[[], int]], Player] | None = None


def demo(  # noqa: PLR0913 - what the command line offers
    *,
    sample: Sample | None = None,
    play: float | None = None,
    host: str | None = None,
    port: int | None = None,
    dashboard_port: int | None = None,
    data_dir: Path | None = None,
    played_minutes: int | None = None,
    alertmanager: str | None = None,
    say: Callable[[str], None] = print,
) -> None:
    """
    Serve API and dashboard on a sample until Ctrl-C, then clean up.

    Args:
        sample: which one; by default the fortnight.
        play: speed at which the last part of the sample is played; None shows its end at once. At the
            sample's end it stops. The small one is made so that this is nearly the machine's time by then.
        host: address to listen on; by default this machine only.
        port: of the API.
        dashboard_port: of the dashboard.
        data_dir: where the store is made and left; by default a folder that goes with the demo.
        played_minutes: how much of the sample is played; by default six hours, of the small one one.
        alertmanager: the address of one that is told of alerts.
        say: told what is done and how long it took, and the addresses when both answer.

    Raises:
        UsageError: `data_dir` has a store already, the speed is not positive, or it is said how much is
            played where nothing is.
        UnreachableError: a port is taken, or the dashboard does not come up.
    """
    if play is not None and play <= 0:
        message = f"--play {play}: expected a speed above 0, for example 30"
        raise UsageError(message)
    if play is None and played_minutes is not None:
        message = "--play-hours without --play: expected a speed too, for example --play 60"
        raise UsageError(message)
    chosen = sample or Sample.FORTNIGHT
    minutes = PLAYED_MINUTES[chosen] if played_minutes is None else played_minutes
    # The addresses are for reading; of the log only what went wrong.
    logging.basicConfig(level=logging.WARNING, format="level=%(levelname)s logger=%(name)s msg=%(message)s")
    with ExitStack() as stack:
        stop = stack.enter_context(on_signals(Stop()))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="gpuledger-demo-")))
        given = {
            "server.host": host,
            "server.port": port,
            "server.dashboard_port": dashboard_port,
            "alerting.alertmanagers": None if alertmanager is None else [{"url": alertmanager}],
        }
        settings = _settings(chosen, data_dir or folder, played=play is not None, given=given)
        store = stack.enter_context(_new_store(settings))
        scene = _scene(chosen, store, folder / "recording", speed=play, minutes=minutes, say=say)
        runtime = Runtime(settings, store=store, clock=scene.clock, past_looks=PAST_LOOKS)
        began = perf_counter()
        # In this order, whatever happens: the playback, the dashboard, the API, then the store.
        with runtime, ExitStack() as shown:
            if chosen is Sample.FORTNIGHT:
                say(f"books kept and measured in {perf_counter() - began:.1f} s")
            dashboard = children.start(
                children.dashboard_command(settings),
                environment=children.dashboard_environment(
                    settings, api_url=runtime.url, played=scene.play is not None
                ),
            )
            shown.callback(children.end_all, {"dashboard": dashboard})
            measurer = runtime.measurer
            play_on = None if scene.play is None else scene.play(lambda: measurer.measured_ms)
            player = None if play_on is None else shown.enter_context(play_on)
            _show(runtime, dashboard, player, stop=stop, say=say)


def _show(
    runtime: Runtime,
    dashboard: children.Child,
    player: Player | None,
    *,
    stop: Stop,
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
        if player is not None and player.error is not None:
            raise player.error


def _scene(
    sample: Sample,
    store: Store,
    folder: Path,
    *,
    speed: float | None,
    minutes: int,
    say: Callable[[str], None],
) -> _Scene:
    """Fill the store with the sample, or with its history where the rest is played."""
    length_ms = minutes * _MS_PER_MINUTE
    if sample is Sample.SMALL:
        return _still(store) if speed is None else _played(store, folder, speed=speed, length_ms=length_ms)
    say("the fortnight: reading what the API server and the GPU exporters of 32 nodes told")
    if speed is None:
        return _fortnight(store, say)
    return _played_fortnight(store, say, speed=speed, length_ms=length_ms)


def _still(store: Store) -> _Scene:
    import_recording(SMALL, CLUSTER, store)
    return _Scene(FixedClock(parse_instant(END)))


def _fortnight(store: Store, say: Callable[[str], None]) -> _Scene:
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


def _played_fortnight(store: Store, say: Callable[[str], None], *, speed: float, length_ms: int) -> _Scene:
    began, end_ms = perf_counter(), parse_instant(fortnight.END)
    parts = read_parquet(fortnight.FORTNIGHT / fortnight.SAMPLES, source=_GPU_METRICS)
    meters = Meters(store=store, cluster=CLUSTER, rest=parts)
    feed = Feed.of(fortnight.FORTNIGHT, Intake(CLUSTER, store, store.known(CLUSTER)), meters)
    changes = feed.advance(end_ms - length_ms)
    say(
        f"{changes:,} changes of objects and their GPU samples until {format_instant(feed.now_ms())} read in"
        f" {perf_counter() - began:.1f} s; keeping the books. The rest is played {speed:g} times as fast"
    )

    def play(_: Callable[[], int]) -> Player:
        # Only now does its time run: to keep the books of the history takes a while.
        return Player(feed, PlayClock.before(end_ms, SystemClock(), length_ms=length_ms, speed=speed))

    return _Scene(feed, play)


def _played(store: Store, folder: Path, *, speed: float, length_ms: int) -> _Scene:
    clock = PlayClock.over(SystemClock(), length_ms=length_ms, speed=speed)
    generate(seed=SEED, end_ms=clock.end_ms).write(folder)
    feed = Feed.of(folder, Intake(CLUSTER, store, store.known(CLUSTER)))
    feed.advance(clock.end_ms - length_ms)

    def play(measured: Callable[[], int]) -> Player:
        # Only now does its time run: what is played is not over before somebody can look. What is so short
        # that it is measured a few times only waits for that.
        late = PlayClock.before(clock.end_ms, SystemClock(), length_ms=length_ms, speed=speed)
        return Player(feed, late, measured=measured)

    return _Scene(feed, play)


def _settings(sample: Sample, data_dir: Path, *, played: bool, given: Mapping[str, Any]) -> Settings:
    # What is played may run many times faster than the machine; the fortnight at its end stands still.
    often = played or sample is Sample.SMALL
    overrides = {
        "store.data_dir": data_dir,
        "schedule.measure_every_seconds": 1 if often else _MEASURE_SELDOM_SECONDS,
        **given,
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
