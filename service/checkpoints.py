"""Checkpoints that jobs and metrics tell of, while clusters are read: whose they are, and into the store."""

from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, TypeAlias

from api.answers import Record
from collector.checkpoints import SKEW_MS, refusal, written
from collector.decoding import Payload
from domain.checkpoint import CheckpointReport, ToldBy
from domain.errors import NotYetError, UsageError
from domain.window import Clock, format_instant
from service.first_cut import FirstCut
from store.embedded import Store

# Takes an object of ours in, and returns when it is committed: cluster, object, instant of its arrival.
Tell: TypeAlias = Callable[[str, Payload, int], None]

# The first cut comes with the next tick, or with the one after the pods were listed.
_ASK_AGAIN_SECONDS: Final = 5
# One row per object that a report may mean: by uid, or by name the pods or the others. An object whose
# workload is not cut yet has no team.
_NAMED: Final = """
with named as (
    select cluster, uid, kind, namespace, name, gone_ms
    from object_state
    where
        cluster = $cluster
        and kind not in ('Event', 'Checkpoint')
        and (
            ($uid != '' and uid = $uid)
            or (
                $uid = '' and namespace = $namespace and name = $name
                and (kind = 'Pod') = $is_pod
            )
        )
),

born as (
    select uid, min(at_ms) filter (where earliest_ms is null) as created_ms
    from transition
    where cluster = $cluster and moment = 'created' and uid in (select uid from named)
    group by uid
)

select named.*, born.created_ms, member.workload_uid, workload.team
from named
left join born on named.uid = born.uid
left join member on named.cluster = member.cluster and named.uid = member.object_uid
left join workload
    on named.cluster = workload.cluster and member.workload_uid = workload.workload_uid
order by coalesce(born.created_ms, 0) desc, named.uid
"""
_KNOWN: Final = """
select 1 as one from transition
where cluster = $cluster and uid = $uid and moment = 'checkpoint' and at_ms = $at_ms
limit 1
"""


class Checkpoints:
    """
    Takes reports of checkpoints.

    Args:
        store: tells whose an object is, and what is known of it.
        clusters: those that are read now; only of their work anything can be told.
        tell: takes a report in.
        clock: when a report arrives.
        first_cut: knows whether a name that is not found stands for nothing.
    """

    def __init__(
        self, store: Store, clusters: Collection[str], tell: Tell, clock: Clock, *, first_cut: FirstCut
    ) -> None:
        self._store = store
        self._clusters = clusters
        self._tell = tell
        self._clock = clock
        self._first_cut = first_cut

    def take(
        self, report: CheckpointReport, *, by: ToldBy, teams: Collection[str] | None = None
    ) -> Record | None:
        """
        Keep what a report says; None where it names nothing, or nothing of these teams.

        A report that is told again changes nothing. One that cannot be true is counted, and the record
        says in `set_aside` why it is not kept.

        Raises:
            UsageError: the cluster is not one that is read.
            UnreachableError: it is not read just now.
            NotYetError: nothing is known by that name, and what runs now was not cut into lives yet.
        """
        cluster = self._cluster(report.cluster)
        now_ms = self._clock.now_ms()
        at_ms = now_ms if report.at_ms is None else report.at_ms
        found = self._meant(cluster, report, at_ms, teams)
        if found is None:
            if self._first_cut.is_done(cluster):
                return None
            # Whoever may not see it hears the same of work that is there.
            message = (
                f"cluster {cluster} is being read, and whose work there is will be known in seconds: "
                "tell it again"
            )
            raise NotYetError(message, retry_after_seconds=_ASK_AGAIN_SECONDS)
        uid, since_ms = found["uid"], found["created_ms"]
        known = self._store.rows(_KNOWN, {"cluster": cluster, "uid": uid, "at_ms": at_ms})
        because = refusal(at_ms, since_ms=since_ms, observed_ms=now_ms)
        if not known:
            payload = written(
                report, uid=uid, kind=found["kind"], name=found["name"], at_ms=at_ms, since_ms=since_ms, by=by
            )
            self._tell(cluster, payload, now_ms)
        return {
            "cluster": cluster,
            "object_uid": uid,
            "object_kind": found["kind"],
            "workload_uid": found["workload_uid"],
            "at": format_instant(at_ms),
            "new": not known and not because,
            "set_aside": because,
        }

    def _cluster(self, given: str) -> str:
        if given in self._clusters:
            return given
        if not given and len(self._clusters) == 1:
            return next(iter(self._clusters))
        read = ", ".join(sorted(self._clusters)) or "none"
        message = f'cluster = "{given}": expected a cluster that is read now ({read})'
        raise UsageError(message)

    def _meant(
        self, cluster: str, report: CheckpointReport, at_ms: int, teams: Collection[str] | None
    ) -> Mapping[str, Any] | None:
        """The object of that name that was there at the instant: names are given again."""
        named: list[Mapping[str, Any]] = [
            row
            for row in self._store.rows(
                _NAMED,
                {
                    "cluster": cluster,
                    "uid": report.uid,
                    "namespace": report.namespace,
                    "name": report.pod or report.workload,
                    "is_pod": bool(report.pod),
                },
            )
            if teams is None or row["team"] in teams
        ]
        # A Kueue Workload and its Job may share their name: one whose workload is known comes first.
        named.sort(key=lambda row: row["workload_uid"] is None)
        there = [row for row in named if (row["created_ms"] or 0) <= at_ms + SKEW_MS]
        return next(iter(there or named), None)
