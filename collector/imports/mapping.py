"""What a site writes of its own table of jobs: which column is what, and how its stamps and states read."""

import difflib
import math
from collections.abc import Iterable
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar
from zoneinfo import ZoneInfo

import msgspec

from collector.imports.row import Ending
from collector.imports.slurm_words import STATES
from collector.imports.stamps import instant_ms, zone_of
from domain.errors import RecordingError, SettingsError

UNITS_MS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "us": 0.001, "ns": 0.000_001}


class Columns(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """
    The table's column for each thing; `submit` and one of `start` and `wait` are needed.

    `share` is a part of one GPU, in thousandths unless `share_of` says otherwise; it counts where
    `gpus` is 1. `cpus` and `nodes` are those of the whole job; as many nodes are its gang. `run` and
    `wait` are lengths.
    """

    submit: str
    id: str | None = None
    eligible: str | None = None
    start: str | None = None
    wait: str | None = None
    end: str | None = None
    run: str | None = None
    state: str | None = None
    name: str | None = None
    team: str | None = None
    user: str | None = None
    queue: str | None = None
    priority_class: str | None = None
    node: str | None = None
    nodes: str | None = None
    gpus: str | None = None
    share: str | None = None
    gpu_model: str | None = None
    cpus: str | None = None
    cluster: str | None = None


class Time(msgspec.Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """
    How stamps and lengths read: numbers are `unit`s since `origin`, texts are ISO 8601 in `zone`.

    Lengths are numbers of `length`.
    """

    unit: Literal["ms", "s", "m", "h", "us", "ns"] = "s"
    length: Literal["ms", "s", "m", "h", "us", "ns"] = "s"
    origin: str = "1970-01-01T00:00:00Z"
    zone: str = "UTC"


_ColumnsOf = TypeVar("_ColumnsOf", bound=msgspec.Struct)


class Layout(msgspec.Struct, Generic[_ColumnsOf], forbid_unknown_fields=True, kw_only=True, frozen=True):
    """What mappings of all tables say: columns, how stamps read, and what separates the fields of a CSV."""

    columns: _ColumnsOf
    time: Time = msgspec.field(default_factory=Time)
    delimiter: str | None = None

    def columns_used(self) -> dict[str, str]:
        """The table's column for each thing that is mapped."""
        named = msgspec.structs.asdict(self.columns)
        return {thing: column for thing, column in named.items() if column is not None}

    @property
    def zone(self) -> ZoneInfo:
        """The zone of stamps without one."""
        return zone_of(self.time.zone)

    @property
    def origin_ms(self) -> int:
        """What numbers count from."""
        return instant_ms(self.time.origin, self.zone) or 0

    @property
    def separator(self) -> str | None:
        """What separates fields; None where it is to be found out. ValueError: it can be none."""
        given = self.delimiter
        if given is not None and (len(given) != 1 or given in '"\r\n\0'):
            message = f"delimiter = {given[:20]!r}: expected one character, such as ; or |"
            raise ValueError(message)
        return given


AnyLayout: TypeAlias = Layout[Any]


class TableMapping(Layout[Columns], forbid_unknown_fields=True, kw_only=True, frozen=True):
    """
    How a table of jobs is read.

    `states` says how the table's own words ended: succeeded, failed, cancelled, preempted, requeued,
    node_failed, unknown, or open; without it the words are Slurm's. `starts_when_submitted` is for a
    table that tells no waits, `share_of` how many shares make a GPU.
    """

    states: dict[str, Ending] = {}
    share_of: float = 1000
    starts_when_submitted: bool = False

    def ending(self, word: str) -> Ending | None:
        """How a stay ended, by the table's word; None for one that nobody explained."""
        if self.states:
            return self.states.get(word)
        return STATES.get(word.upper())


def mapping_of(written: object, *, name: str) -> TableMapping:
    """
    The mapping that a file holds.

    Raises:
        SettingsError: a key is unknown, one is missing, or a value makes no sense.
    """
    try:
        mapping = msgspec.convert(written, TableMapping)
        _ = (mapping.zone, mapping.origin_ms, mapping.separator)
    except (msgspec.ValidationError, ValueError) as cause:
        message = (
            f"{name}: {cause}; expected columns (with submit, and start or wait), and where they differ"
            " time, states, share_of, starts_when_submitted, delimiter"
        )
        raise SettingsError(message) from cause
    columns = mapping.columns
    if columns.start is None and columns.wait is None and not mapping.starts_when_submitted:
        message = (
            f"{name}, columns: neither start nor wait; expected the column of one of them, or "
            "starts_when_submitted: true for a table that tells no waits"
        )
        raise SettingsError(message)
    if not 0 < mapping.share_of < math.inf:
        message = f"{name}, share_of = {mapping.share_of}: expected how many make a GPU, for example 1000"
        raise SettingsError(message)
    return mapping


def check_columns(mapping: AnyLayout, found: Iterable[str], *, name: str) -> None:
    """Raises RecordingError, which names the columns that are there, where one that is mapped is not."""
    there = list(found)
    missing = {thing: column for thing, column in mapping.columns_used().items() if column not in there}
    if not missing:
        return
    wanted = ", ".join(f"{column} (mapped to {thing})" for thing, column in missing.items())
    near = [close for column in missing.values() for close in difflib.get_close_matches(column, there, 1)]
    hint = f"; did you mean {', '.join(near)}?" if near else ""
    message = f"{name}: no column {wanted}; found {', '.join(there) or 'none'}{hint}"
    raise RecordingError(message)
