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

from domain.facts import Batch, Description
from store.forgetting import said

_STRING = r'"((?:[^"\\]|\\.)*)"'


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
        self._place = re.compile(f"(?:{keys}):{_STRING}") if labels else None
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
            written.replace(self._path)
        return self._instead[print_]

    def without(self, batch: Batch) -> Batch:
        """The batch with another word for each name that was forgotten."""
        if not self._instead:
            return batch
        return replace(batch, descriptions=[self._clean(one) for one in batch.descriptions])

    def _clean(self, description: Description) -> Description:
        body = self.clean(description.body.decode())
        return structs.replace(description, body=body.encode())

    def clean(self, text: str) -> str:
        """JSON with another word for each name that was forgotten."""
        return self._place.sub(self._exchanged, text) if self._place is not None and self._instead else text

    def _exchanged(self, found: re.Match[str]) -> str:
        name = msgspec.json.decode(f'"{found[1]}"', type=str)
        instead = self._instead.get(self._fingerprint(name))
        if instead is None:
            return found[0]
        label = msgspec.json.decode(found[0].partition(":")[0], type=str)
        return said(label, instead)

    def _fingerprint(self, name: str) -> str:
        return hashlib.sha256((self._salt + name).encode()).hexdigest()
