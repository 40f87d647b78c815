"""Files that backup writes and restore takes: what they must be, and whether there is room for them."""

import os
import re
import secrets
import shutil
from pathlib import Path
from typing import Final

from collector.on_disk import settle
from domain.errors import ProductError, StoreError
from service.settings import Settings
from store.embedded import Store
from store.limits import size_bytes

_RESTORED: Final = "restored"
# Nobody else calls a file so.
_OURS: Final = re.compile(r"\.(?P<name>[a-z]+)-[0-9a-f]{8}\.duckdb(\.wal)?")


def beside(file: Path, name: str) -> Path:
    """
    Where a copy goes for a while: a name in the folder of the store that no file has.

    What a process left there that was killed over such a copy is removed, and nothing else.
    """
    for path in file.parent.glob(f".{name}-*"):
        if (ours := _OURS.fullmatch(path.name)) and ours["name"] == name:
            path.unlink(missing_ok=True)
    return file.with_name(f".{name}-{secrets.token_hex(4)}.duckdb")


def check_target(target: Path) -> None:
    """
    Whether a backup may be written there.

    Raises:
        StoreError: there is something already, there or in its way, or no file can have that name.
    """
    written = written_first(target)
    in_the_way = {
        log_of(target): "taken for its log",
        written: "written over",
        log_of(written): "written over",
    }
    try:
        is_folder, is_there = target.is_dir(), target.exists()
        others = [path for path in in_the_way if path.exists()]
    except OSError as cause:
        message = f"backup {target}: {cause}; choose a folder that can be written"
        raise StoreError(message) from cause
    if is_folder:
        message = (
            f"backup {target}: that is a folder; name a file in it, for example {target / 'books.duckdb'}"
        )
        raise StoreError(message)
    if is_there:
        message = f"backup {target}: there is such a file; name another one"
        raise StoreError(message)
    for other in others:
        message = (
            f"backup {target}: there is {other}, which would be {in_the_way[other]}; move it away, or remove"
            " it if a backup left it that was broken off, or name another file"
        )
        raise StoreError(message)


def written_first(target: Path) -> Path:
    """The name that a backup has until it is whole."""
    return target.with_name(target.name + ".new")


def check_room(folder: Path, size: int, settings: Settings) -> None:
    """
    Whether a copy of so many bytes leaves the room free that is reserved.

    Raises:
        StoreError: it does not.
    """
    free = shutil.disk_usage(folder).free
    reserved = size_bytes(settings.keeping.min_free)
    if free < size + reserved:
        message = (
            f"{folder} has {free / 1e6:,.0f} MB free: a copy of the store needs"
            f" {size / 1e6:,.0f} MB, and {reserved / 1e6:,.0f} MB are reserved (keeping.min_free);"
            " make room, or choose another place"
        )
        raise StoreError(message)


def brought_in(source: Path, settings: Settings) -> Path:
    """
    A copy of a backup beside the store, of which it is sure that it can take the store's place.

    It is at the newest schema, and each of its blocks was read. A log beside the backup belongs to it:
    a store that was kept aside has one.

    Raises:
        StoreError: it is no file, no store of gpuledger, one of a newer version, or damaged; or there is no
            room for it. Then nothing is left of the copy.
    """
    try:
        log = _check_source(source, settings)
        settings.store_file.parent.mkdir(parents=True, exist_ok=True)
        incoming = beside(settings.store_file, _RESTORED)
        size = source.stat().st_size + (log.stat().st_size if log.exists() else 0)
        check_room(incoming.parent, size, settings)
        try:
            shutil.copyfile(source, incoming)
            if log.exists():
                shutil.copyfile(log, log_of(incoming))
            _check_store(source, incoming)
            settle(incoming)
        except BaseException:
            drop(incoming)
            raise
    except OSError as cause:
        message = f"backup {source}: {cause}; give a file that backup wrote and that can be read"
        raise StoreError(message) from cause
    return incoming


def drop(incoming: Path) -> None:
    """Remove a copy that was brought in; nothing where it took the store's place."""
    for path in (incoming, log_of(incoming)):
        path.unlink(missing_ok=True)


def replace_broken(source: Path, settings: Settings, aside: Path) -> None:
    """
    Put a backup in the place of none, or of a store that cannot be opened: that is kept in `aside`.

    Raises:
        StoreError: it is no backup, or the store cannot be kept; the store is where it was.
    """
    incoming = brought_in(source, settings)
    file, log = settings.store_file, log_of(settings.store_file)
    try:
        for path in (file, log):
            if path.exists():
                aside.mkdir(parents=True, exist_ok=True)
                keep_aside(path, aside / path.name)
        # First: DuckDB replays a log on any file of the same lineage that was folded as often.
        log.unlink(missing_ok=True)
        # Whenever we are killed, there is a file in the place of the store.
        incoming.replace(file)
        settle(file)
    except OSError as cause:
        message = f"backup {source}: {cause}; look at the folder of the store, and at {aside}"
        raise StoreError(message) from cause
    finally:
        drop(incoming)


def keep_aside(path: Path, further: Path) -> None:
    """
    A further name for a file; a copy where the file system has no links.

    Raises:
        FileExistsError: something has that name, and keeps it.
        OSError: it cannot be written.
    """
    try:
        os.link(path, further)
    except FileExistsError:
        raise
    except OSError:
        with path.open("rb") as read, further.open("xb") as written:
            try:
                shutil.copyfileobj(read, written)
            except OSError:
                further.unlink()
                raise
    settle(further)


def refuse_log(file: Path) -> None:
    """
    That no log lies beside a closed store: else another file could not take its place in one step.

    Raises:
        StoreError: one does.
    """
    if log_of(file).exists():
        message = (
            f"store {file}: it is as it was, for its log could not be folded into it; make room on its disk,"
            " and give the order again"
        )
        raise StoreError(message)


def _check_source(source: Path, settings: Settings) -> Path:
    """Gives where the log of a backup lies, if it has one."""
    if source.is_dir():
        message = f"backup {source}: that is a folder; name the file in it that backup wrote"
        raise StoreError(message)
    if not source.exists():
        message = f"backup {source}: there is no such file"
        raise StoreError(message)
    if not source.is_file():
        message = f"backup {source}: that is no plain file; name one that backup wrote"
        raise StoreError(message)
    if settings.store_file.exists() and source.samefile(settings.store_file):
        message = f"backup {source}: that is the store itself; name a file that backup wrote"
        raise StoreError(message)
    if _OURS.fullmatch(source.name) and source.parent.resolve() == settings.store_file.parent.resolve():
        message = f"backup {source}: that is a copy that a restore left there; move it elsewhere first"
        raise StoreError(message)
    return log_of(source)


def _check_store(source: Path, copy: Path) -> None:
    try:
        store = Store.open(copy, existing=True)
        try:
            store.read_all()
        finally:
            store.close()
    except ProductError as cause:
        told = str(cause).replace(str(copy.absolute()), str(source)).replace(str(copy), str(source))
        message = f"backup {source} cannot take the place of the store, which is as it was: {told}"
        raise StoreError(message) from cause


def log_of(path: Path) -> Path:
    """Where DuckDB keeps the log (WAL) of a file."""
    return path.with_name(path.name + ".wal")
