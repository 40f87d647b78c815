"""What the store knows of some workloads just before an instant, as `analytics.why` takes it."""

import json
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

import msgspec

from analytics.denials import REASONS
from analytics.why.messages.kueue import PENDING_WORDS
from analytics.why.nodes import Gang, PodSet
from analytics.why.reason import Finding, Reason
from analytics.why.situation import About, Said, Situation
from domain.facts import ObjectKind
from domain.objects import Workload
from domain.workload import WAITING_STATES, State
from service import why_sql
from service.why_nodes import others_asked, placement_of
from service.why_site import Site
from service.why_sql import of_few
from store.embedded import Store

Row: TypeAlias = Mapping[str, Any]
# Up to so many workloads are asked about in words for few.
_FEW: Final = 16
# A condition may be a second older than its span: stamps are whole seconds.
_OLDER_MS: Final = 1000
# What Events are about, by their reasons.
_ABOUT: Final[Mapping[str, About]] = {
    "FailedScheduling": About.POD,
    "Unschedulable": About.GANG,
    "ErrWorkloadCompose": About.GANG,
    **dict.fromkeys(REASONS, About.DENIAL),
    **dict.fromkeys(
        ("Failed", "BackOff", "ErrImagePull", "ImagePullBackOff", "InspectFailed"), About.CONTAINER
    ),
}
_OF_VOLCANO: Final = frozenset({ObjectKind.VOLCANO_JOB, ObjectKind.VOLCANO_POD_GROUP})
_NO_WORKLOAD_YET: Final = "ErrWorkloadCompose"
_WORKLOAD: Final = msgspec.json.Decoder(Workload)


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What is known of one workload: its course, its pods, what was said, what Kueue has of it."""

    course: Row
    pods: Sequence[Row] = ()
    said: Sequence[Row] = ()
    kueue: Workload | None = None
    shape: Sequence[Row] = ()
    asks: Sequence[Row] = field(default=())
    spans: Sequence[Row] = ()

    @property
    def state(self) -> State:
        """Where it stands."""
        return State(self.course["state"])

    @property
    def gang_size(self) -> int:
        """Its minimum members."""
        return max(int(self.course["gang_size"]), 1)

    @property
    def asked(self) -> str:
        """Equal for those that ask alike, as far as it is about one pod."""
        return next((f"{row['devices']} {row['others']}" for row in self.asks or self.shape), "")

    def situation(self, site: Site, found: Sequence[Finding]) -> Situation:
        """As `analytics.why` takes it, with what searches found."""
        unbound = {row["uid"] for row in self.pods if not row["bound"]}
        since_ms = int(self.course["since_ms"])
        said = [
            Said(about=About(row["about"]), text=row["text"], at_ms=int(row["at_ms"]), reason=row["reason"])
            for row in self.said
            if int(row["at_ms"]) >= since_ms - _OLDER_MS
            and (row["about"] != About.POD or row["uid"] in unbound)
            # Once the group is complete, it has a Workload.
            and (row["reason"] != _NO_WORKLOAD_YET or self.kueue is None)
        ]
        gates = {gate for row in self.pods for gate in json.loads(row["gates"] or "[]")}
        return Situation(
            state=self.state,
            since_ms=since_ms,
            word=str(self.course["word"]),
            said=tuple(said),
            gates=tuple(sorted(gates)),
            checks=self.kueue.checks if self.kueue else {},
            members=len(self.pods) if self.state is State.PLACING else None,
            min_members=self.gang_size,
            stopped=self._stopped(site),
            no_queue=self._no_queue(site),
            may_fit=self._may_fit(site, found),
            found=tuple(found),
        )

    def gang(self, site: Site) -> Gang:
        """The pods for which there must be room at once: of a gang that is partly bound, the others."""
        unbound = {row["uid"] for row in self.pods if not row["bound"]}
        bound = len(self.pods) - len(unbound)
        members = max(self.gang_size - bound, 1) if self.state is State.PLACING else self.gang_size
        # Of a gang whose pods are still being made it counts what all of them will ask.
        is_there = len(self.pods) >= self.gang_size or not self.shape
        if self.state is State.PLACING and unbound and is_there:
            asks = [row for row in self.asks if row["pod_uid"] in unbound]
            return Gang(pod_sets=_cut(_by_pod(asks), members))
        queue = str(self.course["queue"])
        return Gang(pod_sets=_cut(_by_part(self.shape, site, queue), members))

    def _may_fit(self, site: Site, found: Sequence[Finding]) -> bool:
        """Whether the arithmetic of Kueue's quota looked at it, and did not find that it never fits."""
        return (
            self.state is State.QUEUED
            and self.kueue is not None
            and bool(self.kueue.pod_sets)
            and self.course["queue"] in site.cluster_queues
            and not any(one.reason is Reason.NEVER_FITS for one in found)
        )

    def _no_queue(self, site: Site) -> str:
        """The queue of Volcano that it names and that is not there; Kueue tells of its own."""
        queue = str(self.course["queue"])
        if self.course["kind"] not in _OF_VOLCANO or not site.volcano_queues:
            return ""
        return "" if queue in site.volcano_queues else queue

    def _stopped(self, site: Site) -> str:
        if self.kueue is None or self.state not in (State.QUEUED, State.BACKOFF):
            return ""
        namespace, queue = str(self.course["namespace"]), str(self.course["queue"])
        return site.stopped(namespace, self.kueue.local_queue, queue)


def read(store: Store, cluster: str, uids: Collection[str], as_of_ms: int) -> dict[str, Known]:
    """What is known of these workloads; nothing of one that was not submitted yet."""
    asked: dict[str, object] = {"cluster": cluster, "uids": list(uids), "as_of_ms": as_of_ms}
    spans = _by_workload(_rows(store, why_sql.SPANS, asked))
    courses = [
        {**row, **_course(spans[row["uid"]], int(row["submitted_ms"]), as_of_ms)}
        for row in _rows(store, why_sql.WORKLOADS, asked)
    ]
    members = {row["uid"]: row for row in _rows(store, why_sql.MEMBERS, asked)}
    has_pods = any(row["kind"] == ObjectKind.POD for row in members.values())
    first_ms = min((row["since_ms"] for row in courses), default=as_of_ms) - _OLDER_MS
    asked |= {"members": list(members), "first_ms": first_ms, "words": [*_ABOUT, *PENDING_WORDS]}
    ends = {row["uid"]: row for row in _rows(store, why_sql.ENDS, asked)} if has_pods else {}
    pods: defaultdict[str, list[Row]] = defaultdict(list)
    kueue: dict[str, Row] = {}
    for row in sorted(_rows(store, why_sql.BODIES, asked), key=lambda one: (one["from_ms"], one["uid"])):
        of_uid = members[row["uid"]]["of_uid"]
        if row["kind"] == ObjectKind.WORKLOAD:
            kueue[of_uid] = row
        elif row["uid"] in ends and not ends[row["uid"]]["ended"]:
            pods[of_uid].append({"uid": row["uid"], "bound": ends[row["uid"]]["bound"], "gates": row["body"]})
    said: defaultdict[str, list[Row]] = defaultdict(list)
    for row in _rows(store, why_sql.SAID, asked):
        member = members[row["uid"]]
        about = _about(row["word"], member["kind"])
        if about is not None:
            said[member["of_uid"]].append({**row, "about": about})
    shapes = _by_workload(_rows(store, why_sql.SHAPES, asked))
    asks = _by_workload(_rows(store, why_sql.ASKS, asked) if has_pods else ())
    return {
        row["uid"]: Known(
            course=row,
            pods=pods[row["uid"]],
            said=said[row["uid"]],
            kueue=_WORKLOAD.decode(kueue[row["uid"]]["body"]) if row["uid"] in kueue else None,
            shape=shapes[row["uid"]],
            asks=asks[row["uid"]],
            spans=spans[row["uid"]],
        )
        for row in courses
    }


def _course(spans: Sequence[Row], submitted_ms: int, as_of_ms: int) -> dict[str, Any]:
    """Where it stands after these spans, since when, and how long it waited so far; it begins as queued."""
    state, word, since_ms = str(State.QUEUED), "", submitted_ms
    waited_ms = 0 if spans else as_of_ms - submitted_ms
    before = None
    for span in spans:
        state, word = span["state"], span["word"]
        if state != before:
            since_ms = span["start_ms"]
        if state in WAITING_STATES:
            end_ms = as_of_ms if span["end_ms"] is None else min(span["end_ms"], as_of_ms)
            waited_ms += end_ms - span["start_ms"]
        before = state
    return {"state": state, "word": word, "since_ms": since_ms, "waited_ms": waited_ms}


def _rows(store: Store, sql: str, asked: Mapping[str, object]) -> Sequence[Row]:
    uids = asked["uids"]
    return store.rows(of_few(sql) if isinstance(uids, list) and len(uids) <= _FEW else sql, asked)


def _about(word: str, kind: str) -> About | None:
    """
    What a text is about, by the condition or the Event that has it and by whom it is written of.

    None for what tells nothing of waiting: a Job has Events that are called as conditions of Kueue are.
    """
    if kind == ObjectKind.WORKLOAD:
        return About.QUOTA
    return About.POD if word == "PodScheduled" else _ABOUT.get(word)


def _by_workload(rows: Sequence[Row]) -> defaultdict[str, list[Row]]:
    found: defaultdict[str, list[Row]] = defaultdict(list)
    for row in rows:
        found[row["of_uid"]].append(row)
    return found


def _by_pod(asks: Sequence[Row]) -> list[PodSet]:
    """Pods that ask alike together."""
    devices: dict[str, dict[str, int]] = defaultdict(dict)
    wants: dict[str, tuple[str, str]] = {}
    for row in asks:
        devices[row["pod_uid"]][row["resource"]] = int(row["devices"])
        wants[row["pod_uid"]] = row["wants"], row["others"]
    counted: dict[tuple[tuple[tuple[str, int], ...], tuple[str, str]], int] = defaultdict(int)
    for uid, asked in devices.items():
        counted[tuple(sorted(asked.items())), wants[uid]] += 1
    return [
        PodSet(pods=pods, devices=dict(asked), placement=placement_of(wanted), others=others_asked(others))
        for (asked, (wanted, others)), pods in counted.items()
    ]


def _by_part(shape: Sequence[Row], site: Site, queue: str) -> list[PodSet]:
    """The parts of a workload as they were submitted, where the flavors of its queue let them go."""
    devices: dict[int, dict[str, int]] = defaultdict(dict)
    first: dict[int, Row] = {}
    for row in shape:
        devices[row["part"]][row["resource"]] = int(row["devices"])
        first.setdefault(row["part"], row)
    return [
        PodSet(
            pods=int(row["pods"]),
            devices=devices[part],
            placement=placement_of(row["wants"]),
            flavors=site.flavors.get((queue, row["resource"]), ()),
            others=others_asked(row["others"]),
        )
        for part, row in first.items()
    ]


def _cut(pod_sets: Sequence[PodSet], members: int) -> tuple[PodSet, ...]:
    """As many pods as must start at once; where they ask unlike, all of them."""
    if len(pod_sets) != 1 or pod_sets[0].pods <= members:
        return tuple(pod_sets)
    (only,) = pod_sets
    return (
        PodSet(
            pods=members,
            devices=only.devices,
            placement=only.placement,
            flavors=only.flavors,
            others=only.others,
        ),
    )
