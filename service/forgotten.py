"""
Names that were forgotten on request: they stay out when the cluster tells them again.

Only a fingerprint of each name is kept, with the word that stands for it.
"""

import hashlib
import json
import re
import secrets
from dataclasses import replace
from pathlib import Path

import msgspec
from msgspec import structs

from collector.on_disk import settle
from domain.facts import Batch, Description
from store.forgetting import said, said_within

_STRING = r'"((?:[^"\\]|\\.)*)"'
# The same within a string: the quotes are escaped, and a backslash is two.
_STRING_WITHIN = r'\\"((?:[^"\\]|\\\\.|\\[^"\\])*)\\"'


class Forgotten:
    """
    The names of one store.

    Args:
        path: of the file that keeps them.
        labels: in which a name is looked for.
    """

    def __init__(self, path: Path, labels: tuple[str, ...]) -> None:
        self._path = path
        self.labels = labels
        self._salt = secrets.token_hex(16)
        self._instead: dict[str, str] = {}
        keys = "|".join(re.escape(msgspec.json.encode(label).decode()) for label in labels)
        self._place = re.compile(rf"(?:{keys})\s*:\s*{_STRING}") if labels else None
        within = "|".join(re.escape(_within(msgspec.json.encode(label).decode())) for label in labels)
        self._place_within = re.compile(f"({within}):{_STRING_WITHIN}")
        if path.exists():
            kept = json.loads(path.read_text(encoding="utf-8"))
            self._salt, self._instead = kept["salt"], kept["instead"]

    def add(self, name: str) -> str:
        """Keep that a name is forgotten; gives the word that stands for it, always the same."""
        print_ = self._fingerprint(name)
        if print_ not in self._instead:
            self._instead[print_] = f"forgotten-{secrets.token_hex(4)}"
            written = self._path.with_suffix(".new")
            written.write_text(json.dumps({"salt": self._salt, "instead": self._instead}), encoding="utf-8")
            settle(written)
            written.replace(self._path)
            settle(self._path)
        return self._instead[print_]

    def instead_of(self, name: str) -> str | None:
        """The word that stands for a name; None where it was not forgotten."""
        return self._instead.get(self._fingerprint(name))

    def without(self, batch: Batch) -> Batch:
        """The batch with another word for each name that was forgotten."""
        if not self._instead:
            return batch
        return replace(batch, descriptions=[self._clean(one) for one in batch.descriptions])

    def _clean(self, description: Description) -> Description:
        body = self.clean(description.body.decode())
        return structs.replace(description, body=body.encode())

    def clean(self, text: str) -> str:
        """JSON with another word for each name that was forgotten; also in JSON that is a string in it."""
        if self._place is None or not self._instead:
            return text
        return self._place_within.sub(self._exchanged_within, self._place.sub(self._exchanged, text))

    def _exchanged(self, found: re.Match[str]) -> str:
        name = msgspec.json.decode(f'"{found[1]}"', type=str)
        instead = self._instead.get(self._fingerprint(name))
        if instead is None:
            return found[0]
        label = msgspec.json.decode(found[0].partition(":")[0].strip(), type=str)
        return said(label, instead)

    def _exchanged_within(self, found: re.Match[str]) -> str:
        try:
            name = msgspec.json.decode(f'"{_without(found[2])}"', type=str)
        except msgspec.DecodeError:
            return found[0]  # within a string it may be anything
        instead = self._instead.get(self._fingerprint(name))
        if instead is None:
            return found[0]
        return said_within(msgspec.json.decode(_without(found[1]), type=str), instead)

    def _fingerprint(self, name: str) -> str:
        return hashlib.sha256((self._salt + name).encode()).hexdigest()


def _within(text: str) -> str:
    """A text as it stands in a JSON string."""
    return msgspec.json.encode(text).decode()[1:-1]


def _without(text: str) -> str:
    """What a JSON string holds."""
    return msgspec.json.decode(f'"{text}"', type=str)
