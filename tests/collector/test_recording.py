"""Recordings are read in the order of receipt, as far as their files go, and twice is as once."""

import gzip
import json
import lzma
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.intake import Intake
from collector.recording import Part, Reading, deliver, import_recording, readings
from domain.errors import RecordingError
from domain.facts import Moment
from tests.collector.objects import Object, at, pod
from tests.fakes import MemorySink
from tests.shared import shared

Line = tuple[float, str, Object]


def record(folder: Path, name: str, lines: list[Line], *, api_version: str = "v1", kind: str = "Pod") -> None:
    """Write a recording of one kind: an empty list, and these lines."""
    listed = {"apiVersion": api_version, "kind": f"{kind}List", "metadata": {"resourceVersion": "1"}}
    write(folder / f"{name}.list.json.gz", json.dumps({**listed, "items": []}) + "\n")
    text = "".join(json.dumps({"type": what, "object": read}) + "\n" for _, what, read in lines)
    write(folder / f"{name}.watch.ndjson.gz", text)
    write(folder / f"{name}.times.gz", "".join(f"{at(seconds) / 1000:.3f}\n" for seconds, _, _ in lines))


def write(path: Path, text: str) -> None:
    path.write_bytes(gzip.compress(text.encode(), mtime=0))


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


def pods(count: int) -> list[Line]:
    return [(number, "ADDED", pod(f"p{number}", number + 2)) for number in range(count)]


def created(sink: MemorySink) -> list[str]:
    return [one.uid for one in sink.transitions if one.moment is Moment.CREATED]


def test_streams_are_merged_by_their_times_and_lists_come_first(tmp_path: Path) -> None:
    record(tmp_path, "pods", [(1, "ADDED", pod("a", 2)), (5, "ADDED", pod("b", 3))])
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": pod("n", 4)["metadata"]}
    record(tmp_path, "namespaces", [(3, "ADDED", namespace)], kind="Namespace")
    assert [(one.stream.name, one.part, one.observed_ms) for one in readings(tmp_path)] == [
        ("namespaces", Part.LIST, at(1)),
        ("pods", Part.LIST, at(1)),
        ("pods", Part.LINE, at(1)),
        ("namespaces", Part.LINE, at(3)),
        ("pods", Part.LINE, at(5)),
    ]


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".zst"])
def test_a_stream_may_be_plain_or_compressed(tmp_path: Path, suffix: str) -> None:
    record(tmp_path, "pods", pods(3))
    packed = tmp_path / "pods.watch.ndjson.gz"
    text = gzip.decompress(packed.read_bytes())
    packed.unlink()
    packs: dict[str, Callable[[bytes], bytes]] = {
        "": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd,
    }  # fmt: skip
    (tmp_path / f"pods.watch.ndjson{suffix}").write_bytes(packs[suffix](text))
    sink = MemorySink()
    summary = import_recording(tmp_path, "c", sink)
    assert (summary.lines, summary.transitions, created(sink)) == (3, 3, ["p0", "p1", "p2"])


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_of_a_truncated_stream_everything_before_the_cut_is_kept(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    record(tmp_path, "pods", pods(500))
    node = {"apiVersion": "v1", "kind": "Node", "metadata": pod("n", 900)["metadata"]}
    record(tmp_path, "nodes", [(700, "ADDED", node)], kind="Node")
    packed = tmp_path / "pods.watch.ndjson.gz"
    whole = pack(gzip.decompress(packed.read_bytes()))
    packed.unlink()
    name = "pods.watch.ndjson.gz" if pack is gzip.compress else "pods.watch.ndjson.xz"
    (tmp_path / name).write_bytes(whole[: len(whole) // 2])
    sink = MemorySink()
    summary = import_recording(tmp_path, "c", sink)
    kept = summary.lines - 1
    assert 0 <= kept < 500
    assert created(sink) == [*(f"p{number}" for number in range(kept)), "n"]
    (aside,) = sink.set_aside
    assert f"{name} is cut off or broken" in aside.because
    assert aside.count == 500 - kept


def test_lines_after_the_last_receive_time_are_set_aside(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(5))
    times = gzip.decompress((tmp_path / "pods.times.gz").read_bytes()).splitlines(keepends=True)
    (tmp_path / "pods.times.gz").write_bytes(gzip.compress(b"".join(times[:2])))
    sink = MemorySink()
    import_recording(tmp_path, "c", sink)
    assert created(sink) == ["p0", "p1"]
    assert [(one.because, one.count) for one in sink.set_aside] == [
        ("pods.times: no receive time for the rest of the lines", 3)
    ]


def test_without_receive_times_the_list_is_kept(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(2))
    (tmp_path / "pods.times.gz").unlink()
    listed = {"apiVersion": "v1", "kind": "PodList", "metadata": {}, "items": [pod("listed", 1)]}
    write(tmp_path / "pods.list.json.gz", json.dumps(listed))
    sink = MemorySink()
    import_recording(tmp_path, "c", sink)
    assert created(sink) == ["listed"]
    assert [one.count for one in sink.set_aside] == [2]


def test_a_receive_time_that_is_no_number_sets_one_line_aside(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(3))
    write(tmp_path / "pods.times.gz", f"{at(0) / 1000}\nnan\n{at(2) / 1000}\n")
    sink = MemorySink()
    import_recording(tmp_path, "c", sink)
    assert created(sink) == ["p0", "p2"]
    assert "no epoch time" in sink.set_aside[0].because


def test_a_truncated_list_is_set_aside_and_its_stream_is_read(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(2))
    path = tmp_path / "pods.list.json.gz"
    path.write_bytes(path.read_bytes()[:-12])
    sink = MemorySink()
    import_recording(tmp_path, "c", sink)
    assert created(sink) == ["p0", "p1"]
    assert len(sink.set_aside) == 1


def cut_at_the_end(folder: Path, name: str) -> None:
    path = folder / name
    path.write_bytes(path.read_bytes()[:-12])


def spoilt(folder: Path) -> None:
    """A recording with all that can be set aside: broken lines, alike ones too, a bad list, a cut stream."""
    broken = {"metadata": {"uid": "x", "name": "x", "resourceVersion": 7}, "spec": 5}
    record(folder, "pods", [*pods(60), (60, "ADDED", broken), (61, "MODIFIED", {"spec": 5})])
    text = gzip.decompress((folder / "pods.watch.ndjson.gz").read_bytes()).decode().splitlines()
    text[5:5] = ["not JSON", "not JSON", '{"type": "ADDED"}']
    text[30] = '{"type": "ERROR", "object": {"code": 410, "reason": "Expired", "message": "too old"}}'
    write(folder / "pods.watch.ndjson.gz", "\n".join(text) + "\n")
    times = [f"{at(number) / 1000:.3f}" for number in range(63)]
    times[6] = times[5]
    times[20] = "soon"
    write(folder / "pods.times.gz", "\n".join(times) + "\n")
    record(folder, "nodes", [], kind="Node")
    write(folder / "nodes.list.json.gz", '{"kind": "NodeList", "apiVersion": "v1", "items": [{')


def test_a_recording_read_again_sets_nothing_aside_again_and_a_whole_copy_adds_the_rest(
    tmp_path: Path,
) -> None:
    spoilt(tmp_path)
    whole = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    cut_at_the_end(tmp_path, "pods.times.gz")
    again, once = MemorySink(), MemorySink()
    first = import_recording(tmp_path, "c", again)
    kept, marks = list(again.set_aside), dict(again.marks)
    assert [mark.restarts for mark in marks.values()] == [1]
    assert sum(one.count for one in kept) > 5
    assert import_recording(tmp_path, "c", again).cut == first.cut
    assert (again.set_aside, again.marks) == (kept, marks)
    for name, data in whole.items():
        (tmp_path / name).write_bytes(data)
    import_recording(tmp_path, "c", once)
    for _ in range(2):
        import_recording(tmp_path, "c", again)
    # But for what the cut itself set aside.
    assert [one for one in again.set_aside if "pods.times.gz is cut off" not in one.because] == once.set_aside


def test_the_summary_says_what_was_cut_and_where(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(3))
    assert import_recording(tmp_path, "c", MemorySink()).cut == ()
    cut_at_the_end(tmp_path, "pods.watch.ndjson.gz")
    size = (tmp_path / "pods.watch.ndjson.gz").stat().st_size
    [watch] = import_recording(tmp_path, "c", MemorySink()).cut
    assert watch.startswith(f"pods.watch.ndjson.gz is cut off or broken at byte {size:,}, after ")
    write(tmp_path / "pods.list.json.gz", '{"kind": "PodList", "apiVersion": "v1", "items": [{')
    [listed, _] = import_recording(tmp_path, "c", MemorySink()).cut
    assert listed.startswith("pods.list.json is no list of objects")


@pytest.mark.parametrize(("missing", "lines"), [(1, 3), (2, 2), (40, 2)])
def test_a_plain_stream_may_lack_the_end_of_its_last_line_and_no_more(
    missing: int, lines: int, tmp_path: Path
) -> None:
    record(tmp_path, "pods", pods(3))
    packed = tmp_path / "pods.watch.ndjson.gz"
    (tmp_path / "pods.watch.ndjson").write_bytes(gzip.decompress(packed.read_bytes())[:-missing])
    packed.unlink()
    sink = MemorySink()
    summary = import_recording(tmp_path, "c", sink)
    assert (summary.lines, len(created(sink))) == (lines, lines)
    told = () if lines == 3 else ("pods.watch.ndjson is cut off within its last line",)
    assert summary.cut == told
    assert summary.set_aside == {f"pods: {because}": 1 for because in told}


def test_a_receive_time_that_was_cut_is_not_believed(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(2))
    packed = tmp_path / "pods.times.gz"
    (tmp_path / "pods.times").write_bytes(gzip.decompress(packed.read_bytes())[:-9])
    packed.unlink()
    sink = MemorySink()
    [because] = import_recording(tmp_path, "c", sink).cut
    assert "pods.times is cut off or broken at byte" in because
    assert created(sink) == ["p0"]


def test_a_kind_without_a_translator_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(1))
    record(tmp_path, "statefulsets", [], api_version="apps/v1", kind="StatefulSet")
    summary = import_recording(tmp_path, "c", MemorySink())
    assert summary.not_read == {
        "statefulsets": "kind StatefulSet of group 'apps': there is no translator for it"
    }
    assert summary.transitions == 1


def test_events_are_read_in_one_view_only(tmp_path: Path) -> None:
    record(tmp_path, "core-events", [], kind="Event")
    record(tmp_path, "events", [], api_version="events.k8s.io/v1", kind="Event")
    summary = import_recording(tmp_path, "c", MemorySink())
    assert summary.not_read == {"events": "core-events has the same objects"}


def test_a_stream_without_a_list_tells_its_kind_itself(tmp_path: Path) -> None:
    record(tmp_path, "whatever", pods(1))
    (tmp_path / "whatever.list.json.gz").unlink()
    sink = MemorySink()
    import_recording(tmp_path, "c", sink)
    assert created(sink) == ["p0"]


@pytest.mark.parametrize("folder", ["empty", "absent"])
def test_a_folder_without_a_recording_is_an_error(tmp_path: Path, folder: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "visibility.ndjson.gz").write_bytes(b"")
    with pytest.raises(RecordingError, match=r"expected a recording, files like pods\.list\.json\.gz"):
        import_recording(tmp_path / folder, "c", MemorySink())


def test_progress_ends_with_the_number_of_lines(tmp_path: Path) -> None:
    record(tmp_path, "pods", pods(5))
    told: list[int] = []
    import_recording(tmp_path, "c", MemorySink(), progress=told.append)
    assert told[-1] == 5


@pytest.mark.recordings
@pytest.mark.parametrize("name", ["native", "kueue", "volcano"])
def test_a_real_recording_twice_is_as_once(name: str) -> None:
    once, twice = MemorySink(), MemorySink()
    first = import_recording(shared(f"data/recorded/{name}"), "c", once)
    assert first.set_aside == {}
    for _ in range(2):
        import_recording(shared(f"data/recorded/{name}"), "c", twice)
    assert kept(twice) == kept(once)
    assert (twice.objects, twice.marks) == (once.objects, once.marks)


@cache
def kueue() -> tuple[list[Reading], MemorySink]:
    """The readings of the Kueue recording, and what comes of them without a stop."""
    sink = MemorySink()
    import_recording(shared("data/recorded/kueue"), "c", sink)
    return list(readings(shared("data/recorded/kueue"))), sink


@pytest.mark.recordings
@settings(max_examples=8, deadline=None)
@given(cut=st.integers(0, 4600), replayed=st.integers(0, 400), lost=st.booleans())
def test_a_stream_cut_anywhere_and_resumed_gives_the_same_facts(cut: int, replayed: int, lost: bool) -> None:  # noqa: FBT001
    """The process stops at the cut, half of the time with a part that was never committed."""
    lines, whole = kueue()
    sink = MemorySink()
    taking = Intake("c", sink, sink.known("c"))
    committed = max(0, cut - 50) if lost else cut
    for number, reading in enumerate(lines[:cut]):
        if number == committed:
            taking.flush()
        deliver(taking, reading)
    if not lost:
        taking.flush()
    taking = Intake("c", sink, sink.known("c"))
    for reading in lines[max(0, committed - replayed) :]:
        deliver(taking, reading)
    taking.flush()
    assert kept(sink) == kept(whole)


def kept(sink: MemorySink) -> list[object]:
    return [sink.transitions, sink.descriptions, sink.events, sink.set_aside]
