"""
From readings of single fields to samples of devices: one row per device, instant and pod named on it.

Pure, and by whole columns: a fortnight of a large site is some ten million readings.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, NamedTuple

import polars as pl

from collector.dcgm.exposition import labels_of
from domain.gpu_fault import HEALTH_FIELDS
from domain.gpu_sample import BLANKS, HIGHEST, Device, Field, NoValue, Owner, device_of, owner_of

NO_METRICS: Final = "an answer with no metrics of GPUs"
OF_THE_FUTURE: Final = "a reading of the future: the exporter's clock is ahead of ours"
NO_DEVICE: Final = "no UUID: the series names no device"
BAD_LABELS: Final = "labels that cannot be read"
BAD_LINE: Final = "a line that cannot be read"
REPEATED: Final = "read more than once for one instant"
PARENT: Final = "a GPU that is cut into MIG instances, which are read too"
NOT_PER_INSTANCE: Final = "GPU_UTIL of a MIG instance: not supported"

_FIELDS: Final = {name: place for place, name in enumerate(Field)}
FIELD_PLACES: Final = {str(name): place for name, place in _FIELDS.items()}
WANTED: Final = frozenset(FIELD_PLACES) - {str(Field.SM)}
_KEY: Final = ("source", "node", "device", "namespace", "pod", "pod_uid")
_ROW: Final = ("source", "node", "device", "namespace", "pod", "at_ms")
_DESCRIBED: Final = {
    **dict.fromkeys(
        ("source", "node", "device", "uuid", "gpu_model", "namespace", "pod", "pod_uid", "copy"), pl.String
    ),
    "instance": pl.Boolean,
    "named_memory": pl.Float64,
    "micro_gpus": pl.Int64,
}


def is_wanted(name: str) -> bool:
    """Whether a family becomes part of a sample."""
    return name in WANTED


def tells_health(text: str) -> bool:
    """Whether an answer of an exporter names a metric of the health of GPUs, which is no part of a sample."""
    return any(name in text for name in HEALTH_FIELDS)


@dataclass(frozen=True, slots=True)
class Samples:
    """
    What was made of readings.

    `frame`: columns as table `gpu_sample` less cluster, source and seq. `set_aside` counts by cause.
    """

    frame: pl.DataFrame
    set_aside: Counter[str]


@dataclass(slots=True)
class Gathered:
    """
    Readings until they are turned into samples, by series and field.

    Args:
        node: of series that name none.
    """

    node: str = ""
    set_aside: Counter[str] = field(default_factory=Counter)
    _series: list[tuple[Device, Owner]] = field(default_factory=list)
    _by_labels: dict[object, int | None] = field(default_factory=dict)
    _columns: tuple[list[int], list[int], list[int], list[float]] = field(
        default_factory=lambda: ([], [], [], [])
    )

    def __len__(self) -> int:
        return len(self._columns[0])

    def series_of_text(self, labels: str) -> int | None:
        """The number of the series with these labels, as an exporter writes them; None where it has none."""
        try:
            known = self._by_labels[labels]
        except KeyError:
            try:
                known = self.series(labels_of(labels))
            except ValueError:
                self.set_aside[BAD_LABELS] += 1
                return None
            self._by_labels[labels] = known
            return known
        if known is None:
            self.set_aside[NO_DEVICE] += 1
        return known

    def series(self, labels: dict[str, str]) -> int | None:
        """The number of the series with these labels; None, and counted, where they name no device."""
        device = device_of(labels, node=self.node)
        if device is None:
            self.set_aside[NO_DEVICE] += 1
            return None
        known = (device, owner_of(labels))
        place = self._by_labels.setdefault(known, len(self._series))
        if place == len(self._series):
            self._series.append(known)
        return place

    def add(self, series: int, name: str, at_ms: int, value: float) -> None:
        """One reading of a wanted field."""
        keys, fields, instants, values = self._columns
        keys.append(series)
        fields.append(_FIELDS[Field(name)])
        instants.append(at_ms)
        values.append(value)

    def add_all(self, series: int, name: str, instants: list[int], values: list[float]) -> None:
        """Readings of one field of a series."""
        self._columns[0].extend([series] * len(values))
        self._columns[1].extend([_FIELDS[Field(name)]] * len(values))
        self._columns[2].extend(instants)
        self._columns[3].extend(values)

    def samples(self, step_ms: int) -> Samples:
        """
        The samples of everything gathered, which is then forgotten; what series mean is kept.

        Args:
            step_ms: how far apart the source means to read.
        """
        keys, fields, instants, values = self._columns
        read = pl.DataFrame(
            {"series": keys, "field": fields, "at_ms": instants, "value": values},
            schema={"series": pl.Int64, "field": pl.Int8, "at_ms": pl.Int64, "value": pl.Float64},
        )
        for column in self._columns:
            column.clear()
        counted, self.set_aside = self.set_aside, Counter()
        named = described(Series("", *known) for known in self._series)
        frame, aside = samples_of(read, named, step_ms=step_ms)
        return Samples(frame.drop("source"), counted + aside.get("", Counter()))


class Series(NamedTuple):
    """What the labels of a series say, and who told it."""

    source: str
    device: Device
    owner: Owner


def described(series: Iterable[Series], *, first: int = 0) -> pl.DataFrame:
    """One row per series, numbered in their order from `first`: what its labels say."""
    rows = [
        (
            source,
            device.node,
            device.name,
            device.uuid,
            device.model,
            owner.namespace,
            owner.pod,
            owner.pod_uid,
            owner.copy,
            bool(device.instance),
            device.memory_mib,
            device.micro_gpus,
        )
        for source, device, owner in series
    ]
    return (
        pl.DataFrame(rows, schema=_DESCRIBED, orient="row")
        .with_row_index("series", offset=first)
        .cast({"series": pl.Int64})
    )


def samples_of(
    read: pl.DataFrame, named: pl.DataFrame, *, step_ms: int
) -> tuple[pl.DataFrame, dict[str, Counter[str]]]:
    """
    The samples of readings, and what of them was set aside, by source and cause.

    Args:
        read: one row per reading; series, field (its place in `Field`), at_ms, value.
        named: one row per series, as `described` gives it.
        step_ms: how far apart the source means to read.

    Returns:
        A frame with the columns of table `gpu_sample` less cluster and seq.
    """
    aside: dict[str, Counter[str]] = {}
    wide = _by_instant(read, named, aside)
    return _owned(wide, step_ms), aside


def is_plain(series: Iterable[Series]) -> bool:
    """Whether each of a source's series is a sample by itself: no copies, no instances, none twice."""
    told = [(device, owner) for _, device, owner in series]
    rows = {(device.node, device.name, owner.namespace, owner.pod) for device, owner in told}
    return len(rows) == len(told) and all(
        not device.instance and owner.copy is None for device, owner in told
    )


def without_value(wide: pl.DataFrame) -> list[int]:
    """Which answers have a value that is none; column answer and one for each field, null if not told."""
    good = pl.all_horizontal(
        pl.col(name.name).is_between(0.0, HIGHEST[name]).fill_null(value=True)
        for name in Field
        if name in WANTED
    )
    return wide.filter(~good)["answer"].unique(maintain_order=True).to_list()


def samples_of_plain(wide: pl.DataFrame, named: pl.DataFrame, *, step_ms: int) -> pl.DataFrame:
    """
    As `samples_of`, where each series is plain and every value is one.

    Args:
        wide: one row per series and instant; series, at_ms, and a column for each field.
        named: one row per series, as `described` gives it, all from the first on.
        step_ms: how far apart the source means to read.
    """
    told = pl.concat([wide, named.drop("series")[wide["series"]]], how="horizontal")
    return _row(told).select(
        *_ROW,
        "gpu_model", "pod_uid", "activity", "engine", "memory_mib", "memory_total_mib", "micro_gpus",
        per_process=pl.lit(value=False),
        shares="shares",
        step_ms=pl.lit(step_ms, pl.Int64),
        pod_shares=pl.lit(0, pl.Int64),
    )  # fmt: skip


def _by_instant(read: pl.DataFrame, named: pl.DataFrame, aside: dict[str, Counter[str]]) -> pl.DataFrame:
    """One row per series and instant, with a column for each field; what is no value is null there."""
    told = read
    if named["instance"].any():
        told = read.join(named.select("series", "source", "node", "uuid", "instance"), on="series")
        # A GPU is cut and made whole again: only beside readings of its instances is it told of twice.
        beside = pl.col("instance").any().over("source", "node", "uuid", "at_ms")
        told = told.with_columns(parent=~pl.col("instance") & beside)
        util_of_instance = pl.col("instance") & (pl.col("field") == _FIELDS[Field.UTIL])
        for because, refused in ((PARENT, pl.col("parent")), (NOT_PER_INSTANCE, util_of_instance)):
            _count(aside, told.filter(refused).with_columns(cause=pl.lit(because)), named)
            told = told.filter(~refused)
    highest = pl.col("field").replace_strict(
        {_FIELDS[name]: limit for name, limit in HIGHEST.items()}, return_dtype=pl.Float64
    )
    value = pl.col("value")
    blank = pl.any_horizontal(value.is_between(first, last) for first, last in BLANKS)
    # Each blank lies beyond the highest value of every field.
    told = told.with_columns(good=value.is_between(0.0, highest))
    if not told["good"].all():
        # The order of `domain.gpu_sample.value_of`.
        cause = (
            pl.when(value.is_nan()).then(pl.lit(NoValue.NAN.value))
            .when(value.is_infinite()).then(pl.lit(NoValue.INFINITE.value))
            .when(blank).then(pl.lit(NoValue.BLANK.value))
            .otherwise(pl.lit(NoValue.OUT_OF_RANGE.value))
        )  # fmt: skip
        name = pl.col("field").replace_strict(
            {place: f"{name}: " for name, place in _FIELDS.items()}, return_dtype=pl.String
        )
        _count(aside, told.filter(~pl.col("good")).with_columns(cause=name + cause), named)
    wide = told.group_by("series", "at_ms").agg(
        *(
            value.filter(pl.col("good") & (pl.col("field") == _FIELDS[name])).max().alias(name.name)
            for name in Field
            if name is not Field.SM
        ),
        repeated=pl.len() - pl.col("field").n_unique(),
    )
    again = wide.filter(pl.col("repeated") > 0).with_columns(cause=pl.lit(REPEATED))
    _count(aside, again.select(pl.col("series", "cause").repeat_by("repeated").explode()), named)
    return wide.join(named, on="series")


def _count(aside: dict[str, Counter[str]], told: pl.DataFrame, named: pl.DataFrame) -> None:
    """Count what was told by source and cause; columns series and cause."""
    if told.height:
        by_source = told.join(named.select("series", "source"), on="series")
        for source, because, count in by_source.group_by("source", "cause").len().rows():
            aside.setdefault(source, Counter())[because] += count


def _owned(wide: pl.DataFrame, step_ms: int) -> pl.DataFrame:
    """
    One row per device, instant and pod.

    Copies of a series that a pod has on a shared device become one row that counts them. Where a device
    has both copies with a pod and a series without, the copies hold the pods' own values, of the
    driver's fields only.
    """
    has_copies = pl.col("copy").is_not_null() & (pl.col("pod") != "")
    at_device = ("source", "node", "device", "at_ms")
    shared = wide.filter(has_copies.any().over(at_device)) if wide["copy"].count() else wide.clear()
    plain = wide.join(shared.select(at_device).unique(), on=at_device, how="anti") if shared.height else wide
    parts = [_row(plain).with_columns(shares=pl.lit(0, pl.Int64), per_process=pl.lit(value=False))]
    if shared.height:
        own = shared.with_columns(
            per_process=(pl.col("pod") == "").any().over(at_device) & (pl.col("pod_uid") != "")
        ).with_columns(ENGINE=pl.when(~pl.col("per_process")).then(pl.col("ENGINE")))
        parts.append(_row(own, "per_process"))
    rows = pl.concat(parts, how="diagonal")
    one = rows.group_by(*_ROW).agg(
        pl.col("gpu_model", "pod_uid", "activity", "engine", "memory_mib", "memory_total_mib").max(),
        pl.col("micro_gpus", "per_process").max(),
        pl.col("shares").sum(),
    )
    total = pl.col("shares").sum().over("source", "node", "namespace", "pod", "at_ms")
    return one.with_columns(
        step_ms=pl.lit(step_ms, pl.Int64),
        pod_shares=pl.when(pl.col("pod") == "").then(0).otherwise(total)
        if shared.height
        else pl.lit(0, pl.Int64),
    ).sort("at_ms", *_ROW[:-1])


def _row(wide: pl.DataFrame, *further: str) -> pl.DataFrame:
    total = pl.coalesce(
        pl.col("TOTAL"),
        pl.col("USED") + pl.col("FREE") + pl.col("RESERVED").fill_null(0.0),
        pl.col("named_memory"),
    )
    return wide.select(
        *_KEY,
        *further,
        "at_ms",
        "gpu_model",
        "micro_gpus",
        # The frame library multiplies by 0.01: 35 % would be 0.35000000000000003.
        activity=pl.coalesce(pl.col("ENGINE"), (pl.col("UTIL") / 100).round(9)),
        engine=pl.col("ENGINE").is_not_null(),
        memory_mib=pl.col("USED"),
        memory_total_mib=total,
        shares=(pl.col("copy").is_not_null() & (pl.col("pod") != "")).cast(pl.Int64),
    )
