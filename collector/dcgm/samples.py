"""
From readings of single fields to samples of devices: one row per device, instant and pod named on it.

Pure, and by whole columns: a fortnight of a large site is some ten million readings.
"""

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import polars as pl

from collector.dcgm.exposition import labels_of
from domain.gpu_sample import BLANKS, HIGHEST, Device, Field, NoValue, Owner, device_of, owner_of

NO_DEVICE: Final = "no UUID: the series names no device"
BAD_LABELS: Final = "labels that cannot be read"
BAD_LINE: Final = "a line that cannot be read"
REPEATED: Final = "read more than once for one instant"
PARENT: Final = "a GPU that is cut into MIG instances, which are read too"
NOT_PER_INSTANCE: Final = "GPU_UTIL of a MIG instance: not supported"

_FIELDS: Final = {name: place for place, name in enumerate(Field)}
_WANTED: Final = frozenset(str(name) for name in Field if name is not Field.SM)
_KEY: Final = ("node", "device", "namespace", "pod", "pod_uid")


def is_wanted(name: str) -> bool:
    """Whether a family becomes part of a sample."""
    return name in _WANTED


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
            return self._by_labels[labels]
        except KeyError:
            try:
                known = self.series(labels_of(labels))
            except ValueError:
                self.set_aside[BAD_LABELS] += 1
                return None
            self._by_labels[labels] = known
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
        named = _described(self._series)
        return Samples(_owned(_by_instant(read, named, counted), step_ms), counted)


def _described(series: list[tuple[Device, Owner]]) -> pl.DataFrame:
    """One row per series: what its labels say."""
    instances = {(device.node, device.uuid) for device, _ in series if device.instance}
    rows = [
        {
            "series": place,
            "node": device.node,
            "device": device.name,
            "gpu_model": device.model,
            "namespace": owner.namespace,
            "pod": owner.pod,
            "pod_uid": owner.pod_uid,
            "copy": owner.copy,
            "instance": bool(device.instance),
            "parent": not device.instance and (device.node, device.uuid) in instances,
            "named_memory": device.memory_mib,
            "micro_gpus": device.micro_gpus,
        }
        for place, (device, owner) in enumerate(series)
    ]
    text, truth = pl.String, pl.Boolean
    schema = {"series": pl.Int64, **dict.fromkeys((*_KEY[:2], "gpu_model", *_KEY[2:], "copy"), text)}
    schema |= {"instance": truth, "parent": truth, "named_memory": pl.Float64, "micro_gpus": pl.Int64}
    return pl.DataFrame(rows, schema=schema)


def _by_instant(read: pl.DataFrame, named: pl.DataFrame, counted: Counter[str]) -> pl.DataFrame:
    """One row per series and instant, with a column for each field; what is no value is null there."""
    highest = pl.col("field").replace_strict(
        {_FIELDS[name]: limit for name, limit in HIGHEST.items()}, return_dtype=pl.Float64
    )
    value = pl.col("value")
    blank = pl.any_horizontal(value.is_between(first, last) for first, last in BLANKS)
    # The order of `domain.gpu_sample.value_of`.
    cause = (
        pl.when(value.is_nan()).then(pl.lit(NoValue.NAN.value))
        .when(value.is_infinite()).then(pl.lit(NoValue.INFINITE.value))
        .when(blank).then(pl.lit(NoValue.BLANK.value))
        .when((value < 0) | (value > highest)).then(pl.lit(NoValue.OUT_OF_RANGE.value))
    )  # fmt: skip
    told = read.join(named.select("series", "instance", "parent"), on="series").with_columns(cause=cause)
    counted[PARENT] += int(told["parent"].sum())
    told = told.filter(~pl.col("parent"))
    util_of_instance = pl.col("instance") & (pl.col("field") == _FIELDS[Field.UTIL])
    counted[NOT_PER_INSTANCE] += told.select(util_of_instance.sum()).item()
    told = told.filter(~util_of_instance)
    for number, because, count in told.group_by("field", "cause").len().rows():
        if because is not None:
            counted[f"{list(Field)[number]}: {because}"] += count
    good = pl.when(pl.col("cause").is_null()).then(value)
    wide = told.group_by("series", "at_ms").agg(
        *(
            good.filter(pl.col("field") == _FIELDS[name]).max().alias(name.name)
            for name in Field
            if name is not Field.SM
        ),
        (pl.len() - pl.col("field").n_unique()).alias("repeated"),
    )
    counted[REPEATED] += int(wide["repeated"].sum())
    for cause_of, count in list(counted.items()):
        if not count:
            del counted[cause_of]
    return wide.join(named, on="series")


def _owned(wide: pl.DataFrame, step_ms: int) -> pl.DataFrame:
    """
    One row per device, instant and pod.

    Copies of a series that a pod has on a shared device become one row that counts them. Where a device
    has both copies with a pod and a series without, the copies hold the pods' own values, of the
    driver's fields only.
    """
    has_copies = pl.col("copy").is_not_null() & (pl.col("pod") != "")
    at_device = ("node", "device", "at_ms")
    shared = wide.filter(has_copies.any().over(at_device)) if wide["copy"].count() else wide.clear()
    plain = wide.join(shared.select(at_device).unique(), on=at_device, how="anti") if shared.height else wide
    parts = [_row(plain).with_columns(shares=pl.lit(0, pl.Int64), per_process=pl.lit(value=False))]
    if shared.height:
        own = shared.with_columns(
            per_process=(pl.col("pod") == "").any().over(at_device) & (pl.col("pod_uid") != "")
        ).with_columns(ENGINE=pl.when(~pl.col("per_process")).then(pl.col("ENGINE")))
        parts.append(_row(own, "per_process"))
    rows = pl.concat(parts, how="diagonal")
    one = rows.group_by("node", "device", "namespace", "pod", "at_ms").agg(
        pl.col("gpu_model", "pod_uid", "activity", "engine", "memory_mib", "memory_total_mib").max(),
        pl.col("micro_gpus", "per_process").max(),
        pl.col("shares").sum(),
    )
    total = pl.col("shares").sum().over("node", "namespace", "pod", "at_ms")
    return one.with_columns(
        step_ms=pl.lit(step_ms, pl.Int64),
        pod_shares=pl.when(pl.col("pod") == "").then(0).otherwise(total),
    ).sort("at_ms", "node", "device", "namespace", "pod")


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
