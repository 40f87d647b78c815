"""A file that is imported, as a stream of readings; and under which cluster's name they are kept."""

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Generic, TypeAlias, TypeVar

from collector.unpacking import CarefulFile
from domain.errors import RecordingError, UsageError
from store.embedded import Store

OTHER_CLUSTER: Final = "of another cluster than the file's first row: leave --cluster out to take in each"
CUT_OFF: Final = "the file is cut off or broken there"
COPY_AGAIN: Final = "copy or export it again"
Progress: TypeAlias = Callable[[int, int], None]
_Reading = TypeVar("_Reading")


@dataclass(slots=True)
class Source(Generic[_Reading]):
    """
    A file as a stream of readings.

    `position` tells how many bytes of `size` were read (0: nobody knows); `broken` why the rest cannot be.
    """

    name: str
    path: Path
    reads: Iterator[_Reading]
    size: int
    position: Callable[[], int]
    broken: Callable[[], str]


class Naming:
    """Under which name rows are kept: the given one, else that of each row, else the file's own."""

    def __init__(self, cluster: str | None, path: Path) -> None:
        self._given = cluster
        self._first: str | None = None
        self._of_file = path.name.partition(".")[0]

    @property
    def cluster(self) -> str:
        """The cluster of what belongs to no row."""
        return self._given or self._first or self._of_file

    def of(self, told: str) -> str | None:
        """The cluster of a row that tells this one, or none; None where the given name does not mean it."""
        named = told or self._of_file
        if self._first is None:
            self._first = named
        if self._given is None:
            return named
        return self._given if named == self._first else None


def opened(path: Path, *, ends: bool = False) -> CarefulFile:
    """
    The file, to be read from its beginning; `ends` where whoever writes such texts ends each line.

    Raises:
        RecordingError: there is none.
    """
    if not path.is_file():
        is_there = "it is no file" if path.exists() else "there is no such file"
        message = f"{path}: {is_there}; expected a file to import"
        raise RecordingError(message)
    return CarefulFile(path, ends=ends)


def source_of(path: Path, file: CarefulFile, reads: Iterator[_Reading]) -> Source[_Reading]:
    """What is read of a file that tells how far it is read."""
    told = _as_far_as_it_goes(path, file, reads)
    return Source(path.name, path, told, path.stat().st_size, lambda: file.position, lambda: file.because)


def _as_far_as_it_goes(path: Path, file: CarefulFile, reads: Iterator[_Reading]) -> Iterator[_Reading]:
    """The readings; of a file that is broken too early to be understood that is the reason."""
    try:
        yield from reads
    except RecordingError as cause:
        if not file.because:
            raise
        message = f"{path}: {file.because}; {COPY_AGAIN}"
        raise RecordingError(message) from cause


def source_of_parquet(path: Path, reads: Iterator[_Reading]) -> Source[_Reading]:
    """What is read of a Parquet file: how far it is read nobody tells."""
    return Source(path.name, path, reads, 0, lambda: 0, lambda: "")


def pieces(reads: Iterable[_Reading], rows: int) -> Iterator[list[_Reading]]:
    """Readings, so many at a time; the last piece may be empty."""
    piece: list[_Reading] = []
    for read in reads:
        piece.append(read)
        if len(piece) >= rows:
            yield piece
            piece = []
    yield piece


def counted_before(store: Store, source: str) -> dict[str, Counter[str]]:
    """What was set aside of a source of this name, by cluster and cause."""
    counted: dict[str, Counter[str]] = defaultdict(Counter)
    for row in store.set_aside_counts():
        if row["source"] == source:
            counted[str(row["cluster"])][str(row["because"])] += int(str(row["count"]))
    return counted


def unless_watched(names: Iterable[str], watched: Collection[str]) -> None:
    """
    Under one name the same work would count twice, or two clusters would be one.

    Raises:
        UsageError: one of the names is that of a cluster that is watched.
    """
    for name in sorted(set(names).intersection(watched)):
        message = (
            f"cluster {name} is watched, for it is in clusters of the settings; expected another name"
            f" for what is imported, for example --cluster {name}-imported"
        )
        raise UsageError(message)
