"""Starts the writer that can be killed, as a process of its own."""

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from store.embedded import Store

ROOT = Path(__file__).parents[2]


def writer(path: Path) -> subprocess.Popen[bytes]:
    """The writer on this file; it is asked over its standard input."""
    return subprocess.Popen(
        [sys.executable, "-m", "tests.store.killed_writer", str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
    )


def lines(batches: Iterable[Mapping[str, Any]]) -> bytes:
    return b"".join(json.dumps(batch).encode() + b"\n" for batch in batches)


def write_until_killed(path: Path, batches: list[dict[str, Any]]) -> list[int]:
    """Feed the batches; after each death a new writer goes on. Gives those that were acknowledged."""
    acknowledged: list[int] = []
    while batches:
        with writer(path) as process:
            said, _ = process.communicate(lines(batches))
        done = [int(line) for line in said.split()]
        acknowledged += done
        # The one that it died of was not acknowledged; it comes again later, or never.
        batches = batches[len(done) + 1 :]
    return acknowledged


def stored(store: Store) -> list[tuple[str, int]]:
    """Every reading in the store, as (uid, resource version)."""
    rows = store.rows(
        "select uid, resource_version from event_sighting order by uid, resource_version::bigint"
    )
    return [(str(row["uid"]), int(str(row["resource_version"]))) for row in rows]
