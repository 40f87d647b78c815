"""Tokens in files: whoever renews one writes its file anew, and it is read again with each question."""

from functools import partial
from pathlib import Path

from collector.addresses import Token
from service.settings import read_secret


def token_of(path: Path | None, key: str) -> Token | None:
    """
    Gives the token that stands in a file, as often as it is asked; None where there is no file.

    Args:
        path: the file.
        key: of the settings, for errors.

    Raises:
        SettingsError: the file cannot be read now, or is empty; what comes of that later, the caller is told
            by what this gives.
    """
    if path is None:
        return None
    read_secret(path, key)
    return partial(read_secret, path, key)
