"""What is written is on the disk, so that a loss of power takes nothing of it."""

import errno
import os
from pathlib import Path
from typing import Final

# What file systems say that do not write folders on demand.
_NOT_OF_FOLDERS: Final = (errno.EINVAL, errno.ENOTSUP)


def settle(path: Path) -> None:
    """
    Write a file down to the disk, and the folder that holds its name: a new or changed name is lost else.

    Raises:
        OSError: it cannot be written.
    """
    for one in (path, path.parent):
        handle = os.open(one, os.O_RDONLY)
        try:
            os.fsync(handle)
        except OSError as cause:
            if not (one.is_dir() and cause.errno in _NOT_OF_FOLDERS):
                raise
        finally:
            os.close(handle)
