"""When those who hold something may be expected to end: by their own limit, else by like runs."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from analytics.why.run_length import Kind, RunLengths
from api.answers import Record
from domain.window import MS_PER_HOUR, MS_PER_SECOND, format_instant
from service.why_sql import of_few
from store.embedded import Store

# Runs are looked at that ended in the last weeks, the newest ones of them.
_BACK_MS: Final = 28 * 24 * MS_PER_HOUR
_MOST_RUNS: Final = 5_000

# One row per workload: what it is, and since when it has been on GPUs, or had quota at least.
_HOLDERS: Final = """
select
    workload.workload_uid as uid,
    workload.team,
    workload.service_class,
    workload.requested_micro_gpus,
    max(attempt.start_ms) as start_ms
from workload
left join attempt
    on workload.cluster = attempt.cluster
    and workload.workload_uid = attempt.workload_uid
    and attempt.start_ms < $as_of_ms
    and coalesce(attempt.end_ms >= $as_of_ms, true)
where workload.cluster = $cluster and workload.workload_uid in (select unnest($uids))
group by workload.workload_uid, workload.team, workload.service_class, workload.requested_micro_gpus
order by workload.workload_uid
"""
# One row per workload that has a limit: the shortest that it was told last.
_LIMITS: Final = """
with told as (
    select
        member.workload_uid as uid,
        (arg_max(description.body, description.from_ms)::json ->> '$.most_seconds')::bigint as most_seconds
    from member
    inner join description
        on member.cluster = description.cluster and member.object_uid = description.uid
    where
        member.cluster = $cluster
        and member.kind in ('Workload', 'Job')
        and member.workload_uid in (select unnest($uids))
        and description.from_ms < $as_of_ms
    group by member.workload_uid, member.object_uid
)

select uid, min(most_seconds) as most_seconds
from told
where most_seconds is not null
group by uid
order by uid
"""
# One row per run that ended by itself, the newest first.
_RUNS: Final = f"""
select
    gpu_workload.team,
    gpu_workload.service_class,
    gpu_workload.requested_micro_gpus,
    attempt.end_ms - attempt.start_ms as length_ms
from attempt
inner join gpu_workload
    on attempt.cluster = gpu_workload.cluster
    and attempt.workload_uid = gpu_workload.workload_uid
    and attempt.open_until_ms = gpu_workload.open_until_ms
where
    attempt.cluster = $cluster
    and attempt.open_until_ms >= $since_ms
    and attempt.end_ms >= $since_ms
    and attempt.end_ms < $as_of_ms
    and attempt.outcome in ('succeeded', 'failed', 'cancelled')
order by attempt.end_ms desc
limit {_MOST_RUNS}
"""  # noqa: S608 (a number from here)
UNKNOWN: Final[Record] = {
    "ends_at": None, "ends_earliest": None, "ends_latest": None, "ends_by": "", "ends_because": "",
}  # fmt: skip


def ends(store: Store, cluster: str, since_ms: Mapping[str, int], as_of_ms: int) -> dict[str, Record]:
    """
    When each of some workloads may be expected to end, by uid.

    Args:
        store: knows their limits, and how long others ran.
        cluster: theirs.
        since_ms: since when each holds, by uid; their attempts say it better where there are any.
        as_of_ms: while they hold.

    Returns:
        `ends_at`, the median, or the limit where nothing else is known; null where nothing is.
        `ends_earliest` and `ends_latest` are an 80 % interval, cut at the limit; with a limit alone its end
        is the latest. `ends_by`: `limit`, `like_runs` or empty, and `ends_because` the same in words.
    """
    if not since_ms:
        return {}
    asked: dict[str, object] = {"cluster": cluster, "uids": sorted(since_ms), "as_of_ms": as_of_ms}
    limits = {row["uid"]: int(str(row["most_seconds"])) for row in store.rows(of_few(_LIMITS), asked)}
    lengths = _lengths(store, cluster, as_of_ms)
    return {
        str(row["uid"]): _end(row, limits.get(row["uid"]), lengths, since_ms=since_ms, as_of_ms=as_of_ms)
        for row in store.rows(of_few(_HOLDERS), asked)
    }


def first_end(found: Sequence[Record]) -> str | None:
    """The earliest instant at which one of them is expected to end; None where none is known."""
    return min((one["ends_at"] for one in found if one["ends_at"]), default=None)


def _lengths(store: Store, cluster: str, as_of_ms: int) -> RunLengths:
    # As of the last full hour, so that between two commits it is read once.
    until_ms = as_of_ms // MS_PER_HOUR * MS_PER_HOUR
    asked = {"cluster": cluster, "since_ms": until_ms - _BACK_MS, "as_of_ms": until_ms}
    return RunLengths.of(
        (Kind(row["team"], row["service_class"], row["requested_micro_gpus"]), row["length_ms"])
        for row in _read(store, asked)
    )


def _read(store: Store, asked: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return store.kept_rows(_RUNS, asked)


def _end(
    row: Mapping[str, Any],
    most_seconds: int | None,
    lengths: RunLengths,
    *,
    since_ms: Mapping[str, int],
    as_of_ms: int,
) -> Record:
    start_ms = int(row["start_ms"] or since_ms[str(row["uid"])])
    limit_ms = None if most_seconds is None else max(start_ms + most_seconds * MS_PER_SECOND, as_of_ms)
    kind = Kind(row["team"], row["service_class"], row["requested_micro_gpus"])
    expected = lengths.expected(kind, as_of_ms - start_ms)
    told = "" if most_seconds is None else f"it may run for {most_seconds:,} s at most"
    if expected is None:
        if limit_ms is None:
            return UNKNOWN
        at = format_instant(limit_ms)
        return UNKNOWN | {"ends_at": at, "ends_latest": at, "ends_by": "limit", "ends_because": told}
    low, median, high = (
        as_of_ms + left if limit_ms is None else min(as_of_ms + left, limit_ms)
        for left in (expected.low_ms, expected.median_ms, expected.high_ms)
    )
    like = f"{expected.runs} {expected.like} that lasted longer than it has"
    return {
        "ends_at": format_instant(median),
        "ends_earliest": format_instant(low),
        "ends_latest": format_instant(high),
        "ends_by": "limit" if median == limit_ms else "like_runs",
        "ends_because": f"{like}; {told}" if told else like,
    }
