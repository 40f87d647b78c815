"""What a process has in memory, part by part; `python -m benchmarks.memory`: what DuckDB keeps of joins."""

import ctypes
import sys
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final, NamedTuple

from store.embedded import Store

_MB: Final = 1 << 20
_BUFFERS: Final = "select coalesce(sum(memory_usage_bytes), 0)::bigint as bytes from duckdb_memory()"
# A hash join takes some ten blocks, whose handles stay when they are gone.
_JOIN: Final = "select count(*) as n from range(100) as a(i) semi join range(100) as b(i) on a.i = b.i"
_JOINS: Final = 28_000
_TOLD_EACH: Final = 2_000


class Memory(NamedTuple):
    """
    Parts of what is in memory, in MB but for `blocks`.

    Args:
        resident: all of it, the program and its libraries included.
        malloc: what glibc has given out: large objects of Python, and what DuckDB makes that is no buffer.
        reserve: what glibc keeps to give out again.
        buffers: what DuckDB counts as its memory, which its limit is about.
        blocks: small objects that Python has given out.
    """

    resident: float
    malloc: float
    reserve: float
    buffers: float
    blocks: int

    @classmethod
    def of(cls, store: Store) -> "Memory":
        """As it is now."""
        status = Path("/proc/self/status").read_text(encoding="utf-8")
        told = _glibc().mallinfo2()
        [row] = store.rows(_BUFFERS)
        return cls(
            resident=int(status.split("VmRSS:")[1].split()[0]) / 1024,
            malloc=(told.uordblks + told.hblkhd) / _MB,
            reserve=told.fordblks / _MB,
            buffers=int(str(row["bytes"])) / _MB,
            blocks=sys.getallocatedblocks(),
        )

    def words(self) -> str:
        """In one line."""
        return (
            f"{self.resident:.0f} MB resident, {self.malloc:.1f} given out by glibc and {self.reserve:.1f} "
            f"kept, {self.buffers:.1f} buffers of DuckDB, {self.blocks:,} small blocks of Python"
        )


class _Told(ctypes.Structure):
    """`struct mallinfo2`, see mallinfo(3)."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
            "keepcost",
        )
    ]  # fmt: skip


@lru_cache
def _glibc() -> ctypes.CDLL:
    library = ctypes.CDLL("libc.so.6")
    library.mallinfo2.restype = _Told
    return library


def main() -> int:
    """Ask the same join again and again: what is kept of each, and where that ends."""
    with TemporaryDirectory(prefix="benchmark") as folder:
        store = Store.open(Path(folder) / "joins.duckdb", memory_limit="80MB")
        try:
            for number in range(_JOINS + 1):
                store.rows(_JOIN)
                if number % _TOLD_EACH == 0:
                    print(f"{number:,} joins: {Memory.of(store).words()}", flush=True)
        finally:
            store.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
