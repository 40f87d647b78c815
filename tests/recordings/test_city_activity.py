"""
GPU metrics of the long recording: what exporters answered, and what Prometheus stored of it in two ways.

The pods, their states and their devices come from the ground truth; the samples never saw it.
"""

import time
from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import polars as pl
import pytest

from api.answers import Question
from collector.dcgm.answers import read_saved
from collector.recording import import_recording
from domain.policy import Policy
from domain.window import FixedClock
from service.activity import Activity
from service.answers import Answers
from service.gpu_metrics import Taken, keep_parts, keep_scrapes, scrape_files
from service.refresh import Refresher
from store.embedded import Store
from tests.recordings.comparing import TENANCY, ground_truth, rows, show
from tests.shared import shared

pytestmark = [pytest.mark.recordings, pytest.mark.long, pytest.mark.timeout(300)]

# What a pod holds follows from pods, nodes and the labels of namespaces; the other streams are not needed.
NEEDED = ("pods.", "nodes.", "namespaces.")
JOBS = ("prometheus/nvidia-dcgm-exporter", "prometheus/nvidia-dcgm-exporter-honor")
EXPORTERS = "exporters"
SOURCES = (EXPORTERS, *JOBS)
# Its exporters write 91.4 % while a pod works, about 30 % while it waits for input, 0 % while it idles.
BANDS = {"active": (0.6, 1.01), "input_bound": (0.05, 0.6), "idle": (-1.0, 0.05)}
STATE_BANDS = {"active": "active", "input_bound": "input_bound"}

PIECES = """
-- One row per pod's device and reading whose values are the pod's own.
with series as (select * from gpu_series(0, $until_ms)),
part as (select * from gpu_part('series', 0)),
reading as (select * from gpu_reading('series', 0, $until_ms))
select part.pod_uid, piece.micro_gpus, piece.start_ms, piece.end_ms, piece.activity
from gpu_piece('series', 'part', 'reading') as piece
inner join part using (part_no)
where piece.own and piece.activity is not null
"""


@dataclass(slots=True)
class Site:
    """What the product made of the samples of one source."""

    taken: Taken
    pieces: pl.DataFrame
    levels: dict[tuple[str, str], float]
    nodes: dict[str, float | None]
    coverage: float | None
    last: list[dict[str, Any]]
    cards: dict[str, float]


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Site]:
    """The same lives with the samples of each source in turn."""
    before = time.process_time()
    folder = shared("data/recorded/city")
    part = tmp_path_factory.mktemp("city")
    for file in folder.iterdir():
        if file.name.startswith(NEEDED):
            (part / file.name).symlink_to(file)
    store = Store.open(None)
    import_recording(part, "city", store)
    Refresher(store=store, tenancy=TENANCY).refresh()
    found = {}
    for source in SOURCES:
        if source == EXPORTERS:
            taken = keep_scrapes(store, "city", scrape_files([folder / "dcgm"], None))
        else:
            parts = read_saved([folder / "prometheus"], step_ms=None, source=source)
            taken = keep_parts(store, "city", parts)
        Activity(store, Policy()).refresh("city", 0)
        found[source] = told(store, taken)
        with store.transaction() as connection:
            for table in OF_SAMPLES:
                connection.execute(f"delete from {table}")  # noqa: S608 (one of ours)
    store.close()
    show(f"\ncity's samples read and folded three times in {time.process_time() - before:.1f} CPU-s")
    return found


def told(store: Store, taken: Taken) -> Site:
    answers = Answers(store, TENANCY, Policy(), FixedClock(END_MS))
    nodes = answers.metric("gpu_activity_ratio", Question(by=("node",))).rows
    (coverage,) = answers.metric("gpu_sample_coverage_ratio", Question(by=())).rows
    levels = rows(store, LEVELS)
    return Site(
        taken=taken,
        pieces=store.frame(PIECES, {"until_ms": END_MS}),
        levels={(row["model"], row["level"]): float(row["gpu_seconds"]) for row in levels},
        nodes={row.labels["node"]: row.value for row in nodes},
        coverage=coverage.value,
        last=rows(store, LAST),
        cards={row["node"]: float(row["cards"]) for row in rows(store, CARDS)},
    )


@pytest.fixture(scope="module")
def truth() -> dict[str, Any]:
    return ground_truth("city")


END_MS = 1_795_969_681_281
OF_SAMPLES = ("gpu_sample", "gpu_sample_mark", "gpu_hour", "activity_span", "activity_holding", "watermark")
LEVELS = """
-- One row per model of node and level.
select
    holding.gpu_model as model,
    level,
    sum(span.micro_gpus * (end_ms - start_ms))::double / 1e9 as gpu_seconds
from activity_span as span inner join holding using (pod_uid)
group by all
"""


LAST = """
-- One row per node: when the last value of each of its devices was read.
select node, list(last_ms) as ends
from (
    select node, device, max(at_ms) as last_ms from gpu_sample
    where activity is not null
    group by node, device
)
group by node
"""
CARDS = """
-- One row per node: the sum of the parts of cards of which samples were read.
select node, sum(micro_gpus)::double / 1e6 as cards
from (select distinct node, device, micro_gpus from gpu_sample)
group by node
"""
# How long after a change of state samples may still tell of the state before: the exporter collects each
# 10 s, Prometheus scrapes each 10 s, and a sample stands for 1.5 steps at most.
LATE_SECONDS = {EXPORTERS: 10 + 1.5 * 5, **dict.fromkeys(JOBS, 10 + 10 + 1.5 * 15)}
# Seen of the time held: what is missing is the time from the binding until the pod is named on the device
# (pods live for a minute here, and a site's hour is compressed to one), exporters that did not answer, and
# the lost GPU and node.
LEAST_SEEN = {EXPORTERS: 0.88, **dict.fromkeys(JOBS, 0.80)}


# Of a team's time; a class, user or model whose sessions change all the time is late more often.
MOST_MISPLACED_OF_A_TEAM = 0.08
SHOWN_GPU_SECONDS = 5_000


@dataclass(slots=True)
class Seen:
    """GPU-seconds of a team, say, by band: as samples say, and as the truth says of the same time."""

    ours: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    truth: dict[str, float] = field(default_factory=lambda: defaultdict(float))
    misplaced: float = 0.0


def bands_by(label: str, site: Site, truth: dict[str, Any]) -> dict[str, Seen]:
    """Both over exactly the time that was seen, by a label of the truth's pods."""
    segments = pl.DataFrame(
        [
            (pod["uid"], whose, STATE_BANDS.get(state, "idle"), round(a * 1000), round(b * 1000))
            for pod, whose in pods_of(label, truth)
            for a, b, state in pod["segments"]
        ],
        schema=["pod_uid", "whose", "state", "from_ms", "to_ms"],
        orient="row",
    )
    start = pl.max_horizontal("start_ms", "from_ms")
    end = pl.min_horizontal("end_ms", "to_ms")
    band = pl.lit("idle")
    for name, (low, high) in BANDS.items():
        inside = pl.col("activity").is_between(low, high, closed="left")
        band = pl.when(inside).then(pl.lit(name)).otherwise(band)
    both = (
        site.pieces.join(segments, on="pod_uid")
        .with_columns(gpu_s=(end - start) * pl.col("micro_gpus") / 1e9, band=band)
        .filter(pl.col("gpu_s") > 0)
    )
    found: dict[str, Seen] = defaultdict(Seen)
    summed = both.group_by("whose", "band", "state").agg(pl.col("gpu_s").sum())
    for whose, ours, state, gpu_s in summed.rows():
        found[whose].ours[ours] += gpu_s
        found[whose].truth[state] += gpu_s
        found[whose].misplaced += gpu_s if ours != state else 0.0
    return found


def pods_of(label: str, truth: dict[str, Any]) -> list[tuple[dict[str, Any], str]]:
    """Each pod of the truth with its workload, its model, or its workload's team, user or class."""
    workloads = {f"{one['kind']}/{one['namespace']}/{one['name']}": one for one in truth["workloads"]}
    own = {"workload", "model"}
    return [
        (pod, str(pod[label] if label in own else workloads[pod["workload"]][label])) for pod in truth["pods"]
    ]


def changes_by(label: str, truth: dict[str, Any]) -> dict[str, float]:
    """GPUs times changes from one band to another; a pod's first and last band count as changes."""
    found: dict[str, float] = defaultdict(float)
    for pod, whose in pods_of(label, truth):
        bands = [STATE_BANDS.get(state, "idle") for _, _, state in pod["segments"]]
        turns = sum(one != other for one, other in pairwise(bands))
        found[whose] += pod["gpu"] * (turns + 1)
    return found


@pytest.mark.parametrize("label", ["team", "model", "user", "class", "workload"])
@pytest.mark.parametrize("source", SOURCES)
def test_what_gpus_did_is_what_the_truth_says_of_the_time_seen(
    source: str, label: str, sites: dict[str, Site], truth: dict[str, Any]
) -> None:
    changes = changes_by(label, truth)
    found = bands_by(label, sites[source], truth)
    show(f"\n{source}, {len(found)} by {label}: GPU-seconds, ours / the truth's of the same time")
    for whose, seen in sorted(found.items()):
        # A sample may be late after each change, on each GPU; and it was never late otherwise.
        assert seen.misplaced <= changes[whose] * LATE_SECONDS[source], whose
        for band in BANDS:
            assert abs(seen.ours[band] - seen.truth[band]) <= seen.misplaced + 1, (whose, band)
        total = sum(seen.truth.values())
        if total > SHOWN_GPU_SECONDS:
            told = "   ".join(f"{band} {seen.ours[band]:7.0f} / {seen.truth[band]:7.0f}" for band in BANDS)
            show(f"{whose:<22} {told}   misplaced {seen.misplaced / total:.1%}")
        assert label != "team" or seen.misplaced <= MOST_MISPLACED_OF_A_TEAM * total, whose
    if label == "team":
        assert set(found) == set(truth["gpu_seconds_by_team"])


def test_both_ways_of_scraping_and_the_exporters_themselves_agree(
    sites: dict[str, Site], truth: dict[str, Any]
) -> None:
    shares = {}
    for source, site in sites.items():
        for team, seen in bands_by("team", site, truth).items():
            total = sum(seen.ours.values())
            for band in BANDS:
                shares[source, team, band] = seen.ours[band] / total
    worst: dict[str, float] = defaultdict(float)
    for (source, team, band), share in shares.items():
        apart = abs(share - shares[EXPORTERS, team, band])
        worst[source] = max(worst[source], apart)
    both = max(abs(shares[JOBS[0], team, band] - shares[JOBS[1], team, band]) for _, team, band in shares)
    show("\nfarthest apart from the exporters, as a share of a team's time:", dict(worst), "both jobs:", both)
    # The jobs scrape at other seconds of the exporters' 10 s, with a grid three times as coarse.
    assert max(worst.values()) < 0.02
    assert both < 0.02


def test_every_second_held_is_seen_or_missing_for_a_known_cause(sites: dict[str, Site]) -> None:
    for source, site in sites.items():
        show(source, f"seen of the time held: {site.coverage:.3f}")
        assert site.coverage is not None
        assert LEAST_SEEN[source] < site.coverage <= 1


def test_blanks_time_outs_and_refusals_are_counted(sites: dict[str, Site]) -> None:
    taken = sites[EXPORTERS].taken
    # The README counts 113 and 100, and 94 answers with blanks of which every second one is repeated.
    aside = {why.partition(": ")[2]: count for why, count in taken.set_aside.items() if "scrape" in why}
    assert aside == {"timeout": 113, "refused": 100}
    assert taken.failed == 213
    blanks = {why: count for why, count in taken.set_aside.items() if "blank" in why}
    assert sorted(why.partition(":")[0] for why in blanks) == ["DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_GPU_UTIL"]
    assert set(blanks.values()) == {188}
    for job in JOBS:
        assert all("blank" in why for why in sites[job].taken.set_aside)


def test_a_lost_gpu_and_a_lost_node_end_their_series(sites: dict[str, Site], truth: dict[str, Any]) -> None:
    gone = {row["node"]: row for row in sites[EXPORTERS].last}
    start_s = truth["epoch_start"]
    # h100-05 loses a GPU 1,901 s after the start; its other seven are read to the end.
    ends = sorted((at_ms / 1000 - start_s) for at_ms in gone["h100-05"]["ends"])
    assert len(ends) == 8
    assert abs(ends[0] - 1901) < LATE_SECONDS[EXPORTERS]
    assert min(ends[1:]) > 2600


def test_shared_gpus_are_nobodys_unless_one_pod_is_on_them_and_slices_count_as_parts(
    sites: dict[str, Site],
) -> None:
    for site in sites.values():
        levels = {level for model, level in site.levels if model == "NVIDIA-L40S"}
        assert "shared" in levels
        assert not [model for model, level in site.levels if level == "shared" and "L40S" not in model]
        assert site.nodes["mig-01"] is not None
        assert 0 < site.nodes["mig-01"] < 1
    # Four whole GPUs, two cut into sevenths, two into twice three sevenths: a seventh of each is left over.
    assert sites[EXPORTERS].cards["mig-01"] == pytest.approx(4 + 14 / 7 + 4 * 3 / 7, abs=1e-4)
