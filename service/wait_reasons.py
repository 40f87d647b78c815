"""The stage `reasons`: why everybody who does not run waits, looked at again and again, and kept."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from analytics.why.situation import explain
from analytics.why.timeline import FOREVER, Found, Stretch, looked
from domain.window import MS_PER_HOUR
from service import why_facts
from service.why_orders import Orders
from service.why_search import Search
from store.derived import Replacement
from store.embedded import Store

# A look at so many is taken once a minute; at more, in proportion more seldom.
_EVERY_MS: Final = 60_000
_LOOKED_AT_A_MINUTE: Final = 2_000
# After that time without a look nobody knows.
_STANDS_MS: Final = 15 * _EVERY_MS
# Of history that comes in at once the last week is looked at, every four hours.
PAST_LOOKS: Final = 42
_PAST_MS: Final = 7 * 24 * MS_PER_HOUR

# One row per workload that asks GPUs and does not run just before $as_of_ms.
_WAITING: Final = """
select workload_uid as uid
from workload_span
where
    cluster = $cluster
    and state in ('held', 'queued', 'checking', 'placing', 'starting', 'backoff')
    and open_until_ms >= $as_of_ms
    and start_ms < $as_of_ms
    and coalesce(end_ms >= $as_of_ms, true)
order by uid
"""
# One row per workload whose last look still stands.
_STANDING: Final = """
select workload_uid as uid, reason, source, blocker, start_ms, end_ms
from wait_reason
where cluster = $cluster and end_ms = 9223372036854775807
order by uid
"""
# One row where there was a look: when the last one was.
_LAST: Final = "select at_ms from reason_look where cluster = $cluster"
# One row per stretch of time in which somebody waited between two instants.
_WAITS: Final = """
select greatest(start_ms, $from_ms) as start_ms, least(coalesce(end_ms, $to_ms), $to_ms) as end_ms
from workload_span
where
    cluster = $cluster
    and waits
    and open_until_ms >= $from_ms
    and start_ms < $to_ms
    and coalesce(end_ms > $from_ms, true)
order by start_ms
"""


@dataclass(slots=True)
class Reasons:
    """
    Keeps the table `wait_reason` up to date: one look at most at each refresh, as of then.

    Args:
        store: has the lives, and gets the reasons.
        past_looks: at so many earlier instants it is looked too where history came in at once, evenly over
            its last week as far as somebody waited, and nobody has looked yet. Such a look stands for as long
            as they lie apart.
        orders: is told the order of queues that each look found.
    """

    store: Store
    past_looks: int = 0
    orders: Orders = field(default_factory=Orders)
    # How many waited at the last look, by cluster.
    waiting: dict[str, int] = field(default_factory=dict, init=False)

    def refresh(self, cluster: str, as_of_ms: int) -> int:
        """Look as of an instant, where the last look is long enough ago; gives how many stretches changed."""
        last_ms = self._last_ms(cluster)
        every_ms = _EVERY_MS * max(1, -(-self.waiting.get(cluster, 0) // _LOOKED_AT_A_MINUTE))
        if last_ms is not None and as_of_ms < last_ms + every_ms:
            return 0
        changed = 0
        before_ms = last_ms
        for at_ms, stands_ms in self._instants(cluster, last_ms, as_of_ms):
            changed += self._look(cluster, at_ms, before_ms, stands_ms=stands_ms)
            before_ms = at_ms
        return changed

    def _instants(self, cluster: str, last_ms: int | None, as_of_ms: int) -> Iterator[tuple[int, int]]:
        """When to look, and for how long each look stands."""
        if self.past_looks and (last_ms is None or last_ms + _STANDS_MS < as_of_ms):
            from_ms = max(last_ms or 0, as_of_ms - _PAST_MS)
            asked = {"cluster": cluster, "from_ms": from_ms, "to_ms": as_of_ms}
            waits = [
                (int(str(row["start_ms"])), int(str(row["end_ms"]))) for row in self.store.rows(_WAITS, asked)
            ]
            first_ms = min((start_ms for start_ms, _ in waits), default=as_of_ms)
            step_ms = max((as_of_ms - first_ms) // (self.past_looks + 1), _EVERY_MS)
            for at_ms in range(first_ms + step_ms, as_of_ms - step_ms // 2, step_ms):
                if any(start_ms < at_ms <= end_ms for start_ms, end_ms in waits):
                    yield at_ms, step_ms
            yield as_of_ms, step_ms
            return
        yield as_of_ms, _STANDS_MS

    def _look(self, cluster: str, at_ms: int, before_ms: int | None, *, stands_ms: int) -> int:
        asked: dict[str, object] = {"cluster": cluster, "as_of_ms": at_ms}
        uids = [str(row["uid"]) for row in self.store.rows(_WAITING, asked)]
        self.waiting[cluster] = len(uids)
        standing = [_stretch(row) for row in self.store.rows(_STANDING, {"cluster": cluster})]
        changed = looked(
            standing,
            self._found(cluster, uids, at_ms) if uids else (),
            at_ms=at_ms,
            before_ms=at_ms - stands_ms if before_ms is None else before_ms,
            stands_ms=stands_ms,
        )
        replaced = sorted({one.uid for one in changed})
        rows = [
            {
                "cluster": cluster,
                "workload_uid": one.uid,
                "reason": one.reason,
                "source": one.source,
                "blocker": one.blocker,
                "start_ms": one.start_ms,
                "end_ms": one.end_ms,
            }
            for one in changed
            if one.start_ms < one.end_ms
        ]
        standing_of = Replacement(
            table="wait_reason", rows=rows, keys=("workload_uid", replaced), since=("end_ms", FOREVER)
        )
        look = Replacement(table="reason_look", rows=[{"cluster": cluster, "at_ms": at_ms}])
        self.store.replace(cluster, [standing_of, look] if replaced else [look])
        return len(changed)

    def _found(self, cluster: str, uids: Sequence[str], at_ms: int) -> list[Found]:
        """The primary reason of each of these workloads just before an instant; of those that do not run."""
        search = Search.of(self.store, cluster, at_ms)
        answers = []
        # Those that ask alike follow each other: what is counted for one serves the next.
        everybody = why_facts.read(self.store, cluster, uids, at_ms).items()
        for uid, known in sorted(everybody, key=lambda one: one[1].asked):
            answer = explain(known.situation(search.site, search.found(known)))
            if answer is not None:
                answers.append(Found.of(uid, int(known.course["since_ms"]), answer))
        order = search.order()
        if order is not None:
            self.orders.keep(cluster, order)
        return answers

    def _last_ms(self, cluster: str) -> int | None:
        rows = self.store.rows(_LAST, {"cluster": cluster})
        return int(str(rows[0]["at_ms"])) if rows else None


def _stretch(row: Mapping[str, Any]) -> Stretch:
    return Stretch(
        uid=row["uid"],
        reason=row["reason"],
        source=row["source"],
        blocker=row["blocker"],
        start_ms=row["start_ms"],
        end_ms=row["end_ms"],
    )
