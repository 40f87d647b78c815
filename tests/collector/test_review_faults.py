"""What a broken recording still holds is kept, and what it lacks is counted."""

import gzip
import json
import lzma
import os
import random
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.decoding import is_older
from collector.recording import import_recording
from domain.facts import EventSighting, Moment
from tests.collector.objects import EVENT, POD, at, intake, metadata, pod
from tests.fakes import MemorySink

NO_CREATION = "has no creationTimestamp; first sight is used"
PACKS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}


def written(folder: Path, lines: list[bytes], *, times: int | None = None, pad: int = 0) -> None:
    """A recording of pods; `pad` random bytes in each line make it hard to pack."""
    listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {"resourceVersion": "1"}, "items": []}
    (folder / "pods.list.json").write_text(json.dumps(listed))
    blanks = random.Random(1)
    padded = [line + bytes(blanks.choices(b" \t", k=pad)) for line in lines]
    (folder / "pods.watch.ndjson").write_bytes(b"".join(line + b"\n" for line in padded))
    count = len(lines) if times is None else times
    (folder / "pods.times").write_text("".join(f"{at(number) / 1000:.3f}\n" for number in range(count)))


def added(number: int) -> bytes:
    return json.dumps({"type": "ADDED", "object": pod(f"p{number}", number + 2)}).encode()


def packed(path: Path, suffix: str, *, keep: Callable[[bytes], bytes]) -> None:
    whole = PACKS[suffix](path.read_bytes())
    path.with_name(path.name + suffix).write_bytes(keep(whole))
    path.unlink()


def imported(folder: Path) -> MemorySink:
    sink = MemorySink()
    import_recording(folder, "c", sink)
    return sink


def created(sink: MemorySink) -> list[str]:
    return [one.uid for one in sink.transitions if one.moment is Moment.CREATED]


def names(count: int) -> list[str]:
    return [f"p{number}" for number in range(count)]


# ------------------------------------------------------------ lines


MALFORMED = [
    b'{"a":' * 20_000,
    b'{"type":"ADDED","object":' + b"[" * 20_000 + b"]" * 20_000 + b"}",
    b'{"type":"ADDED","object":{"kind":"Pod","spec":{"x":' + b'{"a":' * 20_000,
    b'{"type":"ADDED","object":{',
    b"not json",
    b"",
    b"[]",
    b"null",
    b'{"type":"ADDED"}',
    b'{"type":"ADDED","object":null}',
    b'{"type":5,"object":{}}',
    b"\xff\xfe",
    b'{"type":"ADDED","object":{"kind":"Pod","apiVersion":"v1"}}',
    b'{"type":"WEIRD","object":{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"u2"}}}',
    b'{"type":"ADDED","object":{"kind":"Gadget","apiVersion":"x/v9","metadata":{"uid":"u3"}}}',
]


def test_a_malformed_or_bottomless_line_costs_only_itself(tmp_path: Path) -> None:
    written(tmp_path, [added(0), *MALFORMED, added(1)])
    sink = imported(tmp_path)
    assert created(sink) == names(2)
    assert sum(one.count for one in sink.set_aside) == len(MALFORMED)
    assert sum(one.count for one in sink.set_aside if "recursion" in one.because) == 2


def test_a_version_too_long_for_a_number_is_not_compared() -> None:
    assert not is_older("9" * 5000, "1" + "0" * 5000)
    assert is_older("18446744073709551614", "18446744073709551615")


# ------------------------------------------------------------ creation stamps


def stamped(uid: str, stamp: object) -> dict[str, object]:
    read = pod(uid, 5)
    read["metadata"]["creationTimestamp"] = stamp
    return read


@pytest.mark.parametrize(
    "stamp", ["0001-01-01T00:00:00Z", "0001-01-01T00:00:00+00:00", "1970-01-01T00:00:00Z", "", None]
)
def test_an_object_without_a_creation_is_kept_from_its_first_sight(stamp: object) -> None:
    sink = MemorySink()
    for _ in range(2):
        taking = intake(sink)
        taking.see(POD, "ADDED", stamped("a", stamp), at(5))
        read = stamped("a", stamp)
        read["metadata"]["resourceVersion"] = "7"  # type: ignore[index]
        taking.see(POD, "MODIFIED", read, at(6))
        taking.flush()
    (creation,) = sink.transitions
    assert (creation.moment, creation.at_ms, creation.earliest_ms) == (Moment.CREATED, at(5), 0)
    assert [(one.because, one.count) for one in sink.set_aside] == [(NO_CREATION, 1)]
    assert len(sink.descriptions) == 1


@pytest.mark.parametrize(
    "stamp",
    ["1999-12-31T23:59:59Z", "0001-01-01T00:00:01Z", "2026-03-03T09:00:06Z", "3026-11-02T09:00:00Z",
     "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59", "0001-01-01T00:00:00+23:59"],
)  # fmt: skip
def test_an_object_with_an_impossible_creation_is_set_aside(stamp: str) -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", stamped("a", stamp), at(5))
    taking.see(POD, "ADDED", pod("b", 6), at(5))
    taking.flush()
    assert created(sink) == ["b"]
    (aside,) = sink.set_aside
    assert repr(stamp) in aside.because
    assert "expected" in aside.because


def test_a_cluster_whose_clock_is_a_day_ahead_is_believed() -> None:
    sink = MemorySink()
    taking = intake(sink)
    taking.see(POD, "ADDED", stamped("a", "2026-03-03T09:00:05Z"), at(5))
    taking.flush()
    assert created(sink) == ["a"]


def test_a_stamp_of_an_event_that_is_zero_gives_way_to_the_next_one() -> None:
    read = {"metadata": metadata("e", 5), "eventTime": "0001-01-01T00:00:00Z",
            "firstTimestamp": "2026-03-02T09:00:01Z", "lastTimestamp": "0001-01-01T00:00:00Z"}  # fmt: skip
    sink = MemorySink()
    taking = intake(sink)
    taking.see(EVENT, "ADDED", read, at(5))
    taking.flush()
    (sighting,) = sink.events
    assert isinstance(sighting, EventSighting)
    assert (sighting.first_ms, sighting.last_ms) == (at(1), at(1))


# ------------------------------------------------------------ files that are cut off or damaged


def readable(data: bytes) -> int:
    """How many complete lines `gzip -dc` gives of it."""
    return zlib.decompressobj(wbits=31).decompress(data).count(b"\n")


@pytest.mark.parametrize("kept", [0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("file", ["pods.watch.ndjson", "pods.times"])
def test_of_a_truncated_gzip_every_complete_line_is_used(tmp_path: Path, file: str, kept: float) -> None:
    written(tmp_path, [added(number) for number in range(3000)], pad=40)
    packed(tmp_path / file, ".gz", keep=lambda whole: whole[: int(len(whole) * kept)])
    lines = readable((tmp_path / f"{file}.gz").read_bytes())
    assert lines > 0
    sink = imported(tmp_path)
    assert created(sink) == names(lines)
    (aside,) = sink.set_aside
    assert f"{file}.gz is cut off or broken at byte" in aside.because
    assert "compressed file ended" in aside.because
    assert aside.count == max(1, 3000 - lines)


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_of_a_damaged_file_everything_before_the_damage_is_used(tmp_path: Path, suffix: str) -> None:
    written(tmp_path, [added(number) for number in range(3000)], pad=40)
    ends = {".gz": 8, ".xz": 24}[suffix]  # check sum or index are wrong, and all data is there
    packed(
        tmp_path / "pods.watch.ndjson",
        suffix,
        keep=lambda whole: whole[:-ends] + bytes(255 - byte for byte in whole[-ends:]),
    )
    sink = imported(tmp_path)
    assert created(sink) == names(3000)
    (aside,) = sink.set_aside
    assert "is cut off or broken" in aside.because
    assert aside.count == 1


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_a_file_of_several_members_is_read_to_its_end(tmp_path: Path, suffix: str) -> None:
    written(tmp_path, [added(number) for number in range(50)])
    packed(tmp_path / "pods.watch.ndjson", suffix, keep=bytes)
    path = tmp_path / f"pods.watch.ndjson{suffix}"
    more = PACKS[suffix](added(50) + b"\n" + added(51))  # the last line has no end
    path.write_bytes(path.read_bytes() + more + bytes(64))
    (tmp_path / "pods.times").write_text("".join(f"{at(number) / 1000:.3f}\n" for number in range(52)))
    sink = imported(tmp_path)
    assert created(sink) == names(52)
    assert sink.set_aside == []


def test_a_line_longer_than_any_piece_is_one_line(tmp_path: Path) -> None:
    written(tmp_path, [added(0), added(1)], pad=300_000)
    packed(tmp_path / "pods.watch.ndjson", ".gz", keep=bytes)
    sink = imported(tmp_path)
    assert created(sink) == names(2)
    assert sink.set_aside == []


# ------------------------------------------------------------ streams that end early


@pytest.mark.parametrize("lines", [0, 3])
@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_a_stream_shorter_than_its_times_is_counted(tmp_path: Path, lines: int, suffix: str) -> None:
    written(tmp_path, [added(number) for number in range(lines)], times=10)
    if suffix:
        packed(tmp_path / "pods.watch.ndjson", suffix, keep=bytes if lines else lambda _: b"")
    sink = imported(tmp_path)
    assert created(sink) == names(lines)
    (aside,) = sink.set_aside
    # An empty text packed is not nothing.
    is_broken = suffix and not lines
    told = (
        "pods.watch.ndjson.gz is cut off or broken at byte 0" if is_broken else "pods.watch.ndjson ends early"
    )
    assert told in aside.because
    assert aside.count == 10 - lines


def test_a_stream_that_is_missing_beside_its_times_is_counted(tmp_path: Path) -> None:
    written(tmp_path, [added(0), added(1)])
    (tmp_path / "pods.watch.ndjson").unlink()
    assert [one.count for one in imported(tmp_path).set_aside] == [2]


def test_a_list_is_dated_by_a_receive_time_rather_than_by_its_file(tmp_path: Path) -> None:
    written(tmp_path, [added(0)])
    listed = {"apiVersion": "v1", "kind": "NodeList", "metadata": {"resourceVersion": "1"}}
    node = {"metadata": metadata("n", 1)}
    (tmp_path / "nodes.list.json").write_text(json.dumps({**listed, "items": [node]}))
    os.utime(tmp_path / "nodes.list.json", (0, 0))  # as an archive without times leaves it
    assert created(imported(tmp_path)) == ["n", "p0"]
