"""How fresh each source is, and what of it was set aside: the one rule for pages, alerts and coverage."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any, Final, TypeAlias

from api.answers import Record, SourceState
from collector.kube.watch_steps import Outcome
from domain.facts import ObjectKind
from domain.gpu_sample import GPU_METRICS
from domain.policy import Policy
from domain.window import MS_PER_SECOND, format_instant
from service import features
from store.embedded import Store

# A row of `Store.marks`: where the reading of one kind of one cluster stands; `seen_ms` 0 is never.
# `source` names one of several sources of GPU metrics, and is empty or left out for a kind.
Mark: TypeAlias = Mapping[str, Any]

# One row per source of GPU metrics that had told by $as_of_ms: until when.
_SEEN_BY: Final = """
select cluster, source, max(least(end_ms, $as_of_ms)) as seen_ms
from observed_stretch
where kind = $kind and start_ms < $as_of_ms
group by cluster, source
order by cluster, source
"""
# A broken stream can give a reason per object: the commonest tell what to do.
CAUSES_SHOWN: Final = 10
OTHER_CAUSES: Final = "other causes"
# In these states something cannot be told that the cluster would tell.
_LACKING: Final = (SourceState.NEVER_READ, SourceState.NOT_PERMITTED, SourceState.STALE)


def marks(store: Store, as_of_ms: int) -> list[Mark]:
    """Where each reading stood at an instant; see `marks_at`."""
    return marks_at(store, [as_of_ms])[0]


def marks_at(store: Store, instants_ms: Sequence[int]) -> list[list[Mark]]:
    """
    Where each reading stood at each of these instants: `seen_ms` is never later, 0 before its first sight.

    A mark tells only how far reading came by now; of an earlier instant the sights up to it tell.
    """
    today: list[Mark] = [dict[str, Any](mark) for mark in store.marks()]
    newest_ms = max((mark["seen_ms"] for mark in today), default=0)
    earlier = [at_ms for at_ms in instants_ms if at_ms < newest_ms]
    seen: dict[tuple[Any, Any, Any], Any] = {}
    if earlier:
        for row in store.last_sights(earlier):
            seen[row["at_ms"], row["cluster"], row["kind"]] = row["seen_ms"]
    return [
        [{**mark, "seen_ms": seen.get((at_ms, mark["cluster"], mark["kind"]), 0)} for mark in today]
        if at_ms < newest_ms
        else today
        for at_ms in instants_ms
    ]


def sample_marks(store: Store, as_of_ms: int, *, policy: Policy) -> list[Mark]:
    """
    How far each source of GPU metrics goes at an instant, as marks of one kind.

    What counts is its newest sample: a server that answers while the exporters behind it are silent
    tells nothing. One that is silent for very long while others of its cluster are not is left out.
    """
    found: list[Mark] = []
    told = store.sample_marks()
    # A sample may bear an instant that has not come: then only what was seen before counts.
    ahead = any(isinstance(row["last_sample_ms"], int) and row["last_sample_ms"] > as_of_ms for row in told)
    seen = _seen_by(store, as_of_ms) if ahead else {}
    for row in told:
        mark: dict[str, Any] = {name: row[name] for name in ("cluster", "source", "last_error")}
        first_ms, last_ms = row["first_sample_ms"], row["last_sample_ms"]
        seen_ms = 0
        if isinstance(first_ms, int) and isinstance(last_ms, int) and first_ms < as_of_ms:
            whose = (str(row["cluster"]), str(row["source"]))
            seen_ms = last_ms if last_ms <= as_of_ms else seen.get(whose, as_of_ms)
        found.append({"kind": GPU_METRICS, "seen_ms": seen_ms, "epoch": 0, "restarts": 0, **mark})
    gone_after_ms = policy.gpu_source_gone_after.total_seconds() * MS_PER_SECOND
    silent = [bool(mark["seen_ms"]) and as_of_ms - mark["seen_ms"] > gone_after_ms for mark in found]
    telling = {
        mark["cluster"]
        for mark, is_silent in zip(found, silent, strict=True)
        if mark["seen_ms"] and not is_silent
    }
    return [
        mark
        for mark, is_silent in zip(found, silent, strict=True)
        if not (is_silent and mark["cluster"] in telling)
    ]


def _seen_by(store: Store, as_of_ms: int) -> dict[tuple[str, str], int]:
    """Until when each source of GPU metrics had told of GPUs by an instant."""
    rows: Sequence[Mapping[str, Any]] = store.rows(_SEEN_BY, {"kind": GPU_METRICS, "as_of_ms": as_of_ms})
    return {(row["cluster"], row["source"]): row["seen_ms"] for row in rows}


def state_of(mark: Mark, as_of_ms: int, *, policy: Policy) -> SourceState:
    """
    Where a source stands at an instant.

    Only what was read once can go stale. A kind that the cluster does not have misses nothing.
    """
    if str(mark["last_error"]).startswith(f"{Outcome.NOT_INSTALLED}:"):
        return SourceState.NOT_INSTALLED
    refused = str(mark["last_error"]).startswith(f"{Outcome.NO_PERMISSION}:")
    if not mark["seen_ms"]:
        return SourceState.NOT_PERMITTED if refused else SourceState.NEVER_READ
    lag = timedelta(milliseconds=as_of_ms - mark["seen_ms"])
    if lag <= policy.stale_after(str(mark["kind"])):
        return SourceState.READ
    return SourceState.NOT_PERMITTED if refused else SourceState.STALE


def coverage(
    marks: Iterable[Mark], as_of_ms: int, *, policy: Policy, clusters: Collection[str] = ()
) -> float | None:
    """The fraction of sources read up to `as_of_ms`, of these clusters or all; None without a source."""
    states = [
        state_of(mark, as_of_ms, policy=policy)
        for mark in marks
        if mark["kind"] != ObjectKind.CHECKPOINT and (not clusters or mark["cluster"] in clusters)
    ]
    there = [state for state in states if state is not SourceState.NOT_INSTALLED]
    return sum(state is SourceState.READ for state in there) / len(there) if there else None


def last_good(
    marks: Collection[Mark], as_of_ms: int, *, policy: Policy, clusters: Collection[str], since_ms: int
) -> dict[str, int]:
    """
    When the kind of each of these clusters that lags most was last good, for the alert on stale data.

    A kind never read has no say, and one with a longer threshold than the alert's only when it is
    past its own. Of a cluster that was never reached nothing is known since `since_ms`, when we began to try.
    """
    reached = {str(mark["cluster"]) for mark in marks if mark["seen_ms"]}
    seen = {cluster: since_ms for cluster in clusters if cluster not in reached}
    for mark in marks:
        cluster, seen_ms = str(mark["cluster"]), int(mark["seen_ms"])
        state = state_of(mark, as_of_ms, policy=policy)
        patient = policy.stale_after(str(mark["kind"])) > policy.source_stale_after
        has_say = _is_stale(state, seen_ms) or (state is SourceState.READ and not patient)
        if cluster in clusters and has_say:
            seen[cluster] = min(seen.get(cluster, seen_ms), seen_ms)
    return seen


def rows(
    marks: Iterable[Mark], set_aside: Iterable[Mapping[str, Any]], as_of_ms: int, *, policy: Policy
) -> list[Record]:
    """
    One record per source; then one per source of what was set aside only.

    Args:
        marks: those of `marks` at `as_of_ms`.
        set_aside: rows of `Store.set_aside_counts` or alike; cluster, source, because, count.
    """
    aside: dict[tuple[str, str], dict[str, int]] = defaultdict(dict)
    for row in set_aside:
        aside[str(row["cluster"]), str(row["source"])][str(row["because"])] = int(row["count"])
    found = [
        _source(mark, as_of_ms, policy)
        | _aside(aside.pop((mark["cluster"], mark.get("source") or mark["kind"]), {}))
        for mark in marks
    ]
    # What was set aside before its kind was known, for example a file that cannot be read.
    for (cluster, source), causes in sorted(aside.items()):
        head: Record = {"cluster": cluster, "kind": source, "source": ""}
        head |= {"state": str(SourceState.SET_ASIDE_ONLY)}
        head |= {"seen_at": None, "lag_seconds": None, "stale": False}
        head |= {"epoch": 0, "restarts": 0, "last_error": "", "missing": "", "remedy": ""}
        found.append(head | _aside(causes))
    return found


def _source(mark: Mark, as_of_ms: int, policy: Policy) -> Record:
    state = state_of(mark, as_of_ms, policy=policy)
    never = not mark["seen_ms"]
    return {
        "cluster": mark["cluster"],
        "kind": mark["kind"],
        "source": mark.get("source", ""),
        "state": str(state),
        "seen_at": None if never else format_instant(mark["seen_ms"]),
        # What comes when it comes lags behind nothing.
        "lag_seconds": None
        if never or mark["kind"] == ObjectKind.CHECKPOINT
        else (as_of_ms - mark["seen_ms"]) / MS_PER_SECOND,
        "stale": _is_stale(state, mark["seen_ms"]),
        **{name: mark[name] for name in ("epoch", "restarts", "last_error")},
        "missing": features.missing(mark["kind"]) if state in _LACKING else "",
        "remedy": features.remedy(mark["kind"], str(mark["last_error"])),
    }


def _is_stale(state: SourceState, seen_ms: int) -> bool:
    """Whether it was read once and is not any more, whyever."""
    return state is SourceState.STALE or (state is SourceState.NOT_PERMITTED and bool(seen_ms))


def _aside(causes: Mapping[str, int]) -> Record:
    """How much was set aside, and the commonest causes; the rest of them in one."""
    ordered = sorted(causes.items(), key=lambda cause: (-cause[1], cause[0]))
    shown = [{"because": because, "count": count} for because, count in ordered[:CAUSES_SHOWN]]
    if rest := sum(count for _, count in ordered[CAUSES_SHOWN:]):
        shown.append({"because": OTHER_CAUSES, "count": rest})
    return {"set_aside": sum(causes.values()), "set_aside_causes": shown}
