"""Golden cases of translators: an object in, its facts out."""

import json
from pathlib import Path
from typing import Any

import yaml

from collector.checkpoints import Annotations
from collector.decoding import read_object
from collector.translator import Translator, find
from domain.facts import Description, EventSighting, Fact, Transition
from domain.window import format_instant, parse_instant
from tests.shared import shared

FOLDER = Path(__file__).parents[1] / "golden" / "collector"
CASES = sorted(FOLDER.glob("*/*.yaml"))
_TIMES = {"at_ms": "at", "earliest_ms": "earliest", "from_ms": "from", "first_ms": "first", "last_ms": "last"}
# The same in each case: where the fact comes from and when it was read.
_LEFT_OUT = ("uid", "kind", "observed_ms", "resource_version")


def read(path: Path) -> dict[str, Any]:
    """A case as it is written."""
    case: dict[str, Any] = yaml.safe_load(path.read_text())
    return case


def object_of(case: dict[str, Any]) -> dict[str, Any]:
    """The case's object: written in it, or the name of a sample."""
    if "object" in case:
        written: dict[str, Any] = case["object"]
        return written
    sample: dict[str, Any] = json.loads(shared(f"reference/samples/{case['sample']}").read_text())
    return sample


def translator_of(written: dict[str, Any]) -> Translator:
    """The translator of an object."""
    group, _, _ = written["apiVersion"].rpartition("/")
    translator = find(group, written["kind"])
    assert translator is not None, f"no translator for {written['kind']} of {group!r}"
    return translator


def facts_of(case: dict[str, Any]) -> list[Fact]:
    """What the translator says of the case's object."""
    written = object_of(case)
    translator = translator_of(written)
    raw = read_object(json.dumps(written).encode(), translator.raw)
    facts = translator.facts(raw, parse_instant(case["observed_at"]))
    return [*facts, *Annotations().told(raw, facts, lambda *_: None)]


def shown(fact: Fact) -> dict[str, Any]:
    """A fact as a case writes it: instants in words, nothing that is empty."""
    row: dict[str, Any] = {"fact": _NAMES[type(fact)]}
    for name in fact.__struct_fields__:
        value = getattr(fact, name)
        if name in _LEFT_OUT or value in ("", None):
            continue
        if name in _TIMES:
            row[_TIMES[name]] = format_instant(value)
        else:
            row[name] = json.loads(value) if name == "body" else getattr(value, "value", value)
    return row


_NAMES = {Transition: "transition", Description: "description", EventSighting: "event"}
