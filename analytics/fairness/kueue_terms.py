"""
What Kueue's weighted share rests on: the terms of queues and cohorts, and what of their quota is used.

As Kueue does, and unlike the rest of this package, it counts every resource, GPUs or not.
"""

import json
from collections.abc import Collection, Iterator
from typing import TypeAlias

from analytics.fairness.books.site import Site
from analytics.history import History
from analytics.portrait import gives_quota_back
from domain import objects
from domain.facts import ObjectKind
from domain.quantity import Quota, QuotaKind

_KINDS = frozenset({ObjectKind.CLUSTER_QUEUE, ObjectKind.COHORT})
# Kind, name, parent, weight in thousandths, quotas as JSON.
_Terms: TypeAlias = tuple[str, str, str, int, str]
# ClusterQueue, flavor, amounts by resource as JSON.
_Use: TypeAlias = tuple[str, str, str]


def term_rows(cluster: str, around: Collection[History]) -> Iterator[dict[str, object]]:
    """Stretches of unchanged terms of each ClusterQueue and Cohort, in the columns of `kueue_terms`."""
    site = Site.of(cluster, [history for history in around if history.kind in _KINDS])
    open_rows: dict[_Terms, int] = {}
    for version in site.versions:
        now = {
            *(
                ("ClusterQueue", name, queue.cohort, queue.weight_milli, _written(queue.quotas))
                for name, queue in version.cluster_queues.items()
            ),
            *(
                ("Cohort", name, cohort.parent, cohort.weight_milli, _written(cohort.quotas))
                for name, cohort in version.cohorts.items()
            ),
        }
        for key in open_rows.keys() - now:
            yield _row(cluster, key, open_rows.pop(key), version.from_ms)
        for key in now - open_rows.keys():
            open_rows[key] = version.from_ms
    for key, start_ms in open_rows.items():
        yield _row(cluster, key, start_ms, None)


def quota_uses(history: History) -> Iterator[dict[str, object]]:
    """
    Stretches of reserved quota of a Kueue Workload, in the columns of `quota_use` without the workload's.

    Where it has reserved none, what it asks stands under no queue and flavor, if that is known.

    As for `reservations`, a finished Workload keeps its admission in its status, and its quota is free.
    """
    over = [fact.at_ms for fact in history.transitions if gives_quota_back(fact)]
    last_ms = min(over, default=None)
    open_uses: dict[_Use, int] = {}
    for described in history.descriptions:
        if last_ms is not None and described.from_ms >= last_ms:
            break
        now = _used(described.body)
        for use in open_uses.keys() - now:
            yield _use_row(use, open_uses.pop(use), described.from_ms)
        for use in now - open_uses.keys():
            open_uses[use] = described.from_ms
    for use, start_ms in open_uses.items():
        yield _use_row(use, start_ms, last_ms)


def _used(body: object) -> set[_Use]:
    if not isinstance(body, objects.Workload):
        return set()
    others = body.other_reserved if isinstance(body.other_reserved, dict) else {}
    if not body.reserved and not others:
        return _asked(body)
    found = set()
    for flavor in {*body.reserved, *others}:
        amounts = {name: count * 1000 for name, count in body.reserved.get(flavor, {}).items()}
        amounts |= others.get(flavor, {})
        found.add((body.cluster_queue, flavor, json.dumps(amounts, sort_keys=True)))
    return found


def _asked(body: objects.Workload) -> set[_Use]:
    """All that its pods ask together; nothing where what they ask beside GPUs was not read."""
    total: dict[str, int] = {}
    for pods in body.pod_sets:
        if not isinstance(pods.other_requests, dict):
            return set()
        each = {name: count * 1000 for name, count in pods.gpu_requests.items()} | pods.other_requests
        for name, amount in each.items():
            total[name] = total.get(name, 0) + amount * pods.count
    return {("", "", json.dumps(total, sort_keys=True))} if total else set()


def _use_row(use: _Use, start_ms: int, end_ms: int | None) -> dict[str, object]:
    return {
        **dict(zip(("queue", "flavor", "resources"), use, strict=True)),
        "start_ms": start_ms,
        "end_ms": end_ms,
    }


def _row(cluster: str, key: _Terms, start_ms: int, end_ms: int | None) -> dict[str, object]:
    names = ("kind", "name", "parent", "weight_milli", "quotas")
    return {"cluster": cluster, **dict(zip(names, key, strict=True)), "start_ms": start_ms, "end_ms": end_ms}


def _written(quotas: tuple[objects.FlavorQuota, ...]) -> str:
    return json.dumps(
        [
            [
                row.flavor,
                row.resource,
                row.nominal.milli,
                _limit(row.lending_limit),
                _limit(row.borrowing_limit),
            ]
            for row in quotas
        ]
    )


def _limit(quota: Quota) -> int | None:
    return quota.milli if quota.kind is QuotaKind.NUMBER else None
