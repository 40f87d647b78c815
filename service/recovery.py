"""Open the store, also when its log cannot be replayed: from the file, a backup and the journal."""

import logging
import shutil
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote, unquote

from collector.on_disk import settle
from collector.replay import replay
from domain.errors import ProductError, StoreBrokenError
from domain.window import SystemClock, format_instant
from service.backups import beside, keep_aside, log_of
from service.settings import Settings
from store.embedded import Store

log = logging.getLogger("gpuledger.recovery")

_REPLAYING = "replaying WAL"
_RECOVERED = "recovered"


def open_store(settings: Settings) -> Store:
    """
    The store of the settings, made if it is missing.

    A log (WAL) that cannot be replayed is kept aside with the file that it belongs to. Then the file
    without it is opened, which holds what was folded last, or else the newest backup; what came
    later is taken from the journal, where there is one, and from the cluster. Whenever we are killed
    over that, the next one goes on with it.

    Raises:
        StoreError: another process holds the file, or nothing of it can be opened.
    """
    try:
        store = _open(settings)
    except StoreBrokenError as cause:
        wal = log_of(settings.store_file)
        if _REPLAYING not in str(cause) or not wal.exists():
            raise
        aside = settings.store.data_dir / "aside" / _stamp()
        aside.mkdir(parents=True)
        for path in (settings.store_file, wal):
            if path.exists():
                keep_aside(path, aside / path.name)
        log.exception("the log of the store cannot be replayed; it and the file are kept in %s", aside)
        return remade(settings, aside)
    if _unfinished(settings).exists():
        _catch_up(settings, store)
    return store


def remade(settings: Settings, aside: Path) -> Store:
    """The store made anew, from the best of what there is: see `open_store`."""
    store = _opened_from(settings, _bases(settings, aside))
    _catch_up(settings, store)
    return store


def backups(settings: Settings) -> list[Path]:
    """Backups that lie beside the store, the newest first."""
    return sorted((settings.store.data_dir / "backups").glob("*.duckdb"), reverse=True)


def backup_file(settings: Settings) -> Path:
    """Where a backup goes that is given no other place."""
    return settings.store.data_dir / "backups" / f"{_stamp()}.duckdb"


def _open(settings: Settings) -> Store:
    return Store.open(
        settings.store_file, memory_limit=settings.store.memory_limit, spill=settings.keeping.spill_dir
    )


def _unfinished(settings: Settings) -> Path:
    """A mark that lies beside the store until it has from the journal what its log held."""
    return settings.store_file.with_name(".recovery-unfinished")


def _stamp() -> str:
    return format_instant(SystemClock().now_ms()).replace(":", "").replace("-", "")


def _bases(settings: Settings, aside: Path) -> Iterator[Path | None]:
    """Files to begin with, the best first; None is an empty store."""
    yield aside / settings.store_file.name
    yield from backups(settings)
    yield None


def _opened_from(settings: Settings, bases: Iterator[Path | None]) -> Store:
    refused: ProductError | None = None
    file = settings.store_file
    _unfinished(settings).touch()
    settle(_unfinished(settings))
    for base in bases:
        if base is None:
            file.unlink(missing_ok=True)
        elif base.exists():
            copy = beside(file, _RECOVERED)
            shutil.copyfile(base, copy)
            settle(copy)
            copy.replace(file)
        else:
            continue
        # Last: a file without its log would be opened as if that were all.
        log_of(file).unlink(missing_ok=True)
        try:
            store = _open(settings)
        except StoreBrokenError as cause:
            refused = cause
            continue
        log.warning("the store begins anew from %s", "nothing" if base is None else base)
        return store
    assert refused is not None
    raise refused


def _catch_up(settings: Settings, store: Store) -> None:
    for cluster, folder in journals(settings):
        marks = store.known(cluster).marks
        after_ms = {kind: mark.seen_ms for kind, mark in marks.items()}
        try:
            summary = replay(
                folder,
                cluster,
                store,
                after_ms=after_ms,
                checkpoint_keys=settings.checkpoints.keys,
            )
        except ProductError:
            log.exception(
                "the journal of %s cannot be replayed; the cluster tells what is there now", cluster
            )
            continue
        log.warning("%d rows of %s came from its journal", summary.rows, cluster)
        for damage in summary.damages:
            # What a kill cut off was acknowledged to nobody; but there is nothing to compare it with here.
            level = logging.WARNING if damage.by_kill else logging.ERROR
            log.log(level, "journal of %s: %s", cluster, damage.words())
    _unfinished(settings).unlink(missing_ok=True)


def journals(settings: Settings) -> list[tuple[str, Path]]:
    """Clusters with a journal, and where it lies; `journal_folder` is the other way."""
    folder = settings.store.data_dir / "journal"
    found = sorted(path for path in folder.iterdir() if path.is_dir()) if folder.is_dir() else []
    return [(unquote(path.name), path) for path in found]


def journal_folder(settings: Settings, cluster: str) -> Path:
    """Where the journal of a cluster lies: any name makes one folder, and another name another."""
    return settings.store.data_dir / "journal" / quote(cluster, safe="").replace(".", "%2E")
