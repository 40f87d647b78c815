"""Files that backup writes and restore takes: what they must be, and whether there is room for them."""

import os
import shutil
from pathlib import Path
from typing import Final

from domain.errors import ProductError, StoreError
from service.settings import Settings
from store.embedded import Store
from store.limits import size_bytes

_INCOMING: Final = "restored.duckdb"


def check_target(target: Path) -> None:
    """
    Whether a backup may be written there.

    Raises:
        StoreError: there is something already, or no file can have that name.
    """
    try:
        is_folder, is_there = target.is_dir(), target.exists()
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
    incoming = settings.store_file.with_name(_INCOMING)
    try:
        log = _check_source(source, incoming, settings)
        incoming.parent.mkdir(parents=True, exist_ok=True)
        size = source.stat().st_size + (log.stat().st_size if log.exists() else 0)
        check_room(incoming.parent, size, settings)
        drop(incoming)
        try:
            shutil.copyfile(source, incoming)
            if log.exists():
                shutil.copyfile(log, _log_of(incoming))
            _check_store(source, incoming)
        except BaseException:
            drop(incoming)
            raise
    except OSError as cause:
        message = f"backup {source}: {cause}; give a file that backup wrote and that can be read"
        raise StoreError(message) from cause
    return incoming


def drop(incoming: Path) -> None:
    """Remove a copy that was brought in; nothing where it took the store's place."""
    for path in (incoming, _log_of(incoming)):
        path.unlink(missing_ok=True)


def replace_broken(source: Path, settings: Settings, aside: Path) -> None:
    """
    Put a backup in the place of none, or of a store that cannot be opened: that is moved into `aside`.

    Raises:
        StoreError: it is no backup; the store is where it was.
    """
    incoming = brought_in(source, settings)
    for path in (settings.store_file, _log_of(settings.store_file)):
        if path.exists():
            aside.mkdir(parents=True, exist_ok=True)
            _set_aside(path, aside / path.name)
    # Whenever we are killed, there is a file in the place of the store.
    incoming.replace(settings.store_file)
    _log_of(settings.store_file).unlink(missing_ok=True)


def _set_aside(path: Path, further: Path) -> None:
    """A further name for a file; where the file system has no links it gets that one only."""
    try:
        os.link(path, further)
    except OSError:
        path.replace(further)


def _check_source(source: Path, incoming: Path, settings: Settings) -> Path:
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
    if incoming.exists() and source.samefile(incoming):
        message = f"backup {source}: restore writes its own copy there; move it elsewhere first"
        raise StoreError(message)
    return _log_of(source)


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


def _log_of(path: Path) -> Path:
    return path.with_name(path.name + ".wal")
