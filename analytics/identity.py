"""
Which workload an object belongs to: one per user intent, whatever the scheduler.

By precedence: Kueue Workload; Volcano PodGroup; KAI's, scheduler-plugins' or Kubernetes' PodGroup;
else the job object, the highest controller in the owner chain whose kind is a kind of job; else the
pod itself. YuniKorn's placeholders belong to the workload for which they keep places.
Identity is a uid, never a name; where the cluster itself points by name (a pod's annotation, a
PodGroup label), the object of that name that was there when the pointer was made is meant.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from msgspec import structs

from analytics.labelled_owners import labelled_owner
from domain import objects
from domain.claims import ResourceClaim
from domain.facts import ObjectKind

# Kinds that are one intent of a user. Deployments, StatefulSets, CronJobs and the like are not.
JOB_KINDS = frozenset(
    {"Job", "JobSet", "RayJob", "RayCluster", "TrainJob", "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob"}
    | {"PaddleJob", "JAXJob", "AppWrapper"}
)
# Settings may add kinds, but none of these: below them each Job or Pod is a workload.
NEVER_JOBS = frozenset(
    {"CronJob", "DaemonSet", "Deployment", "Pod", "ReplicaSet", "StatefulSet", "Workflow", "Workload"}
)
_MOST_OWNERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What identity needs of an object: its newest description and when it was made."""

    uid: str
    kind: ObjectKind
    namespace: str
    name: str
    created_ms: int
    body: objects.Body


@dataclass(slots=True)
class Identity:
    """
    An index of the objects of one cluster; `workload_of` answers for any of them.

    Objects may be added in any order and more than once; an answer may change when a Workload or
    a PodGroup appears after its job. `job_kinds` are the kinds of job objects.
    """

    job_kinds: frozenset[str] = JOB_KINDS
    known: dict[str, Known] = field(default_factory=dict)
    _workload_of_owner: dict[str, Known] = field(default_factory=dict)
    _group_of_owner: dict[str, Known] = field(default_factory=dict)
    _by_name: dict[tuple[ObjectKind, str, str], list[str]] = field(default_factory=dict)
    _below: dict[str, dict[str, Known]] = field(default_factory=dict)
    _first_of_app: dict[tuple[str, str], Known] = field(default_factory=dict)
    _users_of_claim: dict[tuple[str, str], dict[str, Known]] = field(default_factory=dict)

    def add(self, known: Known) -> None:
        """Take in an object, or its newer description."""
        if known.uid not in self.known:
            self._by_name.setdefault((known.kind, known.namespace, known.name), []).append(known.uid)
        self.known[known.uid] = known
        body = known.body
        if isinstance(body, objects.Workload):
            for owner_uid in (*(owner.uid for owner in body.owners), body.job_uid):
                _claim(self._workload_of_owner, owner_uid, known)
        elif isinstance(body, objects.PodGroup) and body.owner is not None:
            _claim(self._group_of_owner, body.owner.uid, known)
        elif isinstance(body, objects.JobBody) and body.owner is not None:
            self._below.setdefault(body.owner.uid, {})[known.uid] = known
        elif isinstance(body, objects.Pod):
            self._add_pod(known, body)

    def forget(self, uids: Iterable[str]) -> None:
        """Forget jobs from tables and their stays: no other object's answer rests on them."""
        for uid in uids:
            known = self.known.pop(uid, None)
            if known is not None:
                alike = self._by_name[known.kind, known.namespace, known.name]
                alike.remove(uid)
                if not alike:
                    del self._by_name[known.kind, known.namespace, known.name]

    def _add_pod(self, pod: Known, body: objects.Pod) -> None:
        for claim in body.claims:
            self._users_of_claim.setdefault((pod.namespace, claim.name), {})[pod.uid] = pod
        if body.yunikorn is not None and not body.yunikorn.placeholder:
            app = (pod.namespace, body.yunikorn.app)
            self._first_of_app[app] = min(self._first_of_app.get(app, pod), pod, key=_age)

    def workload_of(self, uid: str) -> str | None:
        """
        The uid of the workload that the object belongs to.

        None for one that never asks for GPUs on its own, such as a queue or a node.
        """
        known = self.known.get(uid)
        if known is None:
            return None
        body = known.body
        if isinstance(body, objects.Workload):
            return self._first_slice(known)
        if isinstance(body, objects.PodGroup):
            return self._above_group(known, body)
        if isinstance(body, objects.Pod):
            return self._of_pod(known, body)
        if isinstance(body, objects.JobBody):
            return self._of_job(known.uid, body.owner)
        if isinstance(body, ResourceClaim):
            return self._of_claim(known, body)
        return None

    def members(self, uids: Iterable[str]) -> dict[str, list[str]]:
        """The objects of each workload among these."""
        found: dict[str, list[str]] = {}
        for uid in uids:
            workload = self.workload_of(uid)
            if workload is not None:
                found.setdefault(workload, []).append(uid)
        return found

    def _job_chain(self, owner: objects.Owner | None) -> list[str]:
        """The uids of the job objects above, the highest first."""
        chain: list[str] = []
        for _ in range(_MOST_OWNERS):
            if owner is None:
                break
            if owner.kind in self.job_kinds:
                chain.insert(0, owner.uid)
            above = self.known.get(owner.uid)
            owner = above.body.owner if above and isinstance(above.body, objects.JobBody) else None
        return chain

    def _jobs_below(self, uid: str, levels: int = _MOST_OWNERS) -> Iterator[str]:
        """Job objects that were made for this one, oldest first, each before those made for it."""
        for below in sorted(self._below.get(uid, {}).values(), key=_age) if levels else ():
            yield below.uid
            yield from self._jobs_below(below.uid, levels - 1)

    def _of_job(self, uid: str, *owners: objects.Owner | None) -> str:
        """
        The workload of an object under these owners, which lead to the same job or to none.

        A Workload or a PodGroup made for any object of the chain stands for all, and so for a job at
        the top that has none itself.
        """
        chain = [above for owner in owners for above in self._job_chain(owner)] + [uid]
        candidates = (*chain, *self._jobs_below(chain[0]))
        for made_for in (self._workload_of_owner, self._group_of_owner):
            claimed = next((made_for[candidate] for candidate in candidates if candidate in made_for), None)
            if claimed is not None:
                return self._first_slice(claimed)
        return chain[0]

    def _of_pod(self, pod: Known, body: objects.Pod) -> str | None:
        if body.owner is not None and body.owner.kind == ObjectKind.IMPORTED_JOB:
            return body.owner.uid  # which may not be known yet: rows come in any order
        if body.yunikorn is not None and body.yunikorn.placeholder:
            first = self._first_of_app.get((pod.namespace, body.yunikorn.app))
            return self.workload_of(first.uid) if first else None
        by_name = (
            (ObjectKind.WORKLOAD, body.kueue_workload),
            (ObjectKind.WORKLOAD, body.kueue_pod_group),
            (ObjectKind.VOLCANO_POD_GROUP, body.volcano_pod_group),
            (ObjectKind.KAI_POD_GROUP, body.kai_pod_group),
            (ObjectKind.PLUGIN_POD_GROUP, body.plugin_pod_group),
            (ObjectKind.POD_GROUP, body.scheduling_group),
        )
        above = (pod.uid, *self._job_chain(body.owner))
        owned = next((self._workload_of_owner[uid] for uid in above if uid in self._workload_of_owner), None)
        claimed = owned.uid if owned else None
        for kind, name in by_name:
            if claimed is None and name:
                claimed = self._named(kind, pod, name)
        if claimed is not None:
            return self.workload_of(claimed) or claimed
        return self._of_job(pod.uid, self._labelled(pod, body), body.owner)

    def _labelled(self, pod: Known, body: objects.Pod) -> objects.Owner | None:
        """The job that a pod's labels name, needed where the object between them was never seen."""
        if body.owner is None or body.owner.uid in self.known:
            return None
        named = labelled_owner(body.labels)
        if named is None or named.uid:
            return named
        uid = self._named(ObjectKind.RAY_JOB, pod, named.name)
        return structs.replace(named, uid=uid) if uid else None

    def _of_claim(self, claim: Known, body: ResourceClaim) -> str | None:
        """A claim belongs to the first pod that uses it, else to the one that it was made for."""
        users = self._users_of_claim.get((claim.namespace, claim.name), {}).values()
        mine = (pod for pod in users if self._named(ObjectKind.RESOURCE_CLAIM, pod, claim.name) == claim.uid)
        first = min(mine, key=_age, default=None)
        return self.workload_of(first.uid if first else body.pod_uid)

    def _above_group(self, group: Known, body: objects.PodGroup) -> str:
        """
        A PodGroup belongs to what its job or its pod belongs to.

        Volcano makes a new one when it restarts a job: the first one stands for all. Of other
        owners, such as a LeaderWorkerSet, each group is a workload.
        """
        owner = body.owner
        if owner is None or owner.kind not in {*self.job_kinds, "Pod"}:
            return group.uid
        return self._of_job(owner.uid, owner)

    def _first_slice(self, workload: Known) -> str:
        """
        Elastic slices, concurrent variants and Workloads made anew for a job are one workload.

        The first of the chain stands for all.
        """
        seen: set[str] = set()
        while isinstance(workload.body, objects.Workload) and workload.uid not in seen:
            seen.add(workload.uid)
            owners = (*(owner.uid for owner in workload.body.owners), workload.body.job_uid)
            firsts = [self._workload_of_owner[uid] for uid in owners if uid in self._workload_of_owner]
            workload = min([workload, *firsts], key=_age)
            pointer = workload.body.slice_of or workload.body.variant_of  # type: ignore[union-attr]
            before = (
                self._named(ObjectKind.WORKLOAD, workload, pointer.rpartition("/")[2]) if pointer else None
            )
            workload = self.known[before] if before else workload
        return workload.uid

    def _named(self, kind: ObjectKind, near: Known, name: str) -> str | None:
        """The object of that name in the namespace: the newest made before `near`, else the first."""
        uids = self._by_name.get((kind, near.namespace, name), [])
        before = [uid for uid in uids if self.known[uid].created_ms <= near.created_ms]
        return before[-1] if before else next(iter(uids), None)


def _age(known: Known) -> tuple[int, str]:
    return (known.created_ms, known.uid)


def _rank(known: Known) -> tuple[bool, int, str]:
    """Volcano's PodGroups come before those of other schedulers."""
    return (
        isinstance(known.body, objects.PodGroup) and known.kind is not ObjectKind.VOLCANO_POD_GROUP,
        *_age(known),
    )


def _claim(claims: dict[str, Known], owner_uid: str, claimant: Known) -> None:
    """Of several objects made for one owner, one after the other, the first one counts."""
    if owner_uid:
        claims[owner_uid] = min(claims.get(owner_uid, claimant), claimant, key=_rank)
