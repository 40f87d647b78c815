"""Which version of the product this is."""

from functools import cache
from importlib import metadata


@cache
def version() -> str:
    """The installed version of the product."""
    try:
        return metadata.version("gpuledger")
    except metadata.PackageNotFoundError:
        return "not installed"
