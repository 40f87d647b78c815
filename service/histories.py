"""Facts of the store, grouped by object, and what a workload's objects say together."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from analytics.history import Catalog, Described, History, WorkloadFacts
from analytics.portrait import Surroundings
from domain import objects
from domain.facts import Description, EventSighting, ObjectKind, Transition

QUEUEING: Final = frozenset({ObjectKind.WORKLOAD, *objects.POD_GROUPS})
# The claims of a workload come along with its jobs: they tell what its pods hold.
JOBS: Final = frozenset(
    {ObjectKind.JOB, ObjectKind.VOLCANO_JOB, *objects.JOB_OBJECTS, ObjectKind.RESOURCE_CLAIM}
)
_DECODERS: Final = {kind: msgspec.json.Decoder(body) for kind, body in objects.BODY_TYPES.items()}


@dataclass(slots=True)
class Elsewhere:
    """The pods of a workload's copies in other clusters, with their nodes and what was said of them."""

    catalog: Catalog
    pods: list[History] = field(default_factory=list)
    events: list[EventSighting] = field(default_factory=list)


def histories_of(
    transitions: Iterable[Transition], descriptions: Iterable[Description]
) -> dict[str, History]:
    """Group facts by object, each in the order given."""
    changes: dict[str, list[Transition]] = {}
    for transition in transitions:
        changes.setdefault(transition.uid, []).append(transition)
    sayings: dict[str, list[Description]] = {}
    for description in descriptions:
        sayings.setdefault(description.uid, []).append(description)
    found: dict[str, History] = {}
    for uid in changes.keys() | sayings.keys():
        said = sayings.get(uid, [])
        kind = said[-1].kind if said else changes[uid][0].kind
        found[uid] = History(
            uid=uid,
            kind=kind,
            namespace=said[-1].namespace if said else "",
            name=said[-1].name if said else "",
            descriptions=tuple(
                Described(
                    from_ms=description.from_ms,
                    observed_ms=description.observed_ms,
                    earliest_ms=description.earliest_ms,
                    body=_DECODERS[description.kind].decode(description.body),
                )
                for description in said
            ),
            transitions=tuple(changes.get(uid, ())),
        )
    return found


def workload_facts(
    uid: str,
    histories: list[History],
    catalog: Catalog,
    events: dict[str, list[EventSighting]],
    *,
    pods_observed: bool,
) -> WorkloadFacts | None:
    """The facts about one workload by the histories of its objects; None where there is none."""
    if not histories:
        return None
    histories.sort(key=lambda history: (history.created_ms, history.uid))
    return WorkloadFacts(
        uid=uid,
        queueing=tuple(h for h in histories if h.kind in QUEUEING),
        jobs=tuple(h for h in histories if h.kind in JOBS),
        pods=tuple(h for h in histories if h.kind is ObjectKind.POD),
        catalog=catalog,
        events=tuple(event for h in histories for event in events.get(h.uid, ())),
        pods_observed=pods_observed,
    )


def with_pods_of(elsewhere: Elsewhere | None, facts: WorkloadFacts) -> WorkloadFacts:
    """The facts, with the pods of the workload's copies where they are known."""
    if elsewhere is None:
        return facts
    return replace(
        facts,
        pods=tuple(sorted(elsewhere.pods, key=lambda pod: (pod.created_ms, pod.uid))),
        catalog=elsewhere.catalog,
        events=(*facts.events, *elsewhere.events),
        pods_observed=True,
        pods_elsewhere=True,
    )


def surroundings_of(histories: Iterable[History]) -> Surroundings:
    """Namespaces and local queues, by which a workload is described."""
    around = Surroundings()
    for history in histories:
        body = history.latest
        if history.kind is ObjectKind.NAMESPACE:
            around.namespaces.setdefault(history.name, []).append(history)
        elif isinstance(body, objects.LocalQueue):
            around.local_queues[history.namespace, history.name] = body.cluster_queue
    for namespaces in around.namespaces.values():
        namespaces.sort(key=lambda history: history.created_ms)
    return around
