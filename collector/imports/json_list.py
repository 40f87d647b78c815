"""A list in a JSON document, element by element: in memory are one element and a piece of the file."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from domain.errors import RecordingError

# A string, whole or up to where the piece ends (then the group is empty), or a bracket.
_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*("?)|[{}\[\]]', re.DOTALL)
_SCALAR_ENDS: Final = re.compile(rb"[,\]}\s]")
_BLANK: Final = re.compile(rb"[\s]*")
_BLANK_OR_COMMA: Final = re.compile(rb"[\s,]*")
_QUOTE: Final = b'"'
MOST_BYTES: Final = 1 << 24


class ListInDocument:
    """
    The elements of the list that stands under a key of a document, as they are written.

    Only what separates them is read: whether an element is JSON is for its reader to find out.

    Args:
        pieces: the document's bytes, cut anywhere.
        key: of the list, in the document itself and not below it.
        beside: key of a value of the document that is kept too.
        name: of the document, for messages.
    """

    def __init__(self, pieces: Iterable[bytes], *, key: str, beside: str, name: str) -> None:
        self.found = False
        self.complete = False
        self.has_more = False
        self.beside = b""
        self._pieces = iter(pieces)
        self._key, self._key_beside = (b'"%s"' % one.encode() for one in (key, beside))
        self._name = name
        self._buffer = b""
        self._at = 0

    def __iter__(self) -> Iterator[bytes]:
        """
        The elements, once; afterwards `found` says whether there is such a list.

        `complete` then says that the document ended with its brace, `has_more` that something follows
        it, or a second such list. `beside` is the other value as it is written, empty where there is none.

        Raises:
            RecordingError: an element is larger than any job is.
        """
        self.found = self._skip(_BLANK) == b"{" and self._seek()
        while self.found:
            first = self._skip(_BLANK_OR_COMMA)
            if first in {b"", b"]"}:
                if first == b"]":
                    self._at += 1
                    self._finish()
                return
            element = self._nested() if first in {b"{", b"[", _QUOTE} else self._scalar()
            if element is None:
                return
            yield element

    def _finish(self) -> None:
        """Read on from the list's end to that of the document."""
        self.has_more = self._seek(1) or (self.complete and self._skip(_BLANK) != b"")

    def _seek(self, depth: int = 0) -> bool:
        """Go to the first element of the list; False where the document ends before, or it is none."""
        while token := self._token():
            if token in {b"{", b"["}:
                depth += 1
            elif token in {b"}", b"]"}:
                depth -= 1
                if not depth:
                    self.complete = True
                    return False
            elif depth == 1 and token in {self._key, self._key_beside} and self._skip(_BLANK) == b":":
                self._at += 1
                first = self._skip(_BLANK)
                if token == self._key:
                    self._at += 1
                    return first == b"["
                if first in {b"{", b"[", _QUOTE}:
                    self.beside = self._nested() or b""
        return False

    def _token(self) -> bytes:
        """The next string or bracket; empty at the end of the document."""
        while True:
            token = _TOKEN.search(self._buffer, self._at)
            if token is not None and not (token[0].startswith(_QUOTE) and not token[1]):
                self._at = token.end()
                return token[0]
            self._at = token.start() if token is not None else len(self._buffer)
            if not self._more():
                return b""

    def _nested(self) -> bytes | None:
        """The object, list or string that begins here; None where the document ends within it."""
        depth, scanned = 0, self._at
        while True:
            for token in _TOKEN.finditer(self._buffer, scanned):
                text = token[0]
                if text.startswith(_QUOTE):
                    if not token[1]:
                        break  # it goes on in the next piece
                else:
                    depth += 1 if text in {b"{", b"["} else -1
                scanned = token.end()
                if not depth:
                    element = self._buffer[self._at : scanned]
                    self._at = scanned
                    return element
            scanned -= self._at
            if not self._more():
                return None
            scanned += self._at

    def _scalar(self) -> bytes | None:
        while (end := _SCALAR_ENDS.search(self._buffer, self._at)) is None:
            if not self._more():
                return None
        element = self._buffer[self._at : end.start()]
        # A bracket that closes nothing is an element by itself, so that reading goes on.
        self._at = max(end.start(), self._at + 1)
        return element or end[0]

    def _skip(self, blank: re.Pattern[bytes]) -> bytes:
        """Go over what separates; gives the byte there, empty at the end of the document."""
        while True:
            found = blank.match(self._buffer, self._at)
            self._at = found.end() if found else self._at
            if self._at < len(self._buffer):
                return self._buffer[self._at : self._at + 1]
            if not self._more():
                return b""

    def _more(self) -> bool:
        """Take in the next piece, and let go of what was given out."""
        if len(self._buffer) - self._at > MOST_BYTES:
            most = MOST_BYTES // 2**20
            message = f"{self._name}: a job of more than {most} MiB; expected what sacct --json prints"
            raise RecordingError(message)
        piece = next(self._pieces, None)
        if piece is None:
            return False
        self._buffer, self._at = self._buffer[self._at :] + piece, 0
        return True
