"""The stage `etas`: what is told of when waiting work will start, kept so that it can be held against it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from analytics.eta.calibration import Calibration, Outcome, Told
from analytics.eta.estimate import RUNG_WORDS, Estimate
from analytics.eta.replay import ask_of, replay
from analytics.eta.sentence import UNTOLD
from analytics.eta.waits import BANDS, band_of, mark_of
from domain.window import MS_PER_HOUR, minute_before
from service.eta_waits import Known, known_waits
from store.derived import Replacement
from store.embedded import Store

# So many are told of at one refresh, the longest waiting first; the others at the next ones.
_MOST_A_TIME: Final = 200
# Of history that came in at once the last moments are told afterwards.
_MOST_REPLAYED: Final = 1_000
# What was told longer ago teaches nothing any more.
KEPT_MS: Final = 28 * 24 * MS_PER_HOUR
# Over these days it is shown how many held.
SHOWN_DAYS: Final = 14

# One row per workload that waits: since when at most, and the last mark of this wait that was told; -1: none.
_UNTOLD: Final = """
with waiting as (
    select gpu_workload.workload_uid, gpu_workload.submitted_ms, span.first_wait
    from gpu_workload
    inner join span
        on gpu_workload.cluster = span.cluster and gpu_workload.workload_uid = span.workload_uid
    where
        gpu_workload.cluster = $cluster
        and gpu_workload.open_until_ms >= $as_of_ms
        and gpu_workload.submitted_ms < $as_of_ms
        and span.state in ('queued', 'checking', 'placing')
        and span.start_ms < $as_of_ms
        and span.end_ms is null
),

episode as (
    select
        waiting.workload_uid,
        greatest(max(waiting.submitted_ms), coalesce(max(placed.end_ms), 0)) as since_ms,
        greatest(count(placed.start_ms), max(case when waiting.first_wait then 0 else 1 end)) as episode
    from waiting
    left join span as placed
        on
            placed.cluster = $cluster
            and waiting.workload_uid = placed.workload_uid
            and placed.state in ('starting', 'running')
            and placed.start_ms < $as_of_ms
    group by waiting.workload_uid
)

select
    episode.workload_uid as uid,
    episode.since_ms,
    coalesce(max(eta_told.mark), -1) as mark,
    coalesce(max(wait_reason.reason), '') as reason
from episode
left join eta_told
    on
        episode.workload_uid = eta_told.workload_uid
        and episode.episode = eta_told.episode
        and eta_told.cluster = $cluster
left join wait_reason
    on episode.workload_uid = wait_reason.workload_uid
    and wait_reason.cluster = $cluster
    and wait_reason.end_ms = 9223372036854775807
group by episode.workload_uid, episode.since_ms
order by episode.since_ms, episode.workload_uid
"""
# One row where anything was told before.
_ANY: Final = "select 1 as one from eta_told where cluster = $cluster limit 1"
# One row per interval that has an outcome by then, in the order in which it became known. together: how many
# were told in its hour of its band and class, with or without an outcome, of first waits or of others.
_OUTCOMES: Final = """
with event as (
    select
        service_class,
        least(mark, $last_band) as band,
        at_ms // 3600000 as hour,
        count(*) as together
    from eta_told
    where cluster = $cluster and at_ms < $as_of_ms and at_ms >= $since_ms
    group by service_class, least(mark, $last_band), at_ms // 3600000
)

select
    outcome.service_class,
    outcome.mark,
    outcome.at_ms,
    outcome.low_ms,
    outcome.median_ms,
    outcome.high_ms,
    outcome.known_ms,
    outcome.side,
    outcome.again,
    event.together
from eta_outcomes($as_of_ms) as outcome
inner join event
    on
        outcome.service_class = event.service_class
        and least(outcome.mark, $last_band) = event.band
        and outcome.at_ms // 3600000 = event.hour
where outcome.cluster = $cluster and outcome.known_ms < $as_of_ms and outcome.at_ms >= $since_ms
order by outcome.known_ms, outcome.at_ms, outcome.workload_uid
"""


def outcomes(store: Store, cluster: str, as_of_ms: int) -> list[Outcome]:
    """What came of the intervals that were told in the last weeks, as far as it is known."""
    return outcomes_of(outcome_rows(store, cluster, as_of_ms))


def outcome_rows(store: Store, cluster: str, as_of_ms: int) -> Sequence[Mapping[str, Any]]:
    """The rows of them; the same object as long as nothing is committed."""
    asked: dict[str, int | str | None] = {
        "cluster": cluster,
        "as_of_ms": as_of_ms,
        "since_ms": minute_before(as_of_ms) - KEPT_MS,
        "last_band": len(BANDS) - 1,
    }
    return store.kept_rows(_OUTCOMES, asked)


def outcomes_of(rows: Sequence[Mapping[str, Any]]) -> list[Outcome]:
    """What the rows tell."""
    return [
        Outcome(
            Told(
                row["at_ms"],
                min(row["mark"], len(BANDS) - 1),
                row["service_class"],
                row["low_ms"],
                row["median_ms"],
                row["high_ms"],
                row["again"],
            ),
            row["known_ms"],
            row["side"],
            row["together"],
        )
        for row in rows
    ]


@dataclass(slots=True)
class Etas:
    """
    Keeps `eta_told` up to date: whoever came to the next mark of its age is told of, once.

    Args:
        store: has the lives and the reasons.
        replays: whether, where nothing was told yet, the last past waits are told of afterwards.
    """

    store: Store
    replays: bool = False

    def refresh(self, cluster: str, as_of_ms: int) -> int:
        """Tell of those that came to a mark; gives of how many."""
        rows: list[dict[str, object]] = []
        if self.replays and not self.store.rows(_ANY, {"cluster": cluster}):
            rows += self._past(cluster, as_of_ms)
        told = {(row["workload_uid"], row["episode"], row["mark"]) for row in rows}
        rows += self._now(cluster, as_of_ms, told)
        if rows:
            added = Replacement(table="eta_told", rows=rows, keys=("workload_uid", ()))
            self.store.replace(cluster, [added])
        return len(rows)

    def _now(
        self, cluster: str, as_of_ms: int, told: set[tuple[object, object, object]]
    ) -> Iterator[dict[str, object]]:
        asked = {"cluster": cluster, "as_of_ms": as_of_ms}
        rows: Sequence[Mapping[str, Any]] = self.store.rows(_UNTOLD, asked)
        due = [
            row["uid"]
            for row in rows
            if mark_of(as_of_ms - row["since_ms"]) > row["mark"] and row["reason"] not in UNTOLD
        ]
        if not due:
            return
        known = known_waits(self.store, cluster, as_of_ms)
        calibration = Calibration(outcomes(self.store, cluster, as_of_ms))
        marks = {row["uid"]: row["mark"] for row in rows}
        for uid in due[:_MOST_A_TIME]:
            if uid not in known.place:
                continue
            place = known.place[uid]
            ask, episode = ask_of(known.waits, place), known.episodes[place]
            mark = mark_of(as_of_ms - ask.submitted_ms)
            if mark <= marks[uid] or (uid, episode, mark) in told:
                continue
            name = known.classes[ask.service_class]
            band = band_of(as_of_ms - ask.submitted_ms)
            found = known.past.estimate(ask, as_of_ms, calibration.margins(band, name))
            if isinstance(found, Estimate):
                ends = found.low_ms, found.median_ms, found.high_ms
                told_now = Told(as_of_ms, band, name, *ends, ask.again)
                yield _row(known, place, mark, told_now, found) | {"cluster": cluster, "replayed": False}

    def _past(self, cluster: str, as_of_ms: int) -> Iterator[dict[str, object]]:
        known = known_waits(self.store, cluster, as_of_ms)
        from_ms = _since(known, as_of_ms)
        for of, mark, told, found in replay(
            known.waits, classes=known.classes, from_ms=from_ms, as_of_ms=as_of_ms
        ):
            yield _row(known, of, mark, told, found) | {"cluster": cluster, "replayed": True}


def _since(known: Known, as_of_ms: int) -> int:
    at_ms = known.past.moments.at_ms
    return max(int(at_ms[-_MOST_REPLAYED]) if len(at_ms) > _MOST_REPLAYED else 0, as_of_ms - KEPT_MS)


def _row(known: Known, place: int, mark: int, told: Told, found: Estimate) -> dict[str, object]:
    return {
        "workload_uid": known.uids[place],
        "episode": known.episodes[place],
        "service_class": told.service_class,
        "mark": mark,
        "at_ms": told.at_ms,
        "low_ms": int(told.low_ms),
        "median_ms": int(told.median_ms),
        "high_ms": int(told.high_ms),
        "rung": RUNG_WORDS[found.rung],
        "like_count": found.like,
    }
