"""
From facts to lives, incrementally: only workloads about which something new is known are cut anew.

The watermark commits with the result, so that a stop at any point repeats work and loses none.
"""

from collections.abc import Iterable, Iterator
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace

from analytics.copies import Copies, Place, is_copy, is_dispatched
from analytics.fairness.kueue_terms import term_rows
from analytics.fragmentation.asked import node_rows
from analytics.fragmentation.flavors import flavor_rows
from analytics.history import Catalog, History
from analytics.identity import JOB_KINDS, Identity, Known
from analytics.lifecycle import live
from analytics.site_spans import node_spans, queue_spans
from domain import objects
from domain.facts import EventSighting, ObjectKind
from domain.policy import Policy
from domain.tenant import Tenancy
from service.copied import CopiesByCluster, admitted
from service.histories import (
    JOBS,
    QUEUEING,
    Elsewhere,
    histories_of,
    surroundings_of,
    with_pods_of,
    workload_facts,
)
from service.imported_objects import cut_before, imported, imported_workloads
from service.life_rows import add_life
from service.old_members import old_members
from store.embedded import Store
from store.lives import OF_WORKLOADS, Watermark

JOB = "lives"
_MEMBERS = frozenset({*QUEUEING, *JOBS, ObjectKind.POD})
_AROUND = frozenset(
    {ObjectKind.NODE, ObjectKind.NAMESPACE, ObjectKind.LOCAL_QUEUE, ObjectKind.CLUSTER_QUEUE}
    | {ObjectKind.COHORT}
    | {ObjectKind.VOLCANO_QUEUE, ObjectKind.KAI_QUEUE, ObjectKind.RESOURCE_SLICE, ObjectKind.RESOURCE_FLAVOR}
)
_TELL_OF_PODS = frozenset({ObjectKind.POD, ObjectKind.IMPORTED_JOB})
_TELLING_EVENTS = frozenset({"Scheduled", "Preempted"})
# One row where something in the cluster is a copy, or has one.
_HAS_COPIES = """
select 1 as one from workload_copy where cluster = $cluster or of_cluster = $cluster limit 1
"""

_ON_NODES = """
-- One row per pod that holds GPUs on one of these nodes, or held them when nobody knew the node.
select distinct pod_uid from holding
where
    cluster = $cluster
    and (released_ms is null or gpu_model = '')
    and node in (select unnest($nodes::varchar[]))
"""


@dataclass(slots=True)
class _Cluster:
    """What is kept in memory of one cluster between two refreshes."""

    identity: Identity
    around: dict[str, History] = field(default_factory=dict)
    loaded: bool = False
    reads_pods: bool | None = None
    # Histories that were read for this refresh.
    read: dict[str, History] = field(default_factory=dict)

    def forget_imported(self) -> None:
        """Forget what was read for this refresh, and imported jobs altogether: see there."""
        self.identity.forget(imported(self.read))
        self.read.clear()

    def kueue_workloads(self, uids: Iterable[str]) -> Iterator[Known]:
        """The Kueue Workloads among these objects."""
        for uid in uids:
            known = self.identity.known.get(uid)
            if known is not None and known.kind is ObjectKind.WORKLOAD:
                yield known


@dataclass(slots=True, kw_only=True)
class Refresher:
    """Keeps the lives in the store up to date with its facts."""

    store: Store
    tenancy: Tenancy = field(default_factory=Tenancy)
    policy: Policy = field(default_factory=Policy)
    _clusters: dict[str, _Cluster] = field(default_factory=dict)
    _copies: Copies = field(default_factory=Copies)

    def refresh(self) -> int:
        """Cut anew what has news, in every cluster; gives the number of workloads cut."""
        return sum(self.refresh_cluster(cluster) for cluster in self.store.clusters())

    def refresh_cluster(self, cluster: str) -> int:
        """
        The same in one cluster; what MultiKueue copied is cut anew in the others too.

        Only then the watermark moves: after a stop in between all is done again.
        """
        changed = self.store.changed_since(cluster, JOB)
        if not changed.uids:
            return 0
        kept = self._of(cluster)
        kept.forget_imported()  # what a refresh left that failed
        first = kept.reads_pods is None
        new = self._learn(cluster, kept, changed.uids)
        observed = self._reads_pods(cluster)
        touched = changed.uids | self._depending(cluster, kept, changed.uids, observed=observed)
        members = self._affected(cluster, kept, touched, new=new)
        mark = Watermark(JOB, changed.seq)
        for some in self._imported_depending(cluster, kept, changed.uids, first=first):
            self._cut(cluster, self._affected(cluster, kept, some - members.keys()), mark)
            kept.forget_imported()
        linked = self._linked(cluster, kept, members)
        self._cut(cluster, members, mark, news=changed.uids, advances=not linked)
        for other, uids in linked.items():
            self._cut(other, self._affected(other, self._of(other), uids), mark)
        if linked:
            self.store.write_lives(cluster, workload_uids=[], tables={}, watermark=mark)
        kept.forget_imported()
        return len(members)

    def _of(self, cluster: str) -> _Cluster:
        """What is kept of a cluster."""
        identity = Identity(job_kinds=JOB_KINDS | self.policy.job_kinds)
        return self._clusters.setdefault(cluster, _Cluster(identity))

    def _cut(
        self,
        cluster: str,
        members: dict[str, list[str]],
        mark: Watermark,
        *,
        news: AbstractSet[str] = frozenset(),
        advances: bool = False,
    ) -> None:
        """Cut these workloads anew, each with its objects; `news` are objects that are new or changed."""
        kept = self._of(cluster)
        observed = self._reads_pods(cluster)
        uids = {uid for group in members.values() for uid in group}
        histories = {uid: kept.read[uid] for uid in uids if uid in kept.read}
        if missing := uids - histories.keys():
            histories |= histories_of(*self.store.facts_of(cluster, missing))
        events = self._events(cluster, uids)
        catalog = Catalog.of(h for h in kept.around.values() if h.kind is ObjectKind.NODE)
        around = surroundings_of(kept.around.values())
        copies = self._copies_of(cluster, kept, members)
        elsewhere, without_pods = self._elsewhere(copies), admitted(self.store, copies)
        tables: dict[str, list[dict[str, object]]] = {name: [] for name in OF_WORKLOADS}
        for workload_uid, group in members.items():
            known = [histories[uid] for uid in group if uid in histories]
            facts = workload_facts(workload_uid, known, catalog, events, pods_observed=observed)
            if facts is not None:
                facts = with_pods_of(elsewhere.get(workload_uid), facts)
                life = live(facts, skew_tolerated=self.policy.skew_tolerated)
                if workload_uid in without_pods:
                    facts = replace(facts, pods_elsewhere=True)
                original = self._original(cluster, kept, group)
                add_life(
                    tables, cluster, facts, life=life, around=around, tenancy=self.tenancy, original=original
                )
        if news & kept.around.keys():
            tables["node_span"] = list(node_spans(cluster, kept.around.values()))
            tables["node_device"] = [{"cluster": cluster} | row for row in node_rows(kept.around.values())]
            tables["queue_flavor"] = list(flavor_rows(cluster, kept.around.values()))
            tables["queue_span"] = list(queue_spans(cluster, kept.around.values()))
            tables["kueue_terms"] = list(term_rows(cluster, kept.around.values()))
        self.store.write_lives(
            cluster, workload_uids=list(members), tables=tables, watermark=mark, advances=advances
        )

    def _learn(self, cluster: str, kept: _Cluster, uids: set[str]) -> set[str]:
        """
        Take new descriptions into the index; the first time all of them but those of imported jobs.

        Gives the objects that were not in it, as far as nothing can have been cut of them before.
        """
        new = uids - kept.identity.known.keys() if kept.loaded else set()
        if not kept.loaded:
            kept.loaded = True
            self._index(cluster, kept, histories_of(*self.store.lasting_facts_of(cluster)))
        read = uids - kept.read.keys()
        found = histories_of(*self.store.facts_of(cluster, read)) if read else {}
        kept.read |= found
        self._index(cluster, kept, found)
        before = cut_before(self.store, cluster, kept.identity, imported(new))
        return new - before

    def _index(self, cluster: str, kept: _Cluster, histories: dict[str, History]) -> None:
        """Take in what these objects say of themselves."""
        for history in histories.values():
            body = history.latest
            if history.kind in _AROUND:
                kept.around[history.uid] = history
            elif body is not None and history.kind in _MEMBERS:
                known = Known(
                    uid=history.uid,
                    kind=history.kind,
                    namespace=history.namespace,
                    name=history.name,
                    created_ms=history.created_ms,
                    body=body,
                )
                kept.identity.add(known)
                if known.kind is ObjectKind.WORKLOAD:
                    self._copies.add(cluster, known)

    def _linked(self, cluster: str, kept: _Cluster, members: dict[str, list[str]]) -> dict[str, set[str]]:
        """Originals and copies of these workloads in other clusters, which are read now if need be."""
        found: dict[str, set[str]] = {}
        mine = [known for group in members.values() for known in kept.kueue_workloads(group)]
        if any(is_copy(known.body) or is_dispatched(known.body) for known in mine) or self.store.rows(
            _HAS_COPIES, {"cluster": cluster}
        ):
            for other in self.store.clusters():
                if not self._of(other).loaded:
                    self._learn(other, self._of(other), set())
        for place in self._copies.linked(Place(cluster, known.uid) for known in mine):
            found.setdefault(place.cluster, set()).add(place.uid)
        return found

    def _original(self, cluster: str, kept: _Cluster, group: Iterable[str]) -> Place | None:
        """The workload in another cluster of which the one with these objects is a copy."""
        for known in kept.kueue_workloads(group):
            place = self._copies.original_of(Place(cluster, known.uid))
            if place is not None:
                uid = self._of(place.cluster).identity.workload_of(place.uid)
                return Place(place.cluster, uid or place.uid)
        return None

    def _copies_of(self, cluster: str, kept: _Cluster, members: dict[str, list[str]]) -> CopiesByCluster:
        """The copies of these workloads by cluster, each with the workload of which it is one."""
        copies: CopiesByCluster = {}
        for workload_uid, group in members.items():
            for known in kept.kueue_workloads(group):
                for place in self._copies.copies_of(Place(cluster, known.uid)):
                    copy_uid = self._of(place.cluster).identity.workload_of(place.uid)
                    copies.setdefault(place.cluster, {})[copy_uid or place.uid] = workload_uid
        return copies

    def _elsewhere(self, copies: CopiesByCluster) -> dict[str, Elsewhere]:
        """What is known of the pods of these copies, where pods of their clusters are read."""
        copies = {name: of_copy for name, of_copy in copies.items() if self._reads_pods(name)}
        nodes = (
            history
            for name in copies
            for history in self._of(name).around.values()
            if history.kind is ObjectKind.NODE
        )
        catalog = Catalog.of(nodes)
        found = {uid: Elsewhere(catalog) for of_copy in copies.values() for uid in of_copy.values()}
        for name, of_copy in copies.items():
            groups = self._affected(name, self._of(name), set(of_copy))
            owners = {
                uid: of_copy[copy] for copy, group in groups.items() if copy in of_copy for uid in group
            }
            histories = histories_of(*self.store.facts_of(name, set(owners)))
            events = self._events(name, set(owners))
            for uid, history in histories.items():
                if history.kind is ObjectKind.POD:
                    found[owners[uid]].pods.append(history)
                    found[owners[uid]].events += events.get(uid, ())
        return found

    def _reads_pods(self, cluster: str) -> bool:
        """Whether pods of the cluster were ever read; a mark may tell of a failure only."""
        marks = (mark for mark in self.store.marks() if mark["cluster"] == cluster)
        return any(mark["kind"] in _TELL_OF_PODS and mark["seen_ms"] != 0 for mark in marks)

    def _depending(self, cluster: str, kept: _Cluster, uids: set[str], *, observed: bool) -> set[str]:
        """
        Objects whose workloads depend on something else that has news.

        Pods on nodes that changed; all in a namespace that changed or got a queue; all there are,
        when pods begin to be read: until then admission stood for placement.
        """
        if observed is not kept.reads_pods:
            kept.reads_pods = observed
            return set(kept.identity.known)
        news = [kept.around[uid] for uid in uids if uid in kept.around]
        spaces = {h.name for h in news if h.kind is ObjectKind.NAMESPACE}
        spaces |= {h.namespace for h in news if h.kind is ObjectKind.LOCAL_QUEUE}
        found = (
            {uid for uid, known in kept.identity.known.items() if known.namespace in spaces}
            if spaces
            else set()
        )
        nodes = [h.name for h in news if h.kind is ObjectKind.NODE]
        if nodes:
            rows = self.store.rows(_ON_NODES, {"cluster": cluster, "nodes": nodes})
            found |= {str(row["pod_uid"]) for row in rows}
        return found

    def _affected(
        self, cluster: str, kept: _Cluster, touched: set[str], *, new: AbstractSet[str] = frozenset()
    ) -> dict[str, list[str]]:
        """
        Workloads to cut anew, each with all its objects; one that lost all of them has none.

        A Workload that appears after its job takes the job's objects over, so the old owners of
        every touched object are looked at too, until nothing more is drawn in.
        """
        self._learn_imported(cluster, kept, touched)
        drawn = {uid for uid in touched if kept.identity.workload_of(uid) is not None}
        drawn |= {owner for uid in drawn for owner in _claims(kept.identity, uid)}
        workloads: set[str] = set()
        looked_up: set[str] = set()
        while asked := (drawn | workloads) - looked_up:
            old = old_members(self.store, cluster, asked, new=new)
            looked_up |= asked
            self._learn_imported(cluster, kept, {uid for _, uid in old})
            drawn |= {uid for _, uid in old}
            workloads |= {uid for uid, _ in old} | set(kept.identity.members(drawn))
        members = kept.identity.members(drawn)
        return {workload: members.get(workload, []) for workload in workloads}

    def _learn_imported(self, cluster: str, kept: _Cluster, uids: set[str]) -> None:
        """Take in again what was forgotten of imported jobs."""
        if missing := imported(uids) - kept.identity.known.keys():
            self._learn(cluster, kept, missing)

    def _imported_depending(
        self, cluster: str, kept: _Cluster, uids: set[str], *, first: bool
    ) -> Iterator[set[str]]:
        """
        Imported workloads that depend on something else that has news, some at a time.

        Those in a namespace that changed; all there are, when a process begins.
        """
        spaces = {
            kept.around[uid].name
            for uid in uids
            if uid in kept.around and kept.around[uid].kind is ObjectKind.NAMESPACE
        }
        if first or spaces:
            yield from imported_workloads(self.store, cluster, None if first else spaces)

    def _events(self, cluster: str, uids: set[str]) -> dict[str, list[EventSighting]]:
        by_uid: dict[str, list[EventSighting]] = {}
        for event in self.store.events_of(cluster, _TELLING_EVENTS, uids):
            by_uid.setdefault(event.regarding_uid, []).append(event)
        return by_uid


def _claims(identity: Identity, uid: str) -> list[str]:
    known = identity.known.get(uid)
    body = known.body if known else None
    if isinstance(body, objects.Workload):
        return [owner.uid for owner in body.owners] + ([body.job_uid] if body.job_uid else [])
    if isinstance(body, objects.PodGroup) and body.owner is not None:
        return [body.owner.uid]
    return []
