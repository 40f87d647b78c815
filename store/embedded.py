"""The store as everybody else sees it."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Self

import duckdb
import polars as pl
from typing_extensions import override

from domain.facts import (
    Batch,
    Description,
    EventSighting,
    Known,
    ObjectKind,
    ObjectState,
    SetAside,
    SourceMark,
    Transition,
)
from domain.metric import Measurement
from domain.queue_state import QueueState
from domain.window import Clock, SystemClock
from store import (
    activity,
    counted,
    derived,
    facts,
    gpu_samples,
    held_days,
    lives,
    measurements,
    observed,
    order,
    positions,
    queue_states,
    unread,
)
from store.counted import Counted
from store.derived import Replacement
from store.engine import Engine
from store.facts import Changed
from store.gpu_samples import Read
from store.held_days import HeldDay
from store.lives import Rows, Watermark
from store.positions import Place

_CLOCK: Final = SystemClock()

_MARKS: Final = "select source_mark.* from source_mark order by cluster, kind"

# One row per thing, or several alike, that was set aside.
_SET_ASIDE_OF: Final = """
select source, because, sample, observed_ms, count
from set_aside
where cluster = $cluster
order by all
"""

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
union
select cluster from gpu_sample_mark
union
select cluster from queue_state
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
        existing: bool = False,
    ) -> Self:
        """
        The store in this file, made if it is missing, at the newest schema.

        Args:
            path: None keeps it in memory.
            memory_limit: as DuckDB spells it, for example 2GB; by default half of the container's.
            threads: of one query; by default as many as there are cores.
            spill: where queries put what does not fit into memory; by default beside the file.
            clock: dates the schema's migrations.
            existing: whether it must be a store already.

        Raises:
            StoreHeldError: the file is open already, here or elsewhere.
            StoreError: it is no store of this version.
        """
        connect = partial(
            cls.connect,
            path,
            memory_limit=memory_limit,
            threads=threads,
            spill=spill,
            clock=clock,
            existing=existing,
        )
        store = cls(connect, path)
        store._seq = facts.highest_seq(store)
        return store

    _seq: int = 0

    @override
    def reopen(self, exchange: Callable[[], None] = lambda: None) -> None:
        with self._write_lock:
            super().reopen(exchange)
            self._seq = facts.highest_seq(self)

    # ------------------------------------------------------------ facts

    def append(self, batch: Batch) -> int:
        """Write a batch whole or not at all, with the positions it stands for; gives rows appended."""
        if not (len(batch) or batch.objects or batch.marks or batch.sights):
            return 0
        with self._write_lock:
            appended = facts.append(self, batch, after_seq=self._seq)
            self._seq += appended
        return appended

    def add_facts(self, write: Callable[[duckdb.DuckDBPyConnection, int], int]) -> int:
        """
        Let facts be written in one transaction that come from another store; gives how many.

        `write` is given the connection and the number of the newest fact, and gives how many it added.
        """
        with self._write_lock:
            with self.transaction() as connection:
                added = write(connection, self._seq)
            self._seq += added
        return added

    def holds(self, batch: Batch) -> bool:
        """Whether this batch was committed as the last of its cluster, though nobody was told so."""
        return facts.holds(self, batch)

    def known(self, cluster: str, *, gone_within_ms: int | None = None) -> Known:
        """What the store already holds of a cluster: where an intake resumes; see `store.facts`."""
        return facts.known(self, cluster, gone_within_ms)

    def known_marks(self, cluster: str) -> dict[ObjectKind, SourceMark]:
        """Where the reading of each kind of a cluster stands."""
        return facts.marks_of(self, cluster)

    def states_of(self, cluster: str, uids: Collection[str]) -> list[ObjectState]:
        """The newest reading of each of these objects that is known."""
        return facts.states_of(self, cluster, uids)

    def changed_since(self, cluster: str, job: str) -> Changed:
        """Objects with facts that the job has not seen, and the watermark to write with its result."""
        return facts.changed_since(self, cluster, job)

    def lasting_facts_of(self, cluster: str) -> tuple[list[Transition], list[Description]]:
        """Facts of all objects but those of imported jobs, in the order of arrival."""
        return facts.lasting_facts_of(self, cluster)

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
        return [dict(mark) for mark in self.kept_rows(_MARKS)]

    def forget_unread(self, watched: Iterable[str], measured: Iterable[str] = ()) -> None:
        """Forget what was never read and is in the settings no more; see `store.unread`."""
        unread.forget_unread(self, watched, measured)

    def set_aside_counts(self) -> list[dict[str, object]]:
        """How often what was not understood, by cluster, source and reason."""
        return self.rows(_SET_ASIDE)

    def set_aside_of(self, cluster: str) -> list[SetAside]:
        """What was not understood of a cluster, as it was kept."""
        rows: Sequence[Mapping[str, Any]] = self.rows(_SET_ASIDE_OF, {"cluster": cluster})
        return [SetAside(**row) for row in rows]

    def stretches(self, *, start_ms: int, as_of_ms: int) -> Sequence[Mapping[str, object]]:
        """When each source was observed, as known by an instant; see `store.observed`."""
        return observed.stretches(self, start_ms=start_ms, as_of_ms=as_of_ms)

    def last_sights(self, instants_ms: Sequence[int]) -> Sequence[Mapping[str, object]]:
        """When each kind of objects had been seen last by each of these instants; see `store.observed`."""
        return observed.last_sights(self, instants_ms)

    def first_observed_ms(self) -> dict[str, int]:
        """When each cluster was first observed."""
        return observed.first_ms(self)

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
        *,
        advances: bool = True,
    ) -> None:
        """Replace all that is derived of these workloads, with the watermark; see `store.lives`."""
        lives.write_lives(
            self,
            cluster,
            workload_uids=workload_uids,
            tables=tables,
            watermark=watermark,
            advances=advances,
        )

    def cut_since(self, cluster: str, job: str, *, most: int) -> Iterator[set[str]]:
        """Workloads whose lives were cut, or vanished, since the job's watermark; so many at a time."""
        return derived.cut_since(self, cluster, job, most=most)

    def counting(self, cluster: str, uids: Collection[str]) -> tuple[int, int]:
        """The least and the largest `open_until_ms` of rows of these workloads; see `store.derived`."""
        return derived.counting(self, cluster, uids)

    def replace(
        self,
        cluster: str,
        replacements: Sequence[Replacement],
        watermark: Watermark | tuple[str, int] | None = None,
    ) -> None:
        """Replace rows that are derived of lives and samples; see `store.derived`."""
        derived.replace(self, cluster, replacements, watermark)

    def put_in_order(self) -> list[str]:
        """Write tables anew in which questions about now read too many rows; see `store.order`."""
        return order.put_in_order(self)

    def counted(self, question: str) -> Counted | None:
        """What a counter had counted up to an instant; see `store.counted`."""
        return counted.kept(self, question)

    def keep_counted(self, make: Callable[[], Iterable[tuple[str, Counted]]]) -> int:
        """Keep what counters count while nobody writes; see `store.counted`."""
        return counted.keep(self, make)

    def held_days(self, *, start_ms: int, end_ms: int) -> list[HeldDay]:
        """The days of a window of which it is kept who held what."""
        return held_days.kept(self, start_ms=start_ms, end_ms=end_ms)

    def keep_held_days(self, make: Callable[[], Iterable[HeldDay]]) -> int:
        """Keep days that are added up while nobody writes; see `store.held_days`."""
        return held_days.keep(self, make)

    # ------------------------------------------------------------ GPU samples

    def append_samples(
        self,
        cluster: str,
        source: str,
        frame: pl.DataFrame,
        mark: Read,
        *,
        set_aside: Mapping[str, int] | None = None,
    ) -> int:
        """Append what a source read of GPUs, with its mark; gives the number of rows that are new."""
        named = frame.with_columns(source=pl.lit(source))
        return self.append_round(cluster, named, {source: mark}, set_aside={source: set_aside or {}})

    def append_round(
        self,
        cluster: str,
        frame: pl.DataFrame,
        marks: Mapping[str, Read],
        *,
        set_aside: Mapping[str, Mapping[str, int]],
    ) -> int:
        """Append what many sources read of GPUs, each with its mark; gives the number of new rows."""
        return gpu_samples.append(self, cluster, frame, marks=marks, set_aside=set_aside)

    def mark_samples(self, cluster: str, marks: Mapping[str, Read]) -> None:
        """Note how readings of these sources went that gave nothing."""
        gpu_samples.mark(self, cluster, marks)

    def unmark_samples(self, cluster: str, source: str) -> None:
        """Take back the mark of a source that never gave a sample."""
        gpu_samples.unmark(self, cluster, source)

    def sample_marks(self) -> list[dict[str, object]]:
        """Up to where each source of GPU samples is read."""
        return gpu_samples.marks(self)

    def fold_activity(self, cluster: str, *, job: str, idle_below: float, resident_above: float) -> int:
        """Bring the activity of devices and pods up to date; see `store.activity`."""
        return activity.fold(self, cluster, job=job, idle_below=idle_below, resident_above=resident_above)

    def keep_positions(self, cluster: str, changes: Sequence[Place], *, seen_ms: int, error: str) -> None:
        """Keep changes of positions in queues; see `store.positions`."""
        positions.keep(self, cluster, changes, seen_ms=seen_ms, error=error)

    def positions(self, cluster: str) -> list[Place]:
        """The positions in queues that are known last."""
        return positions.now(self, cluster)

    def position_marks(self) -> list[dict[str, object]]:
        """Until when the positions of each cluster are known."""
        return positions.marks(self)

    # ------------------------------------------------------------ what others counted

    def append_queue_states(self, cluster: str, states: Sequence[QueueState]) -> None:
        """Append counts of queues; see `store.queue_states`."""
        queue_states.append(self, cluster, states)

    def queue_states(
        self, cluster: str, queues: Collection[str], *, from_ms: int, to_ms: int
    ) -> dict[str, list[QueueState]]:
        """What was counted of these queues in a stretch of time, in its order."""
        return queue_states.near(self, cluster, queues, from_ms=from_ms, to_ms=to_ms)

    # ------------------------------------------------------------ what was said

    def publish(self, measured: Sequence[Measurement]) -> None:
        """Keep what was measured; the same metric at the same instant is replaced."""
        measurements.publish(self, measured)

    def history(self, metric: str, *, start_ms: int, end_ms: int) -> list[Measurement]:
        """What was said of a metric in [start, end), oldest first."""
        return measurements.history(self, metric, start_ms=start_ms, end_ms=end_ms)
