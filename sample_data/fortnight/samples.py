"""
GPU metrics of a truth, one row a minute for each device of each pod, and for each device that is free.

Everything is drawn from the truth by whole columns, with arithmetic that does not depend on a library's
random numbers: the same truth gives the same rows.
"""

import json
import lzma
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

import polars as pl

from sample_data.fortnight.causes import Interval, joined
from sample_data.fortnight.site import Flavor, Site, fortnight_site, little_site

STEP_MS: Final = 60_000
_SCHEMA: Final = {
    "node": pl.String,
    "uuid": pl.String,
    "instance": pl.String,
    "pod": pl.String,
    "from_ms": pl.Int64,
    "to_ms": pl.Int64,
    "namespace": pl.String,
    "profile": pl.String,
    "gpu_model": pl.String,
    "copies": pl.Int8,
    "total": pl.Int32,
    "seed": pl.Int64,
    "offset_ms": pl.Int64,
    "low": pl.Float32,
    "spread": pl.Float32,
    "memory": pl.Float32,
}
# Activity from, its spread, and the part of the memory that is in use, by the letter of a load.
_BY_LOAD: Final = {
    "T": (0.85, 0.14, 0.74),
    "I": (0.24, 0.12, 0.41),
    "B": (0.20, 0.55, 0.38),
    "N": (0.0, 0.0, 0.03),
    "R": (0.0, 0.0, 0.72),
}
_FREE: Final = (0.0, 0.0, 0.0)
_STARTING: Final = "N"
# A linear generator of 31 bits, twice: enough for noise, and the same everywhere. A load stays for minutes.
_FACTOR: Final = 1_103_515_245
_MODULUS: Final = 2_147_483_648
_STEADY_MINUTES: Final = 3
_ROWS_IN_A_GROUP: Final = 500_000
_CONTAINER: Final = "main"


def read_truth(folder: Path) -> dict[str, Any]:
    """The truth beside a recording."""
    packed = (folder / "ground_truth.json.xz").read_bytes()
    truth: dict[str, Any] = json.loads(lzma.decompress(packed))
    return truth


def samples(truth: dict[str, Any], *, from_ms: int = 0) -> pl.DataFrame:
    """
    One row per device, pod on it and minute; a free device has one without a pod.

    A dark exporter leaves a hole, and a card that fell off the bus is not told of any more.

    Columns: at_ms, node, uuid, instance ('' for a whole card), profile, gpu_model, namespace, pod,
    container, copies (of a shared card's series; 0 elsewhere), activity (0 to 1, two decimals),
    fb_used_mib, fb_total_mib. In order of device, then time.

    Args:
        truth: of a recording.
        from_ms: nothing before it.
    """
    site = _site_of(truth)
    end_ms = round(truth["end"] * 1000)
    # In the order of the result, so that nothing has to be sorted once there are millions of rows.
    found = sorted(_stretches(truth, site, end_ms))
    stretches = pl.DataFrame(found, schema=_SCHEMA, orient="row").with_columns(
        pl.col(name).cast(pl.Categorical) for name, kind in _SCHEMA.items() if kind == pl.String
    )
    offset = pl.col("offset_ms")
    start = pl.max_horizontal("from_ms", pl.lit(from_ms))
    minute = pl.col("minute")
    rows = (
        stretches.with_columns(
            first=(start - offset + STEP_MS - 1) // STEP_MS,
            last=(pl.col("to_ms") - offset + STEP_MS - 1) // STEP_MS,
            used=(pl.col("total") * pl.col("memory")).round().cast(pl.Int32),
        )
        .filter(pl.col("first") < pl.col("last"))
        .with_columns(minute=pl.int_ranges("first", "last"))
        .explode("minute")
        .with_columns(
            at_ms=minute * STEP_MS + offset,
            noise=(minute // _STEADY_MINUTES * _FACTOR + pl.col("seed")) % _MODULUS,
        )
        .with_columns(noise=(pl.col("noise") * _FACTOR + 12_345) % _MODULUS // 65_536 % 1000)
    )
    for gap in truth["dark"]:
        dark = pl.col("at_ms").is_between(round(gap["from"] * 1000), round(gap["to"] * 1000), closed="left")
        rows = rows.filter(~(dark & (pl.col("node") == gap["node"])))
    return rows.select(
        "at_ms", "node", "uuid", "instance", "profile", "gpu_model", "namespace", "pod",
        container=pl.when(pl.col("pod") == "").then(pl.lit("")).otherwise(pl.lit(_CONTAINER)),
        copies="copies",
        activity=(pl.col("low") + pl.col("spread") * pl.col("noise") / 1000).round(2).cast(pl.Float32),
        fb_used_mib="used",
        fb_total_mib="total",
    )  # fmt: skip


def write_parquet(truth: dict[str, Any], path: Path) -> int:
    """Write the samples of a truth; gives how many."""
    import pyarrow.parquet as pq

    frame = samples(truth)
    texts = frame.with_columns(pl.col(pl.Categorical).cast(pl.String))
    pq.write_table(
        texts.to_arrow(),
        path,
        compression="zstd",
        compression_level=15,
        # Instants that follow each other by a minute: their differences take a fifth of the room.
        column_encoding={"at_ms": "DELTA_BINARY_PACKED"},
        use_dictionary=[name for name in texts.columns if name != "at_ms"],
        row_group_size=_ROWS_IN_A_GROUP,
    )
    return frame.height


def _site_of(truth: dict[str, Any]) -> Site:
    nodes = {row["node"] for row in truth["nodes"]}
    for site in (fortnight_site(), little_site()):
        if nodes == {node for flavor in site.flavors.values() for node in flavor.nodes}:
            return site
    message = f"a truth of {len(nodes)} nodes: expected one of the sites of this package"
    raise ValueError(message)


def _stretches(truth: dict[str, Any], site: Site, end_ms: int) -> Iterator[tuple[object, ...]]:
    """Rows of `_SCHEMA`: one device of one pod under one load."""
    flavor_of = {node: flavor for flavor in site.flavors.values() for node in flavor.nodes}
    order = {node: number for number, node in enumerate(sorted(flavor_of))}
    taken: dict[tuple[str, str], list[Interval]] = defaultdict(list)
    shared: dict[str, list[tuple[int, int, float, float, float]]] = defaultdict(list)
    later = []
    for workload in truth["workloads"]:
        for pod in workload["pods"]:
            flavor = flavor_of[pod["node"]]
            offset_ms = order[pod["node"]] * 1_787 % STEP_MS
            for number, device in enumerate(pod["devices"]):
                uuid, _, instance = device.partition("/")
                known = (pod["node"], uuid, instance, pod["name"])
                released_ms = end_ms if pod["released"] is None else round(pod["released"] * 1000)
                taken[uuid, instance].append((round(pod["bound"] * 1000), released_ms))
                says = (workload["namespace"], pod["profile"], flavor.model_name)
                seed = _seed(uuid)
                total = _memory_mib(flavor, pod["profile"])
                parts = list(_loads_of(pod, number, end_ms))
                if "shared" in flavor.carvings[0].resource:
                    shared[uuid] += [(start, end, *_BY_LOAD[load]) for start, end, load in parts]
                    later.append((known, (*says, 1, total, seed, offset_ms), parts[0][0], parts[-1][1]))
                    continue
                for start, end, load in parts:
                    yield (*known, start, end, *says, 0, total, seed, offset_ms, *_BY_LOAD[load])
    for device in truth["devices"]:
        node, uuid, instance, profile = (device[name] for name in ("node", "uuid", "instance", "profile"))
        says_it = ("", profile, flavor_of[node].model_name)
        about = (0, _memory_mib(flavor_of[node], profile), _seed(uuid), order[node] * 1_787 % STEP_MS)
        until_ms = end_ms if device["until"] is None else round(device["until"] * 1000)
        for since, until in _between(taken[uuid, instance], round(truth["start"] * 1000), until_ms):
            yield (node, uuid, instance, "", since, until, *says_it, *about, *_FREE)
    for known, says_more, start, end in later:
        for since, until, *used in _together(shared[known[1]], start, end):
            yield (*known, since, until, *says_more, *used)


def _loads_of(pod: dict[str, Any], device: int, end_ms: int) -> Iterator[tuple[int, int, str]]:
    """A pod's stay on one device, cut by its load: nothing before and between its runs."""
    now_ms = round(pod["bound"] * 1000)
    released_ms = end_ms if pod["released"] is None else round(pod["released"] * 1000)
    for start, end, _, loads in pod["runs"]:
        start_ms, run_end_ms = round(start * 1000), released_ms if end is None else round(end * 1000)
        yield now_ms, start_ms, _STARTING
        text = loads[min(device, len(loads) - 1)].split()
        starts = [start_ms + int(part[:-1]) * 1000 for part in text]
        for since, until, part in zip(starts, [*starts[1:], run_end_ms], text, strict=True):
            yield since, until, part[-1]
        now_ms = run_end_ms
    yield now_ms, released_ms, _STARTING


def _together(
    loads: list[tuple[int, int, float, float, float]], start_ms: int, end_ms: int
) -> Iterator[tuple[int, int, float, float, float]]:
    """What a shared card as a whole does while one pod is on it: the busiest counts, memory adds up."""
    near = [one for one in loads if one[0] < end_ms and start_ms < one[1]]
    edges = sorted({start_ms, end_ms} | {at for one in near for at in one[:2] if start_ms < at < end_ms})
    for since, until in pairwise(edges):
        on = [one for one in near if one[0] <= since < one[1]]
        low, spread = max((one[2:4] for one in on), default=(0.0, 0.0))
        yield since, until, low, spread, min(0.95, sum(one[4] for one in on))


def _between(taken: list[Interval], start_ms: int, end_ms: int) -> Iterator[Interval]:
    """What is left of a time."""
    for since, until in [*joined(taken), (end_ms, end_ms)]:
        if start_ms < min(since, end_ms):
            yield start_ms, min(since, end_ms)
        start_ms = max(start_ms, until)


def _seed(uuid: str) -> int:
    return int(uuid[-8:], 16) % _MODULUS


def _memory_mib(flavor: Flavor, profile: str) -> int:
    """Of the device: a profile says it in GB."""
    return int(profile.partition(".")[2][:-2]) * 1024 if profile else flavor.memory_mib
