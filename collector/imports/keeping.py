"""
Takes rows of a table of jobs into the store: what is new is appended, what is known is not.

A stay is known by its job and submission. Of two rows about one stay the greater version counts
(see `Version`), so that a file may be read twice, rows may come in any order, and a later export of the
same jobs brings them up to date. Facts are only ever added: a row whose stamps contradict what is
known already is set aside.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from collector.imports.asides import Asides
from collector.imports.facts import JOB, POD, RowFacts, Version, facts
from collector.imports.row import Aside, JobRow
from domain.facts import (
    Batch,
    Description,
    Moment,
    ObjectState,
    SourceMark,
    Transition,
)

CONTRADICTS: Final = "it contradicts another row of the same job and submission: do several jobs share an id?"
_NO_VERSION: Final = Version(0, "")


class JobSink(Protocol):
    """Keeps facts, and tells what it keeps of some objects."""

    def append(self, batch: Batch) -> int:
        """Commit a batch, all or nothing; gives the rows appended."""
        ...

    def states_of(self, cluster: str, uids: Collection[str]) -> list[ObjectState]:
        """The newest reading of each of these objects."""
        ...

    def facts_of(
        self, cluster: str, uids: Collection[str] | None = None
    ) -> tuple[list[Transition], list[Description]]:
        """Facts of these objects in the order of arrival."""
        ...

    def marks(self) -> list[dict[str, object]]:
        """Where the reading of each kind of each cluster stands."""
        ...


@dataclass(slots=True)
class Kept:
    """
    What became of rows.

    `new` are stays that were not known, `updated` those of which more is known now, `known` rows that
    told nothing new; `aside` counts what was set aside, by cause. `taken` are the rows that stand in the
    books as they are, `refused` those that contradict one that does.
    """

    new: int = 0
    updated: int = 0
    known: int = 0
    facts: int = 0
    aside: Counter[str] = field(default_factory=Counter)
    taken: list[JobRow] = field(default_factory=list)
    refused: list[JobRow] = field(default_factory=list)


class Keeper:
    """
    Keeps rows of one cluster.

    Args:
        cluster: the name under which they are kept.
        sink: keeps them.
        source: what is set aside is counted under this name, for example `sacct jobs.txt`.
        now_ms: when it is read, by the machine's clock: what is set aside where no stamp is known is of then.
        known_aside: how often which cause was counted there before: reading again adds nothing.
    """

    def __init__(
        self,
        cluster: str,
        sink: JobSink,
        *,
        source: str,
        now_ms: int,
        known_aside: Mapping[str, int] | None = None,
    ) -> None:
        self.cluster = cluster
        self._sink = sink
        self._asides = Asides(source, known_aside or {})
        self._now_ms = now_ms
        self._newest_ms: int | None = None
        self._mark: SourceMark | None = None

    def keep(self, rows: Iterable[JobRow], aside: Iterable[Aside] = ()) -> Kept:
        """Take in a part of a table; it is committed as a whole."""
        kept = Kept()
        refused: list[Aside] = []
        told = _best([facts(row) for row in rows], kept, refused)
        batch = Batch(cluster=self.cluster)
        uids = {uid for one in told for uid in (one.pod_uid, one.job_uid)}
        states = {state.uid: state for state in self._sink.states_of(self.cluster, uids)}
        known = self._known(told, states)
        for one in told:
            self._take(one, states, known, batch=batch, kept=kept, refused=refused)
        self._advance(told, batch)
        observed_ms = self._now_ms if self._newest_ms is None else self._newest_ms
        counted, batch.set_aside = self._asides.note((*aside, *refused), observed_ms=observed_ms)
        kept.aside += counted
        kept.facts = len(batch) - len(batch.set_aside)
        self._sink.append(batch)
        return kept

    def _known(
        self, told: list[RowFacts], states: Mapping[str, ObjectState]
    ) -> dict[str, dict[tuple[str, str], list[int]]]:
        """When what happened to the stays that are known and have news, by stay and moment."""
        wanted = [
            one.pod_uid
            for one in told
            if one.pod_uid in states
            and one.version != (known := _version(states.get(one.pod_uid)))
            and one.version.progress >= known.progress
        ]
        found: dict[str, dict[tuple[str, str], list[int]]] = {uid: {} for uid in wanted}
        if wanted:
            for fact in self._sink.facts_of(self.cluster, wanted)[0]:
                found[fact.uid].setdefault(_place(fact), []).append(fact.at_ms)
        return found

    def _take(
        self,
        one: RowFacts,
        states: dict[str, ObjectState],
        known: Mapping[str, dict[tuple[str, str], list[int]]],
        *,
        batch: Batch,
        kept: Kept,
        refused: list[Aside],
    ) -> None:
        before = states.get(one.pod_uid)
        version = _version(before)
        if (
            before is not None
            and one.version <= version
            and (one.version == version or one.version.progress < version.progress)
        ):
            kept.known += 1
            if one.version == version:
                kept.taken.append(one.row)
            return
        places = known.get(one.pod_uid, {})
        if before is not None and _contradicts(one, places, as_far=version.progress == one.version.progress):
            _refuse(one, kept, refused)
            return
        if before is not None and one.version < version:
            kept.known += 1  # as far, with the same stamps, and less to say
            return
        batch.transitions += [fact for fact in one.of_pod if _place(fact) not in places]
        batch.descriptions += one.descriptions
        kept.new += before is None
        kept.updated += before is not None
        kept.taken.append(one.row)
        self._keep_state(one, one.pod_uid, str(one.version), states, batch)
        self._take_job(one, before, states, batch)

    def _take_job(
        self, one: RowFacts, pod: ObjectState | None, states: dict[str, ObjectState], batch: Batch
    ) -> None:
        """The job of a stay that has news: its latest stay tells what it is."""
        before = states.get(one.job_uid)
        if pod is None:
            batch.transitions += one.of_job
        elif _version(pod).progress < one.version.progress and one.row.end_ms is not None:
            batch.transitions.append(one.of_job[-1])
        stood = f"{one.row.submit_ms}:{one.version}"
        if before is not None and _standing(before.resource_version) > _standing(stood):
            return
        batch.descriptions.append(one.job_description)
        self._keep_state(one, one.job_uid, stood, states, batch)

    @staticmethod
    def _keep_state(
        one: RowFacts, uid: str, version: str, states: dict[str, ObjectState], batch: Batch
    ) -> None:
        row = one.row
        state = ObjectState(
            uid=uid,
            kind=POD if uid == one.pod_uid else JOB,
            namespace=row.team,
            name=row.job,
            resource_version=version,
            seen_ms=max(stamp for stamp in (row.submit_ms, row.start_ms, row.end_ms) if stamp is not None),
            gone_ms=row.end_ms,
        )
        states[uid] = batch.objects[uid] = state

    def _advance(self, told: list[RowFacts], batch: Batch) -> None:
        """How far the jobs of the cluster are told."""
        stamps = [
            stamp
            for one in told
            for stamp in (one.row.submit_ms, one.row.start_ms, one.row.end_ms)
            if stamp is not None
        ]
        if self._mark is None:
            before = [
                int(str(mark["seen_ms"]))
                for mark in self._sink.marks()
                if (mark["cluster"], mark["kind"]) == (self.cluster, JOB)
            ]
            self._newest_ms = max(before, default=None)
            self._mark = SourceMark(kind=JOB, resource_version="", epoch=0, seen_ms=0)
        if not stamps:
            return
        self._newest_ms = max(*stamps, self._newest_ms or 0)
        if self._newest_ms > self._mark.seen_ms:
            self._mark = batch.marks[JOB] = replace(self._mark, seen_ms=self._newest_ms)


def _version(state: ObjectState | None) -> Version:
    return _NO_VERSION if state is None else Version.parse(state.resource_version)


def _standing(version: str) -> tuple[int, Version]:
    """What a job's state is ordered by: the submission of its latest stay, and that stay's version."""
    submit_ms, _, rest = version.partition(":")
    return int(submit_ms), Version.parse(rest)


def _place(fact: Transition) -> tuple[str, str]:
    return (fact.moment, fact.subject if fact.moment is Moment.CONDITION else "")


def _contradicts(one: RowFacts, places: Mapping[tuple[str, str], Collection[int]], *, as_far: bool) -> bool:
    """
    Whether a stamp is known and another one; or a stay that had come as far is told otherwise.

    Args:
        one: what a row tells.
        places: when what happened to its stay.
        as_far: whether the stay had come as far in what is known.
    """
    told = {_place(fact): fact.at_ms for fact in one.of_pod}
    if any(place in places and at_ms not in places[place] for place, at_ms in told.items()):
        return True
    return as_far and told.keys() != places.keys()


def _best(told: list[RowFacts], kept: Kept, refused: list[Aside]) -> list[RowFacts]:
    """The greatest version of each stay, in the order of submission; what contradicts it is refused."""
    best: dict[str, RowFacts] = {}
    for one in sorted(told, key=lambda one: one.version, reverse=True):
        first = best.setdefault(one.pod_uid, one)
        if first is one:
            continue
        places = {_place(fact): (fact.at_ms,) for fact in first.of_pod}
        as_far = one.version.progress == first.version.progress
        if one.version != first.version and _contradicts(one, places, as_far=as_far):
            _refuse(one, kept, refused)
        else:
            kept.known += 1
    return sorted(best.values(), key=lambda one: (one.row.submit_ms, one.row.job))


def _refuse(one: RowFacts, kept: Kept, refused: list[Aside]) -> None:
    sample = f"job {one.row.job}, {one.row.word}"
    refused.append(Aside(line=one.row.line, because=CONTRADICTS, sample=sample, lines=one.row.lines))
    kept.refused.append(one.row)
