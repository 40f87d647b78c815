"""The sample is reproducible, tells the stories that it should, and never does the impossible."""

import gzip
import itertools
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from domain.window import parse_instant
from sample_data import SMALL
from sample_data.demand import BATCH_LATE, CRASH_LOOP, GANG, GATED, INTERACTIVE_LATE, NEVER_FITS, VICTIM
from sample_data.generate import END, SEED, Recording, generate
from sample_data.site import FLAVORS, REPLICAS, SHARED_GPU

SEEDS = range(3)
MOST_BYTES = 1_000_000


@pytest.fixture(scope="module", params=SEEDS)
def sample(request: pytest.FixtureRequest) -> Recording:
    return generate(seed=request.param, end_ms=parse_instant(END))


def test_the_committed_sample_is_what_the_generator_writes(tmp_path: Path) -> None:
    generate(seed=SEED, end_ms=parse_instant(END)).write(tmp_path)
    written = {path.name: gzip.decompress(path.read_bytes()) for path in tmp_path.iterdir()}
    # Contents, not compressed bytes: these depend on the build of zlib.
    assert written == {path.name: gzip.decompress(path.read_bytes()) for path in SMALL.iterdir()}


def test_the_same_seed_and_end_give_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        generate(seed=3, end_ms=parse_instant(END)).write(tmp_path / name)
    one, two = ({path.name: path.read_bytes() for path in (tmp_path / n).iterdir()} for n in ("one", "two"))
    assert one == two


def test_the_committed_sample_is_below_one_megabyte() -> None:
    assert sum(path.stat().st_size for path in SMALL.iterdir()) < MOST_BYTES


@pytest.mark.long
def test_another_end_moves_every_instant_and_nothing_else() -> None:
    hour_ms = 3_600_000
    early, late = (generate(seed=1, end_ms=parse_instant(END) + shift) for shift in (0, hour_ms))
    assert [line.received_ms + hour_ms for line in early.lines] == [line.received_ms for line in late.lines]
    assert [workload["waits"] for workload in early.truth["workloads"]] == [
        workload["waits"] for workload in late.truth["workloads"]
    ]


def test_one_interactive_job_waits_nine_minutes_and_all_others_less_than_one(sample: Recording) -> None:
    waits = _longest_waits(sample, "interactive")
    assert 535 <= waits.pop(INTERACTIVE_LATE) <= 545
    assert max(waits.values()) < 60


def test_one_batch_job_waits_seventy_minutes_and_all_others_less_than_fifty(sample: Recording) -> None:
    waits = _longest_waits(sample, "batch")
    assert 4_190 <= waits.pop(BATCH_LATE) <= 4_210
    assert 60 < max(waits.values()) < 50 * 60


def test_the_long_waits_lie_where_a_playback_of_the_last_hour_shows_them_end(sample: Recording) -> None:
    end = sample.truth["end"]
    assert 38 <= (end - _marked(sample, INTERACTIVE_LATE)["bound"]) / 60 <= 50
    assert 15 <= (end - _marked(sample, BATCH_LATE)["bound"]) / 60 <= 20


def test_the_other_arranged_stories_happen(sample: Recording) -> None:
    victim = _marked(sample, VICTIM)
    assert (len(victim["preemptions"]), len(victim["waits"]), victim["outcome"]) == (1, 2, "succeeded")
    assert sum(len(workload["preemptions"]) for workload in sample.truth["workloads"]) == 1
    for mark in (NEVER_FITS, GATED):
        assert (_marked(sample, mark)["bound"], _marked(sample, mark)["outcome"]) == (None, "open")
    assert _marked(sample, CRASH_LOOP)["pods"][0]["restarts"] > 10
    assert len(_marked(sample, GANG)["pods"]) == 4


def test_no_node_ever_gives_out_more_devices_than_it_has(sample: Recording) -> None:
    for flavor in FLAVORS.values():
        capacity = flavor.devices / (REPLICAS if flavor.resource == SHARED_GPU else 1)
        for node in flavor.nodes:
            steps = sorted(_steps(sample.truth, node))
            held = itertools.accumulate(step for _, step in steps)
            assert max(held) <= capacity, node


def test_resource_versions_grow_over_all_streams_and_times_within_each(sample: Recording) -> None:
    writes: dict[int, tuple[str, int]] = {}
    for stream in {line.stream for line in sample.lines}:
        lines = [line for line in sample.lines if line.stream == stream]
        versions = [int(json.loads(line.text)["object"]["metadata"]["resourceVersion"]) for line in lines]
        assert versions == sorted(versions)
        assert [line.received_ms for line in lines] == sorted(line.received_ms for line in lines)
        for line, version in zip(lines, versions, strict=True):
            if '"BOOKMARK"' not in line.text and stream != "events":
                assert version not in writes
                writes[version] = (stream, line.received_ms)


def test_an_object_is_added_once_then_modified_then_at_most_once_deleted(sample: Recording) -> None:
    lives: dict[tuple[str, str], str] = {}
    for line in sample.lines:
        event = json.loads(line.text)
        if event["type"] != "BOOKMARK":
            key = (line.stream, event["object"]["metadata"]["uid"])
            lives[key] = lives.get(key, "") + event["type"][0]
    nodes = {pattern for (stream, _), pattern in lives.items() if stream == "nodes"}
    assert nodes == {"MM"}
    assert all(re.fullmatch("AM*D?", pattern) for (stream, _), pattern in lives.items() if stream != "nodes")


def test_a_recording_is_written_as_lists_watch_lines_and_a_time_for_each(
    sample: Recording, tmp_path: Path
) -> None:
    until_ms = sample.start_ms + 600_000
    sample.write(tmp_path, until_ms=until_ms)
    for name in ("pods", "workloads", "core-events"):
        lines = gzip.decompress((tmp_path / f"{name}.watch.ndjson.gz").read_bytes()).splitlines()
        times = gzip.decompress((tmp_path / f"{name}.times.gz").read_bytes()).split()
        assert len(lines) == len(times) > 20
        assert float(times[-1]) * 1000 < until_ms
        listed = json.loads(gzip.decompress((tmp_path / f"{name}.list.json.gz").read_bytes()))
        assert listed["kind"].endswith("List")


def _marked(sample: Recording, mark: str) -> dict[str, Any]:
    (found,) = (workload for workload in sample.truth["workloads"] if workload["mark"] == mark)
    return dict(found)


def _longest_waits(sample: Recording, service_class: str) -> dict[str, float]:
    return {
        workload["mark"] or workload["uid"]: max(workload["waits"], default=0.0)
        for workload in sample.truth["workloads"]
        if workload["service_class"] == service_class
    }


def _steps(truth: dict[str, Any], node: str) -> Iterator[tuple[float, float]]:
    for workload in truth["workloads"]:
        for pod in workload["pods"]:
            if pod["node"] == node:
                yield pod["bound"], pod["gpus"]
                yield pod["released"] or truth["end"], -pod["gpus"]
