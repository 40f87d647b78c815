"""
Which workload an object belongs to: one per user intent, whatever the scheduler.

By precedence: Kueue Workload; Volcano PodGroup; scheduler-plugins PodGroup; else the job object,
the highest controller in the owner chain whose kind is a kind of job; else the pod itself.
Identity is a uid, never a name; where the cluster itself points by name (a pod's annotation, a
PodGroup label), the object of that name that was there when the pointer was made is meant.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from domain import objects
from domain.facts import ObjectKind

# Kinds that are one intent of a user. Deployments, StatefulSets, CronJobs and the like are not.
JOB_KINDS = frozenset(
    {"Job", "JobSet", "RayJob", "RayCluster", "TrainJob", "PyTorchJob", "TFJob", "MPIJob", "XGBoostJob"}
    | {"PaddleJob", "JAXJob", "AppWrapper"}
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
    a PodGroup appears after its job.
    """

    known: dict[str, Known] = field(default_factory=dict)
    _workload_of_owner: dict[str, Known] = field(default_factory=dict)
    _group_of_owner: dict[str, Known] = field(default_factory=dict)
    _by_name: dict[tuple[ObjectKind, str, str], list[str]] = field(default_factory=dict)

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
        if isinstance(body, (objects.Job, objects.VolcanoJob)):
            return self._of_job(known.uid, body.owner)
        return None

    def members(self, uids: Iterable[str]) -> dict[str, list[str]]:
        """The objects of each workload among these."""
        found: dict[str, list[str]] = {}
        for uid in uids:
            workload = self.workload_of(uid)
            if workload is not None:
                found.setdefault(workload, []).append(uid)
        return found

    def root_job(self, uid: str, owner: objects.Owner | None) -> str:
        """The uid of the highest job object above; the object itself when nothing above is a job."""
        root = uid
        for _ in range(_MOST_OWNERS):
            if owner is None:
                break
            if owner.kind in JOB_KINDS:
                root = owner.uid
            above = self.known.get(owner.uid)
            owner = (
                above.body.owner
                if above and isinstance(above.body, (objects.Job, objects.VolcanoJob))
                else None
            )
        return root

    def _of_job(self, uid: str, owner: objects.Owner | None) -> str:
        root = self.root_job(uid, owner)
        for candidate in (root, uid):
            claimed = self._workload_of_owner.get(candidate)
            if claimed is not None:
                return self._first_slice(claimed)
            group = self._group_of_owner.get(candidate)
            if group is not None:
                return group.uid
        return root

    def _of_pod(self, pod: Known, body: objects.Pod) -> str:
        by_name = (
            (ObjectKind.WORKLOAD, body.kueue_workload),
            (ObjectKind.WORKLOAD, body.kueue_pod_group),
            (ObjectKind.VOLCANO_POD_GROUP, body.volcano_pod_group),
            (ObjectKind.PLUGIN_POD_GROUP, body.plugin_pod_group),
        )
        owned = self._workload_of_owner.get(pod.uid)
        claimed = owned.uid if owned else None
        for kind, name in by_name:
            if claimed is None and name:
                claimed = self._named(kind, pod, name)
        if claimed is not None:
            return self.workload_of(claimed) or claimed
        return self._of_job(pod.uid, body.owner)

    def _above_group(self, group: Known, body: objects.PodGroup) -> str:
        """
        A PodGroup belongs to what its job belongs to.

        Volcano makes a new one when it restarts a job: the first one stands for all.
        """
        return group.uid if body.owner is None else self._of_job(body.owner.uid, body.owner)

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


def _claim(claims: dict[str, Known], owner_uid: str, claimant: Known) -> None:
    """Of several objects made for one owner, one after the other, the first one counts."""
    if owner_uid:
        claims[owner_uid] = min(claims.get(owner_uid, claimant), claimant, key=_age)
