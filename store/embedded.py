"""The store as everybody else sees it."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from domain.facts import Batch, Description, EventSighting, Known, ObjectKind, Transition
from domain.metric import Measurement
from domain.window import Clock, SystemClock
from store import facts, lives, measurements
from store.engine import Engine
from store.facts import Changed
from store.lives import Rows, Watermark

_CLOCK: Final = SystemClock()

_MARKS: Final = "select source_mark.* from source_mark order by cluster, kind"

# One row per cluster, source and reason.
_SET_ASIDE: Final = """
select cluster, source, because, sum(count)::bigint as count, max(observed_ms) as observed_ms
from set_aside
group by cluster, source, because
order by cluster, source, because
"""

_CLUSTERS: Final = """
select cluster from source_mark
union
select cluster from object_state
order by cluster
"""


class Store(Engine):
    """
    Facts, lives and measurements of any number of clusters, in one DuckDB file.

    One process owns the file. Within it the store may be used from any thread.
    """

    @classmethod
    def open(
        cls,
        path: Path | None,
        *,
        memory_limit: str | None = None,
        threads: int | None = None,
        spill: Path | None = None,
        clock: Clock = _CLOCK,
    ) -> Self:
        """
        The store in this file, made if it is missing, at the newest schema.

        Args:
            path: None keeps it in memory.
            memory_limit: as DuckDB spells it, for example 2GB.
            threads: of one query; by default as many as there are cores.
            spill: where queries put what does not fit into memory; by default beside the file.
            clock: dates the schema's migrations.

        Raises:
            StoreError: the file is open already, here or elsewhere, or is no store of this version.
        """
        connection = cls.connect(path, memory_limit=memory_limit, threads=threads, spill=spill, clock=clock)
        store = cls(connection, path)
        store._seq = facts.highest_seq(store)
        return store

    _seq: int = 0

    # ------------------------------------------------------------ facts

    def append(self, batch: Batch) -> int:
        """Write a batch whole or not at all, with the positions it stands for; gives rows appended."""
        if not (len(batch) or batch.objects or batch.marks):
            return 0
        with self._write_lock:
            appended = facts.append(self, batch, after_seq=self._seq)
            self._seq += appended
        return appended

    def known(self, cluster: str) -> Known:
        """What the store already holds of a cluster: where an intake resumes."""
        return facts.known(self, cluster)

    def changed_since(self, cluster: str, job: str) -> Changed:
        """Objects with facts that the job has not seen, and the watermark to write with its result."""
        return facts.changed_since(self, cluster, job)

    def facts_of(
        self, cluster: str, uids: Collection[str] | None = None
    ) -> tuple[list[Transition], list[Description]]:
        """Facts of these objects, or of all, in the order of arrival."""
        return facts.facts_of(self, cluster, uids)

    def descriptions(self, cluster: str, kinds: Iterable[ObjectKind]) -> list[Description]:
        """What all objects of these kinds said of themselves, in the order of arrival."""
        return facts.descriptions(self, cluster, kinds)

    def events_of(
        self,
        cluster: str,
        reasons: Collection[str] | None = None,
        regarding: Collection[str] | None = None,
    ) -> list[EventSighting]:
        """Sightings of events with these reasons, on these objects, by when they last happened."""
        return facts.events_of(self, cluster, reasons, regarding)

    def marks(self) -> list[dict[str, object]]:
        """Where the reading of each kind of each cluster stands."""
        return self.rows(_MARKS)

    def set_aside_counts(self) -> list[dict[str, object]]:
        """How often what was not understood, by cluster, source and reason."""
        return self.rows(_SET_ASIDE)

    def clusters(self) -> list[str]:
        """Clusters that the store knows."""
        return [str(row["cluster"]) for row in self.rows(_CLUSTERS)]

    # ------------------------------------------------------------ what is derived

    def write_lives(
        self,
        cluster: str,
        workload_uids: Collection[str],
        tables: Mapping[str, Rows],
        watermark: Watermark | tuple[str, int],
    ) -> None:
        """Replace all that is derived of these workloads, with the watermark; see `store.lives`."""
        lives.write_lives(self, cluster, workload_uids=workload_uids, tables=tables, watermark=watermark)

    # ------------------------------------------------------------ what was said

    def publish(self, measured: Sequence[Measurement]) -> None:
        """Keep what was measured; the same metric at the same instant is replaced."""
        measurements.publish(self, measured)

    def latest_measurements(self) -> list[Measurement]:
        """All that was measured for the newest instant."""
        return measurements.latest(self)

    def history(self, metric: str, *, start_ms: int, end_ms: int) -> list[Measurement]:
        """What was said of a metric in [start, end), oldest first."""
        return measurements.history(self, metric, start_ms=start_ms, end_ms=end_ms)
