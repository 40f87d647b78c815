"""Why a workload waits at an instant, out of its state, what was said of it, and what a search found."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Final

from analytics.why import messages
from analytics.why.reason import (
    FAMILIES,
    Blocker,
    BlockerKind,
    Explanation,
    Finding,
    Reason,
    Source,
    Value,
    explanation,
)
from domain.workload import State

# The gates of systems that queue: what hangs on them waits, and is not held back.
_QUEUEING_GATES: Final = ("kueue.x-k8s.io/",)
_INFERRED: Final = (Source.PLACEMENT, Source.QUOTA, Source.ORDER)
_read = lru_cache(maxsize=4096)(messages.read)


class About(StrEnum):
    """What a text is about: quota, a pod without a node, a gang, pods that were refused, a container."""

    QUOTA = "quota"
    POD = "pod"
    GANG = "gang"
    DENIAL = "denial"
    CONTAINER = "container"


# Which texts count in which state: a pod that is bound has no more to say of nodes.
_HEARD: Final[Mapping[State, frozenset[About]]] = {
    State.HELD: frozenset({About.QUOTA, About.GANG, About.POD}),
    State.QUEUED: frozenset({About.QUOTA, About.GANG, About.DENIAL}),
    State.CHECKING: frozenset(),
    State.PLACING: frozenset({About.POD, About.GANG, About.DENIAL}),
    State.STARTING: frozenset({About.CONTAINER}),
    State.BACKOFF: frozenset({About.QUOTA, About.DENIAL}),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A text that a scheduler or controller wrote, with the machine-readable reason beside it."""

    about: About
    text: str
    at_ms: int
    reason: str = ""

    def findings(self) -> tuple[Finding, ...]:
        """What it tells."""
        return _read(self.text, reason=self.reason)


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """
    A workload at an instant.

    `word` is the scheduler's word of its span, which began at `since_ms`. `said` are the texts of that span
    in order of time. `checks` maps each admission check to its state. Of a gang, `min_members` are wanted
    and `members` exist; None where that is not known. `stopped` names its queue where somebody stopped it,
    `no_queue` where there is none of that name. `found` is what searches and arithmetic found: reasons that
    would keep it from starting now. `may_fit`: by our arithmetic its queue could have quota for it.
    """

    state: State
    since_ms: int
    word: str = ""
    said: tuple[Said, ...] = ()
    gates: tuple[str, ...] = ()
    checks: Mapping[str, str] = field(default_factory=dict)
    members: int | None = None
    min_members: int = 1
    stopped: str = ""
    no_queue: str = ""
    may_fit: bool = False
    found: tuple[Finding, ...] = ()


def explain(situation: Situation) -> Explanation | None:
    """
    The primary reason and all further ones; None for work that waits for nothing: it runs, drains or is over.

    A machine-readable reason of a scheduler wins over what was found by search, whatever their order; among
    all others the precedence decides.
    """
    if situation.state not in _HEARD:
        return None
    heard = [one for one in situation.said if one.about in _HEARD[situation.state]]
    told = [_not_never(one) if situation.may_fit else one for one in _newest(heard)]
    # What a container says is more than that it starts.
    own = [] if situation.state is State.STARTING and told else _of_state(situation)
    answer = explanation([*own, *told, *situation.found], text=heard[-1].text if heard else "")
    return _dated(_with_words(_trusted(answer), told), heard, situation)


def _of_state(situation: Situation) -> list[Finding]:
    """What follows from the state alone; machine-readable, so that nothing is inferred."""
    match situation.state:
        case State.HELD:
            return [_held(situation)]
        case State.CHECKING:
            return [_checking(situation)]
        case State.STARTING:
            remedy = "Nothing to do: it has its GPUs, and its containers start."
            return [_stated(Reason.STARTING, {}, remedy)]
    found = []
    if situation.stopped:
        evidence: dict[str, Value] = {"queue": situation.stopped}
        blocker = Blocker(kind=BlockerKind.QUEUE, name=situation.stopped)
        found.append(_stated(Reason.HELD_BY_OWNER, evidence, "Ask who stopped the queue.", blocker))
    if situation.no_queue:
        evidence = {"queue_kind": "Queue", "queue": situation.no_queue, "problem": "doesn't exist"}
        blocker = Blocker(kind=BlockerKind.QUEUE, name=situation.no_queue)
        remedy = "Name a queue that exists, or have this one made."
        found.append(_stated(Reason.MISCONFIGURED, evidence, remedy, blocker))
    if situation.state is State.BACKOFF:
        remedy = "Find out why it was thrown out; it queues again by itself."
        found.append(_stated(Reason.BACKOFF, {"word": situation.word}, remedy))
    elif situation.members is not None and situation.members < situation.min_members:
        evidence = {"members": situation.members, "min_members": situation.min_members}
        remedy = (
            "Create the missing members: the gang starts when all of them are there."
            if situation.min_members > 1
            else "Look at the Events of its job, and of its controller: nobody has made its pod yet."
        )
        found.append(_stated(Reason.GANG_INCOMPLETE, evidence, remedy))
    return found


def _held(situation: Situation) -> Finding:
    gates = tuple(gate for gate in situation.gates if not gate.startswith(_QUEUEING_GATES))
    if gates:
        blockers = tuple(Blocker(kind=BlockerKind.GATE, name=gate) for gate in gates)
        remedy = "Whoever set the scheduling gate must take it away."
        return _stated(Reason.GATED, {"gates": gates}, remedy, *blockers)
    remedy = "Its owner keeps it back: activate it, or resume the job."
    if situation.word == "Deactivated":
        remedy = "Find out why it was deactivated, then activate it again: spec.active = true."
    return _stated(Reason.HELD_BY_OWNER, {"word": situation.word}, remedy)


def _checking(situation: Situation) -> Finding:
    pending = tuple(sorted(name for name, state in situation.checks.items() if state != "Ready"))
    states: dict[str, Value] = {f"check_{name}": state for name, state in sorted(situation.checks.items())}
    blockers = tuple(Blocker(kind=BlockerKind.CHECK, name=name) for name in pending)
    remedy = "Its quota is reserved: ask who decides on the admission check."
    if "Rejected" in situation.checks.values():
        remedy = "The admission check refused it: change the request, or ask who decides."
    return _stated(Reason.ADMISSION_CHECK, {"pending": pending, **states}, remedy, *blockers)


def _newest(heard: list[Said]) -> list[Finding]:
    """What the newest text about each thing tells."""
    newest = {one.about: one for one in heard}
    return [finding for one in newest.values() for finding in one.findings()]


def _not_never(told: Finding) -> Finding:
    """What was read of one flavor as too small for good, of a workload that another flavor may hold."""
    if told.reason is not Reason.NEVER_FITS or not told.is_coarse:
        return told
    return replace(told, reason=Reason.QUOTA_EXHAUSTED, evidence={}, remedy="Wait until quota is free.")


def _trusted(answer: Explanation) -> Explanation:
    """The same with a machine-readable reason before what was only inferred."""
    stated = next((one for one in answer.findings if one.source is Source.STATED and _is_said(one)), None)
    if stated is None or answer.primary.source not in _INFERRED:
        return answer
    return Explanation(primary=stated, further=tuple(one for one in answer.findings if one is not stated))


def _is_said(one: Finding) -> bool:
    """Whether somebody says so; that pods of a gang are missing is counted, and may have a cause."""
    return not one.is_coarse and one.reason is not Reason.GANG_INCOMPLETE


def _with_words(answer: Explanation, told: Iterable[Finding]) -> Explanation:
    """
    The same, with the scheduler's words on an answer that a search made exact.

    What a search found stands for a coarse finding of the same family, whose text is kept beside it.
    """
    related = (one for one in told if answer.primary.reason in FAMILIES.get(one.reason, (one.reason,)))
    text = answer.primary.text or next((one.text for one in related), "")
    return replace(answer, primary=replace(answer.primary, text=text))


def _dated(answer: Explanation, heard: list[Said], situation: Situation) -> Explanation:
    """The same with since when the primary reason has held, as far as it was said."""
    if answer.primary.since_ms is not None:
        return answer
    if answer.primary.source is Source.STATED and not answer.primary.text:
        return replace(answer, primary=replace(answer.primary, since_ms=situation.since_ms))
    since_ms = None
    for one in reversed(heard):
        if not any(_stands_for(finding, answer.primary) for finding in one.findings()):
            break
        since_ms = one.at_ms
    return replace(answer, primary=replace(answer.primary, since_ms=since_ms))


def _stands_for(told: Finding, primary: Finding) -> bool:
    if told.is_coarse:
        return primary.reason in FAMILIES.get(told.reason, (told.reason,))
    return told.reason is primary.reason


def _stated(reason: Reason, evidence: Mapping[str, Value], remedy: str, *blockers: Blocker) -> Finding:
    return Finding(reason=reason, source=Source.STATED, evidence=evidence, remedy=remedy, blockers=blockers)
