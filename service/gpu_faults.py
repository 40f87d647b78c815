"""What happened to GPUs, from readings of their health to facts about the device and the pods on it."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import Any, Final

from domain.facts import Batch, Moment, ObjectKind, ObjectState, Transition
from domain.gpu_fault import FaultKind, GpuFault, GpuHealth, HealthReading
from domain.gpu_sample import Owner
from domain.window import CLOCK_SKEW_MS, MS_PER_HOUR
from store.embedded import Store

# One row per pod of that name, the one that was made last first.
_PODS: Final = """
select object_state.uid, created.at_ms
from object_state
inner join transition as created
    on object_state.cluster = created.cluster
    and object_state.uid = created.uid
    and created.moment = 'created'
where
    object_state.cluster = $cluster
    and object_state.kind = 'Pod'
    and object_state.namespace = $namespace
    and object_state.name = $name
order by created.at_ms desc
"""

_REMEMBERED_MS: Final = 24 * MS_PER_HOUR
_BY_WHAT: Final = itemgetter(0, 1, 2)
_BY_WHEN: Final = itemgetter(3)
_BY_WHAT_AND_WHEN: Final = itemgetter(0, 1, 2, 3)


class GpuFaults:
    """
    Keeps what happened to the GPUs of one cluster; remembers what each of them showed last.

    What nobody told of for a day is asked of the store again, should it come back: nodes come and go.

    It is one for all sources of a cluster: what two of them tell happened once. Any thread may use it.

    Args:
        store: keeps it.
        cluster: whose GPUs.
        live: readings come as they are made, so that what was seen after them was seen by a clock that was
            ahead; files may come in any order.
    """

    def __init__(self, store: Store, cluster: str, *, live: bool = False) -> None:
        self._store = store
        self._live = live
        self._lock = Lock()
        self._cluster = cluster
        self._health: dict[str, GpuHealth] = {}
        self._forgot_ms = 0

    def __len__(self) -> int:
        """Of how many things it is remembered what they showed."""
        return len(self._health)

    def take(self, readings: Iterable[HealthReading], observed_ms: int) -> list[GpuFault]:
        """Take readings in, of any number of instants; gives what happened that nobody knew."""
        with self._lock:
            try:
                return self._take(readings, observed_ms)
            except BaseException:
                # What was not committed is not known: an exporter shows its number on, and it counts then.
                self._health.clear()
                raise

    def forget(self) -> None:
        """Ask the store again what it knows of each GPU: it holds other facts now."""
        with self._lock:
            self._health.clear()

    def _take(self, readings: Iterable[HealthReading], observed_ms: int) -> list[GpuFault]:
        ordered = sorted(readings, key=_BY_WHAT_AND_WHEN)
        batch = Batch(cluster=self._cluster)
        found: list[GpuFault] = []
        by_what = [
            (_uid(kind, node, uuid), list(of_one))
            for (node, uuid, kind), of_one in groupby(ordered, key=_BY_WHAT)
        ]
        self._meet({uid for uid, _ in by_what} - self._health.keys())
        for uid, of_one in by_what:
            health = self._health[uid]
            if self._live and health.at_ms > observed_ms + CLOCK_SKEW_MS:
                health.at_ms = 0  # what was shown stays, and nobody knows when that was
            before, first = health.shown, None
            for _, same in groupby(of_one, key=_BY_WHEN):
                told = list(same)
                first = first or told[0]
                found += health.take(told)
            if first is not None and (health.shown != before or not before):
                batch.objects[uid] = _state(uid, first, health)
        for fault in found:
            batch.transitions += self._transitions(fault, observed_ms)
        self._store.append(batch)
        self._forget(max((reading.at_ms for reading in ordered), default=0))
        return found

    def _meet(self, uids: set[str]) -> None:
        """Remember what these showed last, as far as anybody knows."""
        if not uids:
            return
        self._health |= {uid: GpuHealth() for uid in uids}
        for state in self._store.states_of(self._cluster, uids):
            shown = frozenset(state.resource_version.split(",")) - {""}
            self._health[state.uid] = GpuHealth(shown=shown, at_ms=state.seen_ms)

    def _forget(self, newest_ms: int) -> None:
        """Forget once a day what nobody told of for as long; the store has it."""
        if newest_ms - self._forgot_ms >= _REMEMBERED_MS:
            self._forgot_ms = newest_ms
            fresh = [
                (uid, one) for uid, one in self._health.items() if newest_ms - one.at_ms < _REMEMBERED_MS
            ]
            self._health = dict(fresh)

    def _transitions(self, fault: GpuFault, observed_ms: int) -> list[Transition]:
        uid = _uid(fault.kind, fault.node, fault.uuid)
        told = [_transition(uid, ObjectKind.GPU, fault, observed_ms)]
        # What happened before anybody looked cannot be laid on the pod that is there now.
        if fault.earliest_ms:
            pods = {self._pod_uid(pod, fault.at_ms) for pod in fault.pods} - {""}
            told += [_transition(pod, ObjectKind.POD, fault, observed_ms) for pod in sorted(pods)]
        return told

    def _pod_uid(self, pod: Owner, at_ms: int) -> str:
        """The pod that had the name then; empty where nobody knows one."""
        if pod.pod_uid:
            return pod.pod_uid
        place = {"cluster": self._cluster, "namespace": pod.namespace, "name": pod.pod}
        rows: Sequence[Mapping[str, Any]] = self._store.rows(_PODS, place)
        return next((str(row["uid"]) for row in rows if row["at_ms"] <= at_ms), "")


def _uid(kind: FaultKind, node: str, uuid: str) -> str:
    """One name for each thing that shows something: an XID says nothing of a remapped row."""
    return f"gpu/{node}/{uuid}/{kind}"


def _state(uid: str, of: HealthReading, health: GpuHealth) -> ObjectState:
    return ObjectState(
        uid=uid,
        kind=ObjectKind.GPU,
        namespace=of.node,
        name=of.uuid,
        resource_version=",".join(sorted(health.shown)),
        seen_ms=health.at_ms,
    )


def _transition(uid: str, kind: ObjectKind, fault: GpuFault, observed_ms: int) -> Transition:
    return Transition(
        uid=uid,
        kind=kind,
        moment=Moment.GPU_FAULT,
        at_ms=fault.at_ms,
        earliest_ms=fault.earliest_ms,
        observed_ms=max(observed_ms, fault.at_ms),
        subject=fault.uuid,
        state=fault.kind,
        reason=str(fault.code) if fault.code else fault.words,
        detail=fault.words,
        amount=fault.code,
    )
