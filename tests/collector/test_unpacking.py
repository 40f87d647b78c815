"""Files that are whole, cut off or broken, packed or not: each says how far it was read."""

import gzip
import lzma
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from collector.unpacking import NO_END, CarefulFile

LINES = [b"%d" % number for number in range(20_000)]
TEXT = b"".join(line + b"\n" for line in LINES)


def zstd(data: bytes) -> bytes:
    return bytes(pa.compress(data, codec="zstd", asbytes=True))


PACKS: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd}


@pytest.mark.parametrize("suffix", PACKS)
def test_a_packed_file_gives_all_before_the_cut_and_says_where_that_was(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"lines{suffix}"
    pack = PACKS[suffix]
    # Two of them, one behind the other, as appending makes: the first is whole.
    file.write_bytes(pack(TEXT) + pack(TEXT))
    whole = CarefulFile(file)
    assert (list(whole), whole.because, whole.lines) == (LINES * 2, "", 40_000)
    data = (pack(TEXT) + pack(b"x\n" * 10))[:-3]
    file.write_bytes(data)
    cut = CarefulFile(file, ends=True)
    given = list(cut)
    assert given[:20_000] == LINES
    assert set(given[20_000:]) <= {b"x"}
    where = f"lines{suffix} is cut off or broken at byte {len(data):,}, after {len(given):,} lines: "
    assert cut.because.startswith(where)


@pytest.mark.parametrize("suffix", PACKS)
def test_nothing_at_all_is_no_packed_file_and_an_empty_text_is_one(suffix: str, tmp_path: Path) -> None:
    file = tmp_path / f"lines{suffix}"
    file.write_bytes(b"")
    nothing = CarefulFile(file)
    assert (list(nothing), "at byte 0: there is nothing in it" in nothing.because) == ([], True)
    file.write_bytes(PACKS[suffix](b""))
    empty = CarefulFile(file)
    assert (list(empty), empty.because) == ([], "")


@pytest.mark.parametrize(
    ("text", "lines", "is_open", "cut"),
    [
        (b"a\nb\n", [b"a", b"b"], False, False),
        (b"a\nb", [b"a", b"b"], True, True),
        (b"a\nb\n\x1a", [b"a", b"b"], False, False),
        (b"a\nb\n \t\r", [b"a", b"b"], False, False),
        (b"", [], False, False),
    ],
)
def test_a_last_line_without_its_end_is_given_only_where_lines_need_none(
    text: bytes, lines: list[bytes], tmp_path: Path, *, is_open: bool, cut: bool
) -> None:
    file = tmp_path / "lines"
    file.write_bytes(text)
    lenient, strict = CarefulFile(file), CarefulFile(file, ends=True)
    assert (list(lenient), lenient.is_open, lenient.because) == (lines, is_open, "")
    assert list(strict) == (lines[:-1] if cut else lines)
    told = f"lines is cut off or broken at byte {len(text)}, after 1 line: {NO_END}"
    assert strict.because == (told if cut else "")
