"""
What `sacct` prints with `--parsable2` or `--parsable`: a line of column names, then a record a line.

Nothing is escaped there: a job's name may hold the delimiter. Stamps are in the cluster's own time
zone, and do not say which.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from zoneinfo import ZoneInfo

from collector.imports.row import Aside, Read
from collector.imports.slurm_row import Told, rows_of
from collector.imports.stamps import instant_ms, length_seconds
from domain.errors import RecordingError
from domain.window import MS_PER_SECOND

# What some editors and shells write before a text.
BOM: Final = b"\xef\xbb\xbf"
NO_STAMP: Final = "a stamp that is none"
TOO_FEW: Final = "fewer fields than there are columns"
TOO_MANY: Final = "more fields than there are columns: a text holds the delimiter"
_DELIMITERS: Final = ("|", "\t", ",", ";", "^", "\x01")
_NEEDED: Final = ("JobID", "State", "Submit", "Start", "End")
_COUNTS: Final = ("AllocTRES", "ReqTRES", "AllocGRES", "ReqGRES")
# Columns in which a user's text stands: only there a delimiter can.
_TEXTS: Final = frozenset({"jobname", "comment", "workdir", "submitline", "extra", "admincomment"})
_MOST_SAMPLE: Final = 300


@dataclass(frozen=True, slots=True)
class _Columns:
    delimiter: str
    names: tuple[str, ...]
    places: Mapping[str, int]
    text: int | None

    @classmethod
    def of(cls, names: tuple[str, ...], delimiter: str) -> "_Columns":
        places = {name.strip().lower(): place for place, name in enumerate(names)}
        texts = [place for name, place in places.items() if name in _TEXTS]
        return cls(delimiter, names, places, texts[0] if len(texts) == 1 else None)

    def fields(self, line: str) -> list[str] | str:
        """The fields of a record, or why it has none."""
        found = line.split(self.delimiter)
        wanted = len(self.names)
        if len(found) == wanted:
            return found
        if len(found) == wanted + 1 and not found[-1]:
            return found[:-1]  # --parsable ends each line with the delimiter
        if len(found) < wanted:
            return TOO_FEW
        if self.text is None:
            return TOO_MANY
        more = len(found) - wanted
        inside = self.delimiter.join(found[self.text : self.text + more + 1])
        return [*found[: self.text], inside, *found[self.text + more + 1 :]]


def read_sacct(
    lines: Iterable[bytes], *, name: str, zone: ZoneInfo, fields: str | None = None
) -> Iterator[Read]:
    """
    The records of a text of sacct.

    Args:
        lines: of the file, without their ends.
        name: of the file, for messages.
        zone: the cluster's time zone.
        fields: the column names, as given to `--format`, where the text has none (`--noheader`).

    Raises:
        RecordingError: it is no text of sacct, or columns are missing.
    """
    numbered = ((number, _text(raw, number)) for number, raw in enumerate(lines, 1))
    filled = ((number, line) for number, line in numbered if line.strip())
    columns: _Columns | None = None
    header: str | None = None
    for number, line in filled:
        if columns is None:
            if fields is None:
                header = line
                columns = _columns(line, name)
                continue
            columns = _columns_given(fields, line, name)
        if line != header:  # files put one behind the other repeat it
            yield from _records(columns, line, number, zone)
    if columns is None:
        message = f"{name}: the file is empty; expected what sacct --parsable2 --allocations prints"
        raise RecordingError(message)


def _text(raw: bytes, number: int) -> str:
    return (raw.removeprefix(BOM) if number == 1 else raw).decode("utf-8", "replace").rstrip("\r")


def _records(columns: _Columns, line: str, number: int, zone: ZoneInfo) -> Iterator[Read]:
    found = columns.fields(line)
    sample = line[:_MOST_SAMPLE]
    if isinstance(found, str):
        yield Aside(line=number, because=found, sample=sample)
        return
    try:
        told = _told(columns, found, number, zone)
    except ValueError:
        yield Aside(line=number, because=NO_STAMP, sample=sample)
        return
    yield from rows_of(told)


def _told(columns: _Columns, found: list[str], number: int, zone: ZoneInfo) -> Told:
    def text(*names: str) -> str:
        for name in names:
            if (place := columns.places.get(name)) is not None:
                return found[place].strip()
        return ""

    submit_ms = instant_ms(text("submit"), zone)
    elapsed, suspended = length_seconds(text("elapsedraw", "elapsed")), length_seconds(text("suspended"))
    # Slurm leaves the time in which a job was suspended out of its length.
    apart = None if elapsed is None else elapsed + (suspended or 0)
    start_ms, end_ms, may_be_later = _unfolded(text("start"), text("end"), zone, apart)
    eligible_ms = instant_ms(text("eligible"), zone) if "eligible" in columns.places else submit_ms
    for stamp in {text("submit"), text("eligible")}:
        may_be_later = may_be_later or _may_be_later(stamp, zone, before_ms=start_ms)
    return Told(
        line=number,
        job_id=text("jobid"),
        state=text("state"),
        submit_ms=submit_ms,
        eligible_ms=eligible_ms,
        start_ms=start_ms,
        end_ms=end_ms,
        elapsed_seconds=elapsed,
        suspended_seconds=suspended,
        cluster=text("cluster"),
        account=text("account"),
        user=text("user"),
        partition=text("partition"),
        qos=text("qos"),
        name=text("jobname"),
        node_list=text("nodelist") if "nodelist" in columns.places else None,
        cpu_count=text("alloccpus", "ncpus"),
        node_count=text("nnodes", "allocnodes"),
        allocated=text("alloctres"),
        requested=text("reqtres"),
        allocated_gres=text("allocgres"),
        requested_gres=text("reqgres"),
        exit_code=text("exitcode"),
        sample=columns.delimiter.join(found)[:_MOST_SAMPLE],
        may_be_later=may_be_later,
    )


def _unfolded(
    start: str, end: str, zone: ZoneInfo, apart: float | None
) -> tuple[int | None, int | None, bool]:
    """
    Start and end, and whether they may as well be an hour later.

    In the hour that the clock shows twice, how many seconds they are apart tells which of the two was
    meant: what comes nearest to it, and of the equally near the earlier.
    """
    first = (instant_ms(start, zone), instant_ms(end, zone))
    if apart is None or None in first:
        return *first, any(_may_be_later(stamp, zone) for stamp in (start, end))
    choices = {
        (start_ms, end_ms): abs(end_ms - start_ms - round(apart * MS_PER_SECOND))
        for later in ((False, False), (False, True), (True, True))
        if (start_ms := instant_ms(start, zone, later=later[0])) is not None
        and (end_ms := instant_ms(end, zone, later=later[1])) is not None
    }
    nearest = min(choices, key=lambda choice: choices[choice])
    return *nearest, list(choices.values()).count(choices[nearest]) > 1


def _may_be_later(stamp: str, zone: ZoneInfo, *, before_ms: int | None = None) -> bool:
    """Whether the clock shows a stamp twice, and its later instant is not after another one."""
    first_ms, second_ms = instant_ms(stamp, zone), instant_ms(stamp, zone, later=True)
    if first_ms is None or second_ms is None:
        return False
    return first_ms < second_ms and (before_ms is None or second_ms <= before_ms)


def _columns(line: str, name: str) -> _Columns:
    """The columns that a first line names."""
    for delimiter in _DELIMITERS:
        columns = _Columns.of(tuple(line.split(delimiter)), delimiter)
        if "jobid" in columns.places and len(columns.places) > 1:
            return _checked(columns, name)
    message = (
        f"{name}: the first line is {line[:120]!r}; expected the column names of sacct --parsable2, among"
        f" them {', '.join(_NEEDED)}. For a text without names (--noheader) give them with --fields"
    )
    raise RecordingError(message)


def _columns_given(fields: str, line: str, name: str) -> _Columns:
    """The columns that the user names, with the delimiter that fits the first record."""
    names = tuple(field.partition("%")[0] for field in fields.split(","))
    for delimiter in _DELIMITERS:
        if len(line.split(delimiter)) >= len(names) > 1:
            return _checked(_Columns.of(names, delimiter), name)
    message = (
        f"{name}: the first record is {line[:120]!r}; expected {len(names)} fields, as --fields names them, "
        "with | between them"
    )
    raise RecordingError(message)


def _checked(columns: _Columns, name: str) -> _Columns:
    missing = [needed for needed in _NEEDED if needed.lower() not in columns.places]
    if not any(count.lower() in columns.places for count in _COUNTS):
        missing.append("AllocTRES or ReqTRES")
    if missing:
        found = ", ".join(field.strip() for field in columns.names if field.strip())
        message = (
            f"{name}: no column {', '.join(missing)}; found {found}. Export with sacct --parsable2"
            " --duplicates --format=JobID,Cluster,User,Account,Partition,QOS,Submit,Eligible,Start,End,"
            "ElapsedRaw,State,ExitCode,NNodes,NodeList,ReqTRES,AllocTRES,JobName"
        )
        raise RecordingError(message)
    return columns
