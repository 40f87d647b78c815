"""Files that may be compressed, cut off or broken: every byte before the damage is read."""

import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Protocol

_CUT_OFF = (EOFError, OSError, zlib.error, lzma.LZMAError)
_PIECE_BYTES = 1 << 16
_PACKED_BYTES = 1 << 14


class CarefulFile:
    """
    A file up to its end, or to where it is broken: then `because` says how.

    `position` is how many bytes of the file, packed as it is, were read so far.
    """

    def __init__(self, path: Path | None) -> None:
        self.because = ""
        self.position = 0
        self._path = path
        self._lines = self._split()

    def __iter__(self) -> Iterator[bytes]:
        """The complete lines, without their ends; iterating again goes on where it stopped."""
        return self._lines

    def _split(self) -> Iterator[bytes]:
        held: list[bytes] = []
        for piece in self.pieces():
            first, *others = piece.split(b"\n")
            held.append(first)
            if others:
                yield b"".join(held)
                held = [others.pop()]
                yield from others
        # Of a broken file the last line is only a part.
        if not self.because and (last := b"".join(held)):
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
                except (zlib.error, lzma.LZMAError):
                    # What came of the last step is lost with it: go there again, on in the smallest steps.
                    careful_from = (file.tell() - 1) // _PACKED_BYTES * _PACKED_BYTES
                    file.seek(0)
                    for piece in _unpacked(file, self._path.suffix, careful_from):
                        yield piece[given:]
                        given -= min(given, len(piece))
        except _CUT_OFF as cause:
            self.because = f"{self._path.name} is cut off or broken: {cause}"


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

    The standard library's readers throw away what they hold when they come upon an error.
    """

    def read() -> bytes:
        careful = careful_from is not None and file.tell() >= careful_from
        return file.read(1 if careful else _PACKED_BYTES)

    if suffix == ".zst":
        import pyarrow as pa  # heavy, and only this needs it

        # A frame that is cut off gives nothing of its last block.
        stream = pa.CompressedInputStream(pa.PythonFile(file, "r"), "zstd")
        yield from iter(lambda: stream.read(_PIECE_BYTES), b"")
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
