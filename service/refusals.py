"""Kinds that figures are made of and that may not be read: without them a figure would mislead."""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable
from typing import Final

from api.answers import SourceState
from collector.kube.watch_steps import Outcome
from domain.facts import ObjectKind
from domain.policy import Policy
from service import features, sources
from store.embedded import Store

# One row per view: what it is made of.
_VIEWS: Final = "select view_name as name, sql from duckdb_views() where not internal"
_READS: Final = re.compile(r"\b(?:from|join)[(\s]+([a-z_]+)", re.IGNORECASE)


def hints(
    store: Store, queries: Iterable[str], as_of_ms: int, *, policy: Policy, clusters: Collection[str]
) -> tuple[str, ...]:
    """
    A sentence for each kind that these queries rest on and that may not be read: what is unknown, what to do.

    Args:
        store: all clusters.
        queries: those of metrics, in SQL.
        as_of_ms: the instant of the question.
        policy: how old what was read may be.
        clusters: only of these; empty is all.
    """
    if not any(str(mark["last_error"]).startswith(f"{Outcome.NO_PERMISSION}:") for mark in store.marks()):
        return ()
    refused: dict[str, list[tuple[str, str]]] = defaultdict(list)
    for mark in sources.marks(store, as_of_ms):
        is_asked = not clusters or mark["cluster"] in clusters
        if is_asked and sources.state_of(mark, as_of_ms, policy=policy) is SourceState.NOT_PERMITTED:
            refused[str(mark["kind"])].append((str(mark["cluster"]), str(mark["last_error"])))
    needed = kinds(store, queries) if refused else frozenset()
    return tuple(
        f"kind {kind} of {', '.join(cluster for cluster, _ in told)} may not be read: "
        f"{features.missing(kind)}; {features.remedy(kind, told[0][1])}"
        for kind, told in sorted(refused.items())
        if kind in needed
    )


def kinds(store: Store, queries: Iterable[str]) -> frozenset[ObjectKind]:
    """The kinds of objects from which the tables behind these queries are cut."""
    views = {str(row["name"]): str(row["sql"]) for row in store.kept_rows(_VIEWS)}
    found: set[str] = set()
    waiting = list(queries)
    while waiting:
        for name in set(_READS.findall(waiting.pop())) - found:
            found.add(name)
            waiting += [views[name]] if name in views else []
    return frozenset(kind for name in found for kind in features.MADE_OF.get(name, ()))
