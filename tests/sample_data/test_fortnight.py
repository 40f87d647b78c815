"""The fortnight is reproducible, tells the stories that it should, and never does the impossible."""

import gzip
import itertools
import json
import lzma
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from collector.dcgm.parquet import read_parquet
from domain.window import parse_instant
from sample_data.fortnight import END, EXPORTERS, FORTNIGHT, SAMPLES
from sample_data.fortnight.causes import joined
from sample_data.fortnight.exporters import write_exporters
from sample_data.fortnight.generate import SEED, Recording, generate
from sample_data.fortnight.samples import STEP_MS, read_truth, samples
from sample_data.fortnight.site import little_site
from sample_data.fortnight.stories import BOUND_ONE_BY_ONE, CRASH_LOOP, CRASHES_AGAIN, LONG_WAIT, NEVER_FITS
from sample_data.tape import STREAMS
from service.cli import run
from service.gpu_metrics import scrape_files
from store.embedded import Store

SEEDS = range(3)
MOST_BYTES = 5_000_000


def little(seed: int) -> Recording:
    return generate(seed=seed, end_ms=parse_instant(END), site=little_site(), days=3)


@pytest.fixture(scope="module", params=SEEDS)
def sample(request: pytest.FixtureRequest) -> Recording:
    return little(request.param)


@pytest.fixture(scope="module")
def committed() -> dict[str, Any]:
    return read_truth(FORTNIGHT)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_committed_fortnight_is_what_the_generator_writes(tmp_path: Path) -> None:
    generate(seed=SEED, end_ms=parse_instant(END)).write(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in FORTNIGHT.iterdir()}
    # Contents, not compressed bytes: these depend on the builds of the packers.
    for path in tmp_path.glob("*.xz"):
        assert lzma.decompress(path.read_bytes()) == lzma.decompress((FORTNIGHT / path.name).read_bytes())
    answers = [path.relative_to(tmp_path) for path in tmp_path.glob(f"{EXPORTERS}/*")]
    assert {path.name for path in answers} == {path.name for path in (FORTNIGHT / EXPORTERS).iterdir()}
    for name in answers:
        assert gzip.decompress((tmp_path / name).read_bytes()) == gzip.decompress(
            (FORTNIGHT / name).read_bytes()
        )
    ours, theirs = (pl.read_parquet(folder / SAMPLES) for folder in (tmp_path, FORTNIGHT))
    assert ours.equals(theirs)


def test_the_committed_fortnight_is_below_five_megabytes() -> None:
    assert sum(path.stat().st_size for path in FORTNIGHT.rglob("*.*")) < MOST_BYTES


def test_the_same_seed_and_end_give_the_same_recording() -> None:
    one, two = little(7), little(7)
    assert (one.lines, one.lists, one.truth) == (two.lines, two.lists, two.truth)
    assert samples(one.truth).equals(samples(two.truth))


def test_a_month_ends_within_it(committed: dict[str, Any]) -> None:
    start, end = (committed[name] for name in ("start", "end"))
    assert start < parse_instant("2026-11-01T00:00:00Z") / 1000 < end
    assert end - start == 14 * 86_400


def test_its_stories_happen(committed: dict[str, Any]) -> None:
    workloads = committed["workloads"]
    marked = defaultdict(list)
    for workload in workloads:
        marked[workload["mark"]].append(workload)
    assert [one["pods"] for one in marked[NEVER_FITS]] == [[]]
    assert len(marked[LONG_WAIT]) == len(marked[BOUND_ONE_BY_ONE]) == 1
    assert all(one["pods"][0]["restarts"] >= 3 for one in marked[CRASH_LOOP] if one["ended"])
    # The second week's crashes: nothing is saved, and each goes back to the start.
    crashed = [one for one in marked[CRASHES_AGAIN] if len(one["attempts"]) > 2]
    assert len(crashed) > 10
    assert all(one["submitted"] > committed["start"] + 6 * 86_400 for one in crashed)
    ends = Counter(attempt["outcome"] for one in workloads for attempt in one["attempts"])
    assert ends["preempted"] > 50
    assert ends["infra_failed"] >= 1
    assert ends["failed"] > 50
    assert {one["team"] for one in workloads} == {"vision", "nlp", "speech", "ads", "robotics", "platform"}
    # The namespace `atlas` changes hands, and a person moves quota, both amid it.
    assert {one["team"] for one in workloads if one["namespace"] == "atlas"} == {"vision", "nlp"}
    assert len({row["nominal"] for row in committed["quotas"] if row["queue"] == "nlp"}) > 2
    assert {row["missing"] for row in committed["nodes"]} == {0, 1}
    assert any(row["gone"] for row in committed["nodes"])


def test_one_team_is_starved_and_one_is_wasteful(committed: dict[str, Any]) -> None:
    last = [row for row in committed["balances"] if row["at"] == committed["end"]]
    debts = {row["queue"]: row["debt"] for row in last if row["pool"] == "company/a100"}
    assert max(debts, key=lambda queue: debts[queue]) == "speech"
    assert debts["speech"] > 500
    wasted, held = Counter[str](), Counter[str]()
    for workload in committed["workloads"]:
        for cause, seconds in workload["gpu_seconds"].items():
            held[workload["team"]] += seconds
            if cause in {"idle", "resident_idle", "crash_lost", "backoff"}:
                wasted[workload["team"]] += seconds
    queued = [team for team in held if team != "platform"]
    assert max(queued, key=lambda team: wasted[team] / held[team]) == "ads"


def test_no_device_is_ever_given_to_two_pods(sample: Recording) -> None:
    slices = {
        flavor.name: max(one.parts for one in flavor.carvings) for flavor in little_site().flavors.values()
    }
    steps: dict[tuple[str, str], list[tuple[float, int]]] = defaultdict(list)
    for workload, pod in _pods(sample.truth):
        for device in pod["devices"]:
            key = (workload["flavor"], device)
            steps[key] += [(pod["bound"], 1), (pod["released"] or sample.truth["end"], -1)]
    for (flavor, device), changes in steps.items():
        most = max(itertools.accumulate(step for _, step in sorted(changes)))
        assert most <= (slices[flavor] if flavor == "l40s" else 1), device


def test_what_is_held_is_the_sum_of_its_causes(sample: Recording) -> None:
    for workload in sample.truth["workloads"]:
        held = sum(
            ((pod["released"] or sample.truth["end"]) - pod["bound"])
            * pod["micro_gpus"] * len(pod["devices"]) / 1_000_000
            for pod in workload["pods"]
        )  # fmt: skip
        assert sum(workload["gpu_seconds"].values()) == pytest.approx(held, abs=0.05), workload["name"]


def test_nobody_is_entitled_to_more_than_demand_or_all_to_more_than_there_is(sample: Recording) -> None:
    pools: dict[tuple[float, str], list[dict[str, Any]]] = defaultdict(list)
    for row in sample.truth["balances"]:
        assert row["entitled"] <= row["demand"] + 1e-6
        pools[row["at"], row["pool"]].append(row)
    for rows in pools.values():
        # Each number of the truth has six places.
        slack = 1e-6 * len(rows)
        assert sum(row["entitled"] for row in rows) <= rows[0]["capacity"] + slack
        assert sum(row["lent"] for row in rows) <= sum(row["borrowed"] for row in rows) + slack


def test_an_object_is_added_once_then_modified_then_at_most_once_deleted(sample: Recording) -> None:
    lives: dict[tuple[str, str], str] = defaultdict(str)
    for stream, listed in sample.lists.items():
        for item in json.loads(listed)["items"]:
            lives[stream, item["metadata"]["uid"]] = "A"
    for line in sample.lines:
        event = json.loads(line.text)
        if event["type"] != "BOOKMARK":
            lives[line.stream, event["object"]["metadata"]["uid"]] += event["type"][0]
    wrong = [
        key for key, pattern in lives.items() if pattern.strip("M") not in {"A", "AD"} and not _once(pattern)
    ]
    assert wrong == []


def test_a_device_of_a_pod_has_one_sample_a_minute_except_where_its_node_is_dark(sample: Recording) -> None:
    frame = samples(sample.truth)
    assert frame.select("node", "uuid", "instance", "pod", "at_ms").is_duplicated().sum() == 0
    dark = sample.truth["dark"]
    counted = dict(frame.group_by("pod").len().rows())
    for _, pod in _pods(sample.truth):
        start_ms, end_ms = round(pod["bound"] * 1000), round((pod["released"] or sample.truth["end"]) * 1000)
        expected = len(pod["devices"]) * (end_ms - start_ms) / STEP_MS
        hidden = any(gap["node"] == pod["node"] for gap in dark)
        found = counted.get(pod["name"], 0)
        assert hidden or abs(found - expected) <= len(pod["devices"]), pod["name"]


def test_a_free_device_is_told_of_too_until_its_node_is_dark_or_it_falls_off_the_bus(
    sample: Recording,
) -> None:
    frame = samples(sample.truth)
    free = frame.filter(pl.col("pod") == "")
    assert free.select(pl.col("activity", "fb_used_mib").max()).row(0) == (0, 0)
    counted = {tuple(key): many for *key, many in frame.group_by("node", "uuid", "instance").agg(
        pl.col("at_ms").n_unique()).rows()}  # fmt: skip
    assert len(counted) == len(sample.truth["devices"])
    for device in sample.truth["devices"]:
        start, end = sample.truth["start"], device["until"] or sample.truth["end"]
        gaps = [gap for gap in sample.truth["dark"] if gap["node"] == device["node"]]
        hidden = joined([(round(gap["from"]), round(min(gap["to"], end))) for gap in gaps])
        expected = (end - start - sum(b - a for a, b in hidden)) * 1000 / STEP_MS
        found = counted[device["node"], device["uuid"], device["instance"]]
        assert found == pytest.approx(expected, abs=1 + len(gaps)), device


def test_bookmarks_come_within_two_minutes_and_never_like_a_clock(sample: Recording) -> None:
    told: dict[str, list[int]] = defaultdict(list)
    for line in sample.lines:
        if '"BOOKMARK"' in line.text:
            told[line.stream].append(line.received_ms)
    assert len(told) == len([stream for stream in STREAMS.values() if stream.bookmarks])
    for instants in told.values():
        steps = {b - a for a, b in itertools.pairwise([sample.start_ms, *instants, sample.end_ms])}
        assert max(steps) <= 121_000
        assert len(steps) > 100


def test_the_exporters_of_the_committed_hour_are_imported_and_agree_with_its_parquet(
    committed: dict[str, Any], tmp_path: Path
) -> None:
    folder = FORTNIGHT / EXPORTERS
    command = ["import", "dcgm", str(folder), "--cluster", "sample", "--step", "60s"]
    assert run([*command, "--data-dir", str(tmp_path)]) == 0
    hour_ms = round(committed["end"] * 1000) - 3_600_000
    file = tmp_path / SAMPLES
    pl.scan_parquet(FORTNIGHT / SAMPLES).filter(pl.col("at_ms") >= hour_ms).collect().write_parquet(file)
    names = [
        "at_ms", "node", "device", "namespace", "pod", "shares", "activity", "memory_mib", "memory_total_mib",
    ]  # fmt: skip
    theirs = [part.samples.frame.select(names) for part in read_parquet(file, source="parquet")]
    with closing(Store.open(tmp_path / "gpuledger.duckdb")) as store:
        ours = pl.DataFrame(store.rows(f"select {', '.join(names)} from gpu_sample", {}))  # noqa: S608
    assert_frame_equal(ours, pl.concat(theirs), check_row_order=False, check_dtypes=False, abs_tol=1e-6)


def test_exporters_tell_the_same_of_the_last_hour(sample: Recording, tmp_path: Path) -> None:
    write_exporters(sample.truth, tmp_path)
    frame = samples(sample.truth, from_ms=sample.end_ms - 3_600_000)
    told = [scraped.samples.frame for _, scraped in scrape_files([tmp_path], step="60s")]
    assert sum(part.height for part in told) == frame.height
    activity = sum(float(part["activity"].sum()) for part in told)
    assert activity == pytest.approx(float(frame["activity"].sum()), rel=1e-4)


def _once(pattern: str) -> bool:
    return pattern[0] == "A" and pattern.count("A") == 1 and pattern.find("D") in {-1, len(pattern) - 1}


def _pods(truth: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    return ((workload, pod) for workload in truth["workloads"] for pod in workload["pods"])
