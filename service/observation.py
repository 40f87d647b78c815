"""How much of a window was observed: the one coverage of metrics, reports, pages and proposals."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Final

from analytics.evaluate import Rows, listed
from collector.kube.watch_steps import Outcome
from domain.facts import ObjectKind
from domain.gpu_sample import GPU_METRICS
from domain.observed import Interval, before, covered_ms, in_all, joined
from domain.policy import Policy, patience_ms
from domain.window import Window, format_instant
from store.embedded import Store

# Kinds without which nobody knows who waited, and who held what.
_TELLING: Final = frozenset(
    {
        ObjectKind.POD,
        ObjectKind.NODE,
        ObjectKind.JOB,
        ObjectKind.WORKLOAD,
        ObjectKind.VOLCANO_POD_GROUP,
        ObjectKind.PLUGIN_POD_GROUP,
        ObjectKind.KAI_POD_GROUP,
        ObjectKind.POD_GROUP,
    }
)

# One row per node with GPUs and stretch in which it was there.
_NODES: Final = """
select cluster, node, start_ms, end_ms
from node_capacity
where
    start_ms < $as_of_ms
    and coalesce(end_ms > $start_ms, true)
    and coalesce(capacity_micro_gpus, allocatable_micro_gpus, 1) > 0
order by cluster, node, start_ms
"""


@dataclass(slots=True)
class _Cluster:
    """What was observed of a cluster before the window's end; intervals by kind, and by node."""

    kinds: dict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    unread: set[str] = field(default_factory=set)
    sampled: dict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))
    there: dict[str, list[Interval]] = field(default_factory=lambda: defaultdict(list))

    def share(self, window: Window, policy: Policy, *, samples: bool) -> Fraction:
        """The share of the window in which all that tells was observed, and of nodes what they did."""
        known = {
            kind: before(intervals, window.end_ms, patience_ms(kind, policy))
            for kind, intervals in self.kinds.items()
        } | {kind: [] for kind in self.unread}
        telling = [known[kind] for kind in known if kind in _TELLING] or list(known.values())
        whole = [(window.start_ms, window.end_ms)]
        observed = in_all(telling) if telling else whole
        nodes = [
            (self.there.get(node, whole), joined(self.sampled.get(node, ())))
            for node in self.there.keys() | self.sampled.keys()
        ]
        devices = nodes if samples and self.sampled else []
        return covered_ms(window, observed, devices) / (window.end_ms - window.start_ms)


def share_of_window(
    store: Store, window: Window, *, policy: Policy, samples: bool, clusters: Collection[str] = ()
) -> Fraction | None:
    """
    The share of a window that was observed, as was known at its end; None where no source is known.

    In a cluster an instant counts if all kinds were observed that tell who waited and who held what;
    with samples, by the share of its nodes with GPUs of which a source of GPU metrics told. Several
    clusters count alike. A question of later gives the same: of what came in later nothing is used.

    Args:
        store: holds what was observed.
        window: its end is the instant of the question.
        policy: says after which silence a source counts as stale.
        samples: whether the figure rests on samples of GPUs.
        clusters: which ones; all, where none is named.
    """
    found: dict[str, _Cluster] = defaultdict(_Cluster)
    stretches = store.stretches(start_ms=window.start_ms, as_of_ms=window.end_ms)
    # A watch that begins at the end tells nothing of the window; one that goes on there, of its past.
    _take_stretches(found, (row for row in stretches if _whole(row["start_ms"]) < window.end_ms))
    for mark in store.marks():
        absent = str(mark["last_error"]).startswith(f"{Outcome.NOT_INSTALLED}:")
        if not mark["seen_ms"] and not absent:
            found[str(mark["cluster"])].unread.add(str(mark["kind"]))
    if samples:
        place = {"start_ms": window.start_ms, "as_of_ms": window.end_ms}
        for row in store.kept_rows(_NODES, place):
            a, b = _whole(row["start_ms"]), window.end_ms if row["end_ms"] is None else _whole(row["end_ms"])
            if str(row["cluster"]) in found:
                found[str(row["cluster"])].there[str(row["node"])].append((a, b))
    asked = [found[name] for name in sorted(found) if not clusters or name in clusters]
    if not asked or window.start_ms == window.end_ms:
        return None
    return sum((one.share(window, policy, samples=samples) for one in asked), Fraction(0)) / len(asked)


def observed_rows(
    rows: Rows, first_ms: Mapping[str, int], as_of_ms: int, clusters: Collection[str] = ()
) -> tuple[Rows, str]:
    """
    Rows of clusters that had been read before an instant, and why there is nothing to tell, if so.

    Of the time before its first reading nothing is known of a cluster: that is no zero.

    Args:
        rows: with the column `cluster`.
        first_ms: when each cluster was first observed.
        as_of_ms: the instant of the question.
        clusters: which ones are asked for; all, where none is named.
    """
    unread = {name: at_ms for name, at_ms in first_ms.items() if at_ms >= as_of_ms}
    if not unread:
        return rows, ""
    kept = [row for row in listed(rows) if row["cluster"] not in unread]
    asked = {name for name in first_ms if not clusters or name in clusters}
    if kept or not asked or not asked <= unread.keys():
        return kept, ""
    began = format_instant(min(unread[name] for name in asked))
    whose = f"cluster {next(iter(asked))}" if len(asked) == 1 else "any cluster"
    return kept, f"nothing had been read of {whose} by then: the first reading was at {began}"


def _take_stretches(found: Mapping[str, _Cluster], rows: Iterable[Mapping[str, Any]]) -> None:
    for row in rows:
        of, interval = found[row["cluster"]], (row["start_ms"], row["end_ms"])
        if row["kind"] == GPU_METRICS:
            of.sampled[row["node"]].append(interval)
        else:
            of.kinds[row["kind"]].append(interval)


def _whole(value: object) -> int:
    return int(str(value))
