"""How much memory DuckDB may take: what the settings say, else a part of what the container has."""

import re
from pathlib import Path

from domain.errors import UsageError

# The rest is for what is read, for frames, and for the libraries themselves.
_PART = 2
_LEAST_BYTES = 256 << 20
_WITHOUT_LIMIT = "1GB"
# A group without a limit says "max" (v2), or nearly the largest number there is (v1).
_NO_LIMIT_BYTES = 1 << 60
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s?([KMGT]?)(i?)B")


def size_bytes(text: str) -> int:
    """
    The bytes of a size as DuckDB spells it.

    >>> size_bytes("1.5GB"), size_bytes("64 KiB")
    (1500000000, 65536)

    Raises:
        UsageError: it is no size.
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        message = f"size {text!r}: expected a number and a unit, for example 2GB or 512MiB"
        raise UsageError(message)
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** " KMGT".index(prefix or " "))


def memory_limit(root: Path = Path("/sys/fs/cgroup"), groups: Path = Path("/proc/self/cgroup")) -> str:
    """
    Half of what the control group may use, in DuckDB's words; 1GB where it has no limit.

    Args:
        root: where control groups are mounted.
        groups: which ones this process is in.
    """
    found = [limit for path in _limit_files(root, groups) if (limit := _limit(path)) is not None]
    if not found:
        return _WITHOUT_LIMIT
    return f"{max(_LEAST_BYTES, min(found) // _PART) >> 20}MiB"


def _limit_files(root: Path, groups: Path) -> list[Path]:
    """Files with the limits of our groups and of those around them; version 2 before version 1."""
    try:
        lines = groups.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        lines = []
    files = []
    for line in lines:
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            top, name = root, "memory.max"
        elif "memory" in controllers.split(","):
            top, name = root / "memory", "memory.limit_in_bytes"
        else:
            continue
        # In a container the path may be the host's, while its own group is mounted at the root.
        group = Path(path.lstrip("/"))
        files += [top / part / name for part in (group, *group.parents)]
    return files


def _limit(path: Path) -> int | None:
    try:
        said = path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError):
        return None
    return int(said) if said.isdecimal() and int(said) < _NO_LIMIT_BYTES else None
