"""Recorded scrapes: answers, repeated answers, failures, broken ends."""

import gzip
from pathlib import Path

import pytest

from collector.dcgm.exporter import CUT_ANSWER, CUT_LINE, CUT_SCRAPE, read_file
from domain.errors import RecordingError

LINE = 'DCGM_FI_DEV_GPU_UTIL{UUID="GPU-1",Hostname="n1"} '


def recorded(*scrapes: str) -> str:
    return "".join(scrapes)


def answer(at: float, value: int) -> str:
    body = f"{LINE}{value}\n"
    return f'#scrape {{"t": {at}, "ms": 3.1, "status": 200, "bytes": {len(body)}}}\n{body}'


def again(at: float) -> str:
    return f'#scrape {{"t": {at}, "ms": 1.0, "status": 200, "bytes": 999, "same": true}}\n'


def failed(at: float) -> str:
    return f'#scrape {{"t": {at}, "ms": 4000.0, "status": 0, "error": "timeout"}}\n'


def written(folder: Path, text: str, name: str = "n1.scrapes") -> Path:
    file = folder / name
    file.write_text(text)
    return file


def test_an_answer_counts_when_it_came_and_again_where_it_was_repeated(tmp_path: Path) -> None:
    text = recorded(answer(10, 5), again(15), failed(20), answer(25.004, 7))
    read = read_file(written(tmp_path, text), step_ms=None, single_at_ms=0)
    assert read.samples.frame.select("at_ms", "activity").rows() == [
        (10_000, 0.05), (15_000, 0.05), (25_004, 0.07),
    ]  # fmt: skip
    assert (read.answers, read.failed) == (3, {"timeout": 1})
    # The step is how far apart the scrapes were meant to be, failures among them.
    assert (read.step_ms, read.until_ms) == (5_000, 30_004)
    assert set(read.samples.frame["step_ms"]) == {5_000}


def test_of_a_recording_that_is_cut_off_all_whole_answers_are_read(tmp_path: Path) -> None:
    text = recorded(answer(10, 5), answer(15, 6))
    whole = gzip.compress(text.encode())
    for length in (len(text) - 3, len(text) - 30, len(text) - 75):
        read = read_file(written(tmp_path, text[:length]), step_ms=None, single_at_ms=0)
        assert read.samples.frame["at_ms"].to_list() == [10_000]
        begin = len(answer(10, 5))
        left = length - begin
        assert read.broken == (
            f"n1.scrapes is cut off: of the scrape at byte {begin} only {left} bytes are left"
        )
        assert read.samples.set_aside[CUT_SCRAPE] == 1
    packed = tmp_path / "n1.scrapes.gz"
    packed.write_bytes(whole[:-9])
    read = read_file(packed, step_ms=None, single_at_ms=0)
    assert read.samples.frame["at_ms"].to_list()[0] == 10_000
    assert "cut off or broken" in read.broken


def test_a_recorded_answer_that_was_cut_failed_and_is_not_repeated(tmp_path: Path) -> None:
    # Of 17 percent one is left, and the head tells so many bytes.
    body = f"{LINE}1"
    cut = f'#scrape {{"t": 15, "status": 200, "bytes": {len(body)}}}\n{body}'
    read = read_file(
        written(tmp_path, recorded(answer(10, 5), cut, again(20), answer(25, 7))),
        step_ms=None,
        single_at_ms=0,
    )
    assert read.samples.frame.select("at_ms", "activity").rows() == [(10_000, 0.05), (25_000, 0.07)]
    assert (read.failed, read.broken) == ({CUT_ANSWER: 2}, "")


@pytest.mark.parametrize("packed", [False, True])
def test_the_last_line_of_a_lone_answer_that_was_cut_is_set_aside(tmp_path: Path, *, packed: bool) -> None:
    text = f'{LINE}5\nDCGM_FI_DEV_GPU_UTIL{{UUID="GPU-2"}} 17\nDCGM_FI_DEV_XID_ERRORS{{UUID="GPU-1"}} 79\n'
    cut = text.removesuffix("9\n")
    file = written(tmp_path, cut, "n1.prom")
    if packed:
        file = tmp_path / "n1.prom.gz"
        file.write_bytes(gzip.compress(cut.encode(), mtime=0)[:-8])
    read = read_file(file, step_ms=30_000, single_at_ms=60_000)
    assert read.samples.frame.select("device", "activity").rows() == [("GPU-1", 0.05), ("GPU-2", 0.17)]
    assert (read.health, read.samples.set_aside) == ((), {CUT_LINE: 1})
    assert ("cut off or broken" if packed else f"n1.prom: it was cut after {len(cut)} bytes") in read.broken
    whole = read_file(written(tmp_path, text, "n1.prom"), step_ms=30_000, single_at_ms=60_000)
    assert (whole.broken, whole.samples.set_aside, [one.code for one in whole.health]) == ("", {}, [79])


def test_a_plain_answer_counts_when_it_was_read_and_a_stamp_of_its_own_beats_that(tmp_path: Path) -> None:
    text = f'{LINE}5\nDCGM_FI_DEV_GPU_UTIL{{UUID="GPU-2",Hostname="n1"}} 6 70000\n'
    read = read_file(written(tmp_path, text), step_ms=30_000, single_at_ms=60_000)
    assert read.samples.frame.select("device", "at_ms").rows() == [("GPU-1", 60_000), ("GPU-2", 70_000)]


def test_a_repeated_answer_repeats_no_line_with_a_stamp_of_its_own(tmp_path: Path) -> None:
    body = f'{LINE}5\nDCGM_FI_DEV_GPU_UTIL{{UUID="GPU-2",Hostname="n1"}} 6 9000\n'
    head = f'#scrape {{"t": 10, "status": 200, "bytes": {len(body)}}}\n'
    read = read_file(written(tmp_path, head + body + again(15)), step_ms=5000, single_at_ms=0)
    assert read.samples.frame.select("device", "at_ms").rows() == [
        ("GPU-2", 9_000), ("GPU-1", 10_000), ("GPU-1", 15_000),
    ]  # fmt: skip


def test_a_file_whose_frame_is_wrong_is_an_error_that_names_the_place(tmp_path: Path) -> None:
    text = recorded(answer(10, 5), "nonsense\n", answer(15, 6))
    with pytest.raises(RecordingError, match=r"nonsense.*expected #scrape"):
        read_file(written(tmp_path, text), step_ms=None, single_at_ms=0)
