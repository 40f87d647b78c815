"""
Checkpoints: those that annotations tell of, and those that a job or a metric tells us.

What was told to us is taken in as an object of our own, so that it takes the way of everything else: the
journal, the commit, the count of what was set aside.
"""

from collections.abc import Callable, Sequence

import msgspec

from collector.kind import Translator
from collector.raw import Metadata, Part, RawObject
from collector.wording import instant_after_epoch
from domain.checkpoint import CheckpointReport, ToldBy
from domain.errors import FactError
from domain.facts import Fact, Moment, ObjectKind, Transition
from domain.window import CLOCK_SKEW_MS

ANNOTATION = "gpuledger.io/last-checkpoint-time"
SKEW_MS = CLOCK_SKEW_MS
UNREADABLE_STAMP = "a checkpoint at an instant that cannot be read"
OF_THE_FUTURE = "a checkpoint of the future"
BEFORE_THE_START = "a checkpoint from before its object was created"


def refusal(at_ms: int, *, since_ms: int | None, observed_ms: int) -> str:
    """
    Why a checkpoint cannot have been made then; empty where it can.

    Args:
        at_ms: when it is said to have been made.
        since_ms: when the object that tells of it was created; None where that is not known.
        observed_ms: when we were told.
    """
    if at_ms > observed_ms + SKEW_MS:
        return OF_THE_FUTURE
    if since_ms is not None and at_ms < since_ms - SKEW_MS:
        return BEFORE_THE_START
    return ""


class Annotations:
    """
    Reads checkpoints of the annotations with these keys.

    An object shows an annotation again and again: one that is no checkpoint is told of once, and does
    not become one when its instant has come.
    """

    def __init__(self, keys: Sequence[str] = (ANNOTATION,)) -> None:
        self._keys = keys
        # JSON writes a key in one way, unless there is a backslash.
        self._telling = tuple([part.encode() for part in ("\\", *keys)])
        self._refused: dict[tuple[str, str], str] = {}

    def stamps(self, metadata: Metadata) -> Sequence[tuple[str, str]]:
        """The annotations of an object that tell of a checkpoint: the key, and what is written there."""
        written = bytes(metadata.written_annotations)
        for part in self._telling:
            if part in written:
                break
        else:
            return ()  # nearly every object
        found = metadata.annotations or {}
        return [(key, found[key]) for key in self._keys if found.get(key)]

    def told(
        self, raw: RawObject, facts: Sequence[Fact], refuse: Callable[[str, str], None]
    ) -> list[Transition]:
        """
        The checkpoints of an object with these facts, its creation first.

        What a job writes there is its own affair, so a wrong stamp never sets the object aside: `refuse`
        is given why, and what was written.
        """
        found: list[Transition] = []
        for key, text in self.stamps(raw.metadata):
            creation = facts[0]
            if not isinstance(creation, Transition) or self._refused.get((creation.uid, key)) == text:
                continue
            try:
                found.append(annotated(creation, key, text))
            except FactError as cause:
                self._refused[creation.uid, key] = text
                refuse(str(cause), f"{key}: {text}")
        return found

    def forget(self, uid: str) -> None:
        """The object is gone."""
        for key in self._keys:
            self._refused.pop((uid, key), None)


def annotated(of: Transition, key: str, text: str) -> Transition:
    """
    The checkpoint that an annotation of the object of `of`, its creation, tells of.

    Raises:
        FactError: what is written there is no instant, or not one at which it can have been made.
    """
    try:
        at_ms = instant_after_epoch(text)
    except FactError:
        at_ms = None
    if at_ms is None:
        raise FactError(UNREADABLE_STAMP)
    since_ms = of.at_ms if of.earliest_ms is None else None
    if because := refusal(at_ms, since_ms=since_ms, observed_ms=of.observed_ms):
        raise FactError(because)
    return Transition(
        uid=of.uid,
        kind=of.kind,
        moment=Moment.CHECKPOINT,
        at_ms=at_ms,
        observed_ms=of.observed_ms,
        subject=ToldBy.ANNOTATION if key == ANNOTATION else key,
    )


class Told(Part, kw_only=True):
    """What was said of a checkpoint, and of which object."""

    object_uid: str
    object_kind: str
    at_ms: int
    by: str
    since_ms: int | None = None
    step: int | None = None
    detail: str = ""


class RawCheckpoint(RawObject, kw_only=True):
    """An object of our own: the word of a job, as it is kept in the journal."""

    spec: Told


def facts(raw: RawCheckpoint, observed_ms: int) -> list[Fact]:
    """
    The checkpoint, as a transition of the object that it is about.

    Raises:
        FactError: it cannot have been made then.
    """
    told = raw.spec
    if because := refusal(told.at_ms, since_ms=told.since_ms, observed_ms=observed_ms):
        raise FactError(because)
    return [
        Transition(
            uid=told.object_uid,
            kind=ObjectKind(told.object_kind),
            moment=Moment.CHECKPOINT,
            at_ms=told.at_ms,
            observed_ms=observed_ms,
            subject=told.by,
            amount=told.step,
            detail=told.detail,
        )
    ]


TRANSLATOR = Translator(
    kind=ObjectKind.CHECKPOINT,
    group="gpuledger.io",
    api_kind="Checkpoint",
    versions=("v1",),
    resource="",
    namespaced=True,
    raw=RawCheckpoint,
    facts=facts,
)


def written(  # noqa: PLR0913 (what is known of it, each by name)
    report: CheckpointReport, *, uid: str, kind: str, name: str, at_ms: int, since_ms: int | None, by: ToldBy
) -> bytes:
    """A report about an object that was found, as the object that an intake takes in."""
    told = {
        "apiVersion": "gpuledger.io/v1",
        "kind": "Checkpoint",
        "metadata": {"uid": f"checkpoint/{uid}", "namespace": report.namespace, "name": name},
        "spec": {
            "objectUid": uid,
            "objectKind": kind,
            "atMs": at_ms,
            "sinceMs": since_ms,
            "by": str(by),
            "step": report.step,
            "detail": report.words,
        },
    }
    # As bytes: a sample of it reads the same when the journal gives it again.
    return msgspec.json.encode(told)
