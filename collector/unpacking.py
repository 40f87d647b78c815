"""Files that may be compressed, cut off or broken: every byte before the damage is read."""

import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

_CUT_OFF = (EOFError, OSError, zlib.error, lzma.LZMAError)
# Readers of packed files throw away what they hold when they come upon these; OSError is that of zstd.
_LOSING = (zlib.error, lzma.LZMAError, OSError)
_ZSTD = ".zst"
_PIECE_BYTES = 1 << 16
_PACKED_BYTES = 1 << 14
# What editors leave behind the last line: blanks, and the mark at which DOS ended its texts.
_NOTHING = b" \t\r\0\x1a"
NO_END = "its last line has no end; if nothing is missing, end it with a newline"


class CarefulFile:
    """
    A file up to its end, or to where it is broken: then `because` says how, and where.

    `position` is how many bytes of the file, packed as it is, were read so far, and `lines` how many
    lines were given. `is_open` tells that the line given last has no end.

    Args:
        path: packed as `.gz`, `.xz` or `.zst`, or not; None is an empty file.
        ends: whether each line ends, the last one too: a number that was cut short looks like another one,
            so a last line without its end is not given. JSON shows by itself that it was cut.
    """

    def __init__(self, path: Path | None, *, ends: bool = False) -> None:
        self.because = ""
        self.position = 0
        self.lines = 0
        self.is_open = False
        self._path = path
        self._ends = ends
        self._lines = self._split()

    def __iter__(self) -> Iterator[bytes]:
        """The complete lines, without their ends; iterating again goes on where it stopped."""
        return self._lines

    def _split(self) -> Iterator[bytes]:
        held: list[bytes] = []
        for piece in self.pieces():
            first, *others = piece.split(b"\n")
            held.append(first)
            for other in others:
                self.lines += 1
                yield b"".join(held)
                held = [other]
        last = b"".join(held)
        # Of a broken file the last line is only a part.
        if self.because or not last.strip(_NOTHING):
            return
        if self._ends:
            self._broken(NO_END)
            return
        self.lines, self.is_open = self.lines + 1, True
        yield last

    def whole(self) -> bytes:
        """All that can be read."""
        return b"".join(self.pieces())

    def pieces(self) -> Iterator[bytes]:
        """What can be read, as it comes."""
        if self._path is None:
            return
        given = 0
        try:
            with self._path.open("rb", buffering=0) as file:
                try:
                    for piece in _unpacked(file, self._path.suffix):
                        given += len(piece)
                        self.position = file.tell()
                        yield piece
                except _LOSING as cause:
                    # What came of the last step is lost with it: go there again, on in the smallest steps.
                    is_zstd = self._path.suffix == _ZSTD
                    if isinstance(cause, OSError) and not is_zstd:
                        raise
                    careful_from = given if is_zstd else (file.tell() - 1) // _PACKED_BYTES * _PACKED_BYTES
                    file.seek(0)
                    for piece in _unpacked(file, self._path.suffix, careful_from):
                        self.position = file.tell()
                        yield piece[given:]
                        given -= min(given, len(piece))
        except _CUT_OFF as cause:
            self._broken(str(cause))

    def _broken(self, how: str) -> None:
        assert self._path is not None
        after = f", after {self.lines:,} line{'s' if self.lines > 1 else ''}" if self.lines else ""
        self.because = f"{self._path.name} is cut off or broken at byte {self.position:,}{after}: {how}"


class _Unpacker(Protocol):
    """What `lzma.LZMADecompressor` is."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gunzip:
    """The same for one member of a gzip file."""

    def __init__(self) -> None:
        self._member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._member.eof

    @property
    def unused_data(self) -> bytes:
        return self._member.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        piece = self._member.decompress(self._member.unconsumed_tail + data, max_length)
        self.needs_input = len(piece) < max_length
        return piece


_UNPACKERS: dict[str, Callable[[], _Unpacker]] = {".gz": _Gunzip, ".xz": lzma.LZMADecompressor}


def _unpacked(file: IO[bytes], suffix: str, careful_from: int | None = None) -> Iterator[bytes]:
    """
    What a file holds, unpacked, in pieces; from `careful_from` on it is read byte by byte.

    That is a place in the packed file, and of zstd in what it holds.
    """

    def read() -> bytes:
        careful = careful_from is not None and file.tell() >= careful_from
        return file.read(1 if careful else _PACKED_BYTES)

    if suffix in {_ZSTD, *_UNPACKERS}:
        if not file.read(1):
            message = "there is nothing in it, and an empty text packed is not nothing"
            raise EOFError(message)
        file.seek(0)
    if suffix == _ZSTD:
        import pyarrow as pa  # heavy, and only this needs it

        # A frame that is cut off gives nothing of its last block.
        stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
        given = 0
        while piece := stream.read(1 if careful_from is not None and given >= careful_from else _PIECE_BYTES):
            given += len(piece)
            yield piece
        return
    if suffix not in _UNPACKERS:
        yield from iter(lambda: file.read(_PIECE_BYTES), b"")
        return
    packed = read()
    while packed:
        unpacker = _UNPACKERS[suffix]()
        while not unpacker.eof:
            if unpacker.needs_input and not packed and not (packed := read()):
                message = "compressed file ended before the end-of-stream marker was reached"
                raise EOFError(message)
            if piece := unpacker.decompress(packed, _PIECE_BYTES):
                yield piece
            packed = b""
        packed = unpacker.unused_data
        # Between the members of a file, and after the last one, zeros may stand.
        while not (packed := packed.lstrip(b"\0")) and (packed := read()):
            pass
