"""The stage `wastage`: what each workload's GPU-time was for, from its life, activity and checkpoints."""

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any, Final, TypeAlias

from analytics.wastage.causes import Account, Cause, Piece, account
from analytics.wastage.course import FOREVER_MS, Course
from analytics.wastage.idle import Device, Level, Slot
from analytics.wastage.ratios import is_charged
from analytics.wastage.rules import WastageRules, checkpoint_budget_ms, rules_of
from domain.policy import Policy
from domain.workload import Attempt, Holding, Outcome, Run, Span, State
from store.derived import Replacement
from store.embedded import Store

Rows: TypeAlias = Mapping[str, list[dict[str, Any]]]

# So many workloads are looked for at once.
_A_PAGE: Final = 50_000
# Workloads whose rows are in memory at once.
_AT_ONCE: Final = 2_000

# One row per workload whose life, activity or rules are not those that its account was made of, among those
# of which the life or the activity was made anew since; in the order in which their rows lie, after one of
# them, at most so many.
_STALE: Final = """
with news as (
    select workload_uid from workload_cut
    where cluster = $cluster and seq > $lives_seq
    union
    select workload_uid from activity_cut
    where cluster = $cluster and seq > $activity_seq
)

select
    workload_cut.workload_uid,
    workload_cut.open_until_ms,
    workload_cut.seq as lives_seq,
    coalesce(activity_cut.seq, -1) as activity_seq
from news
inner join workload_cut
    on news.workload_uid = workload_cut.workload_uid
left join activity_cut
    on workload_cut.cluster = activity_cut.cluster
    and workload_cut.workload_uid = activity_cut.workload_uid
left join waste_account
    on workload_cut.cluster = waste_account.cluster
    and workload_cut.workload_uid = waste_account.workload_uid
where
    workload_cut.cluster = $cluster
    and workload_cut.open_until_ms >= $after_ms
    and (workload_cut.open_until_ms > $after_ms or workload_cut.workload_uid > $after)
    and (
        waste_account.lives_seq is distinct from workload_cut.seq
        or waste_account.activity_seq is distinct from coalesce(activity_cut.seq, -1)
        or waste_account.rules is distinct from $rules
    )
order by workload_cut.open_until_ms, workload_cut.workload_uid
limit $most
"""
# One row: the last number of a cut of lives, and of activity.
_REACHED: Final = """
select
    coalesce((select max(seq) from workload_cut where cluster = $cluster), -1) as lives_seq,
    coalesce((select max(seq) from activity_cut where cluster = $cluster), -1) as activity_seq
"""

_COUNTS: Final = " and open_until_ms between $since_ms and $until_ms"
# One row per row of a table that belongs to one of the workloads; the table's name is one of ours.
_OF_WORKLOADS: Final = {
    name: f"""
select * from {name}
where cluster = $cluster and workload_uid = any($uids::varchar[]){counts}
order by {order}
"""  # noqa: S608
    for name, order, counts in (
        ("workload", "workload_uid", _COUNTS),
        ("span", "workload_uid, start_ms", _COUNTS),
        ("attempt", "workload_uid, number", _COUNTS),
        ("holding", "workload_uid, bound_ms, pod_uid", _COUNTS),
        ("run", "workload_uid, pod_uid, start_ms", _COUNTS),
        ("workload_checkpoint", "workload_uid, at_ms", _COUNTS),
        ("activity_span", "workload_uid, pod_uid, device, start_ms", ""),
    )
}


@dataclass(slots=True)
class Wastage:
    """
    Keeps the tables of causes up to date.

    The rows of a workload say what is true of its whole course; when each of it was known stands
    in them. So they change with its facts and samples only, and not as time goes on.
    """

    store: Store
    policy: Policy
    rules: WastageRules = field(init=False)
    # Up to where all of a cluster was accounted by this object; the first time all of it is looked through.
    _reached: dict[str, dict[str, object]] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self.rules = rules_of(self.policy)

    def refresh(self, cluster: str, as_of_ms: int) -> int:  # noqa: ARG002 (facts say when they were)
        """Account anew for what has news; gives the number of workloads."""
        rules = self._fingerprint()
        (reached,) = self.store.rows(_REACHED, {"cluster": cluster})
        before = self._reached.get(cluster, {"lives_seq": -2, "activity_seq": -2})
        number = 0
        for batch in self._stale(before | {"cluster": cluster, "rules": rules}):
            number += len(batch)
            uids = [str(row["workload_uid"]) for row in batch]
            accounts = [row | {"cluster": cluster, "rules": rules} for row in batch]
            pieces, waits = self._rows(cluster, uids)
            self.store.replace(
                cluster,
                [
                    Replacement(table="waste_piece", rows=pieces, keys=("workload_uid", uids)),
                    Replacement(table="own_failure_wait", rows=waits, keys=("workload_uid", uids)),
                    Replacement(table="waste_account", rows=accounts, keys=("workload_uid", uids)),
                ],
            )
        self._reached[cluster] = reached
        return number

    def _stale(self, asked: Mapping[str, object]) -> Iterator[list[dict[str, object]]]:
        """The workloads to account anew, some at a time."""
        after: dict[str, object] = {"after_ms": -1, "after": ""}
        while page := self.store.rows(_STALE, {**asked, **after, "most": _A_PAGE}):
            after = {"after_ms": page[-1]["open_until_ms"], "after": page[-1]["workload_uid"]}
            for row in page:
                del row["open_until_ms"]
            for first in range(0, len(page), _AT_ONCE):
                yield page[first : first + _AT_ONCE]

    def courses(self, cluster: str, uids: Collection[str]) -> Iterator[tuple[str, Course]]:
        """What is known of the stay on GPUs of those of these workloads that held any."""
        asked: dict[str, object] = {"cluster": cluster, "uids": list(uids)}
        asked["since_ms"], asked["until_ms"] = self.store.counting(cluster, uids)
        tables = {name: _by_workload(self.store.rows(sql, asked)) for name, sql in _OF_WORKLOADS.items()}
        for uid in uids:
            mine = {name: found.get(uid, []) for name, found in tables.items()}
            holdings = tuple(_holdings(mine))
            if holdings and mine["workload"]:
                yield uid, self._course(mine, holdings)

    def _course(self, mine: Rows, holdings: tuple[Holding, ...]) -> Course:
        (workload,) = mine["workload"]
        name = f"{workload['namespace']}/{workload['name']}"
        return Course(
            spans=tuple(map(_span, mine["span"])),
            attempts=tuple(map(_attempt, mine["attempt"])),
            holdings=holdings,
            requested_micro_gpus=workload["requested_micro_gpus"],
            checkpoints_ms=tuple(row["at_ms"] for row in mine["workload_checkpoint"]),
            devices=tuple(_devices(mine["activity_span"], holdings)),
            assumed_interval_ms=checkpoint_budget_ms(
                self.policy,
                service_class=workload["service_class"],
                priority_class=workload["priority_class"],
            ),
            resident_idle_exempt=any(fnmatchcase(name, pattern) for pattern in self.policy.serving_workloads),
        )

    def _rows(
        self, cluster: str, uids: Collection[str]
    ) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        pieces: list[dict[str, object]] = []
        waits: list[dict[str, object]] = []
        for uid, course in self.courses(cluster, uids):
            key = {"cluster": cluster, "workload_uid": uid}
            found = account(course, as_of_ms=FOREVER_MS, rules=self.rules)
            places = {holding.pod_uid: (holding.node, holding.gpu_model) for holding in course.holdings}
            pieces += [key | _piece(piece, found, places) for piece in found.pieces]
            waits += [
                key | {"micro_gpus": found.requested_micro_gpus, "start_ms": start_ms, "end_ms": _end(end_ms)}
                for start_ms, end_ms in found.own_failure_waits
            ]
        return pieces, waits

    def _fingerprint(self) -> str:
        """All of the policy that an account depends on: other rules make it stale."""
        budgets = sorted(self.policy.checkpoint_budgets.items())
        return repr((self.rules, budgets, self.policy.serving_workloads))


def _piece(piece: Piece, of: Account, places: Mapping[str, tuple[str, str]]) -> dict[str, object]:
    node, gpu_model = places[piece.pod_uid]
    return {
        "pod_uid": piece.pod_uid,
        "attempt": piece.attempt,
        "node": node,
        "gpu_model": gpu_model,
        "device": piece.device,
        "micro_gpus": piece.micro_gpus,
        "start_ms": piece.start_ms,
        "end_ms": _end(piece.end_ms),
        "cause": piece.cause.value,
        "known_ms": piece.known_ms,
        "earlier_cause": (piece.cause if piece.known_ms is None else Cause.USEFUL).value,
        "may_be": "" if piece.may_be is None else piece.may_be.value,
        "charged": is_charged(piece.cause, resident_idle_exempt=of.resident_idle_exempt),
        "restart": piece.restart,
    }


def _end(end_ms: int) -> int | None:
    return None if end_ms >= FOREVER_MS else end_ms


def _by_workload(rows: list[dict[str, object]]) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        found[str(row["workload_uid"])].append(row)
    return found


def _span(row: Mapping[str, Any]) -> Span:
    return Span(
        state=State(row["state"]),
        start_ms=row["start_ms"],
        end_ms=row["end_ms"],
        first_wait=row["first_wait"],
    )


def _attempt(row: Mapping[str, Any]) -> Attempt:
    return Attempt(
        number=row["number"],
        start_ms=row["start_ms"],
        end_ms=row["end_ms"],
        outcome=Outcome(row["outcome"]),
    )


_HOLDING: Final = (
    "pod_uid", "pod_name", "attempt", "node", "gpu_model", "micro_gpus", "bound_ms", "bound_earliest_ms",
    "bound_source", "started_ms", "released_ms", "released_earliest_ms", "phase", "restarts",
    "cut", "cut_known_ms",
)  # fmt: skip


def _holdings(mine: Rows) -> Iterator[Holding]:
    """The stays of pods with GPUs, or with an unknown share of one."""
    runs: dict[str, list[Run]] = defaultdict(list)
    for row in mine["run"]:
        run = Run(start_ms=row["start_ms"], end_ms=row["end_ms"], exit_code=row["exit_code"])
        runs[row["pod_uid"]].append(run)
    for row in mine["holding"]:
        if row["micro_gpus"] != 0:
            yield Holding(**{name: row[name] for name in _HOLDING}, runs=tuple(runs[row["pod_uid"]]))


def _devices(rows: list[dict[str, Any]], holdings: Collection[Holding]) -> Iterator[Device]:
    """
    What was seen of each pod's devices.

    A pod on which exporters name more than it holds is left out: nobody knows which are its own.
    """
    slots: dict[tuple[str, str], list[Slot]] = defaultdict(list)
    share: dict[tuple[str, str], int] = {}
    for row in rows:
        key = (row["pod_uid"], row["device"])
        slots[key].append(Slot(start_ms=row["start_ms"], end_ms=row["end_ms"], level=Level(row["level"])))
        share[key] = max(row["micro_gpus"], share.get(key, 0))
    holds = {holding.pod_uid: holding.micro_gpus or 0 for holding in holdings}
    named: dict[str, int] = defaultdict(int)
    for (pod_uid, _), micro_gpus in share.items():
        named[pod_uid] += micro_gpus
    for (pod_uid, name), seen in slots.items():
        if named[pod_uid] <= holds.get(pod_uid, 0):
            micro_gpus = share[pod_uid, name]
            yield Device(pod_uid=pod_uid, name=name, micro_gpus=micro_gpus, slots=tuple(seen))
