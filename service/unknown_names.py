"""Names in a question's filters that nobody bears anywhere: a figure of 0 for them would mislead."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Final

from analytics.folding import OTHERS
from api.answers import Filters
from domain.view import View
from domain.workload import ServiceClass
from store.embedded import Store

# One row per name of each label that may be filtered on, from work, nodes and queues of all times.
_NAMES: Final = """
select distinct label, name
from (
    select
        unnest(['cluster', 'team', 'queue', 'gpu_model', 'priority_class']) as label,
        unnest([cluster, team, queue, gpu_model, priority_class]) as name
    from gpu_work
    union all
    select
        unnest(['cluster', 'gpu_model']) as label,
        unnest([cluster, gpu_model]) as name
    from node_capacity
    union all
    select 'queue' as label, queue as name from live_queue
    union all
    select
        unnest(['cluster', 'queue']) as label,
        unnest([cluster, queue]) as name
    from queue_state
    union all
    select 'cluster' as label, cluster as name from source_mark
    union all
    select 'cluster' as label, cluster as name from gpu_sample_mark
) as told
where name is not null
order by label, name
"""
_WORDS: Final = {
    "gpu_model": "GPU model",
    "priority_class": "priority class",
    "service_class": "service class",
}
_FEW: Final = 8


def hints(
    store: Store, filters: Filters, *, also: Mapping[str, Collection[str]], view: View | None
) -> tuple[str, ...]:
    """
    A sentence for each name that nobody bears, with the nearest one that somebody does.

    To a viewer who may not see everything a foreign team or queue looks like one that does not exist,
    and none is suggested.

    Args:
        store: all clusters.
        filters: of the question; an empty name asks for what has none.
        also: further names by label, for example teams of the settings without any work.
        view: who asks; None is somebody who may see everything.
    """
    if not any(any(wanted) for wanted in filters.values()):
        return ()
    known: dict[str, set[str]] = defaultdict(set)
    for row in store.kept_rows(_NAMES):
        known[str(row["label"])].add(str(row["name"]))
    for label, names in also.items():
        known[label].update(names)
    known["service_class"].update(one.value for one in ServiceClass)
    if view is not None:
        known["team"] = {*view.teams, OTHERS}
        known["queue"] = {OTHERS, *(queue for _, queue in view.queues)}
        known.pop("priority_class", None)
    return tuple(
        _sentence(label, name, sorted(known[label] - {""}))
        for label, wanted in filters.items()
        if label in known
        for name in wanted
        if name and name not in known[label]
    )


def _sentence(label: str, name: str, known: list[str]) -> str:
    close = get_close_matches(name, known, n=1, cutoff=0.6)
    told = f"; did you mean {close[0]!r}?" if close else ""
    if not close and 0 < len(known) <= _FEW:
        told = f"; known are {', '.join(known)}"
    return f"no {_WORDS.get(label, label)} {name!r} is known{told}"
