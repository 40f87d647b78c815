"""Weekly quota proposals: made of what a week said of each holder, and kept; nothing is applied here."""

import hashlib
import json
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import timedelta
from fractions import Fraction
from typing import Any, Final

from analytics.chargeback.agreement import Agreement
from analytics.quota.movements import COHORT
from analytics.quota.proposal import OPEN_STATES, Proposal, ProposalState, propose
from analytics.quota.rules import Holder, Pool, QuotaRules, good_periods, rules_of
from domain.calendar import Period, finished_week
from domain.errors import UsageError
from domain.policy import Policy, QuotaRatio
from domain.window import format_instant
from service.quota_evidence import Evidence, Measured, evidence
from service.quota_news import decided, news
from service.quota_settings import QuotaSettings
from service.quota_site import RESOURCE, PoolSite, pools
from store import proposals as kept
from store.embedded import Store
from store.proposals import Move

MAKER: Final = "gpuledger"
_LOOK_AGAIN_MS: Final = 3_600_000


@dataclass(frozen=True, slots=True)
class Proposer:
    """
    The stage that makes proposals once a week has ended, and lets old ones expire.

    A week begins on Monday in the billing zone. Once an hour it looks whether the last week says
    something else by now, for example because GPU metrics came late, and then makes its proposals anew.
    """

    store: Store
    policy: Policy
    agreement: Agreement
    terms: QuotaSettings
    _looked_ms: dict[str, int] = field(default_factory=dict)

    def refresh(self, cluster: str, as_of_ms: int) -> int:
        """Proposals of the week that ended last, where they are not made of what is known now; how many."""
        finished = finished_week(as_of_ms, self.agreement.zone)
        last_ms = kept.last_week_end(self.store, cluster)
        if last_ms is None or last_ms < finished.end_ms:
            self._looked_ms[cluster] = as_of_ms
            return len(self.propose(cluster, finished, as_of_ms))
        self._expire(cluster, as_of_ms)
        looked_ms = self._looked_ms.get(cluster)
        if last_ms > finished.end_ms or (looked_ms is not None and as_of_ms < looked_ms + _LOOK_AGAIN_MS):
            return 0
        self._looked_ms[cluster] = as_of_ms
        return self._propose_anew(cluster, finished, as_of_ms)

    def propose(self, cluster: str, period: Period, as_of_ms: int, *, again: bool = False) -> list[str]:
        """
        Make and keep the proposals of a week; gives their identities.

        Open proposals are superseded, those that are too old have expired.

        Args:
            again: the last week may be made anew, for example when more is known of it by now.

        Raises:
            UsageError: the week is not over, or proposals of it or of a later one are there.
        """
        self._check(cluster, period, as_of_ms, again=again)
        found = evidence(self.store, cluster, period, self.policy)
        before = self._before(cluster, period)
        # A week that is made anew at the same instant has other identities.
        earlier = len(kept.proposals(self.store))
        weeks: list[dict[str, object]] = []
        made: list[dict[str, object]] = []
        for site in pools(self.store, cluster, as_of_ms):
            rows, proposed = self._of_pool(site, period, found, before, as_of_ms=as_of_ms, earlier=earlier)
            weeks += rows
            made += proposed
        moves = [
            self._gone(each, as_of_ms, "a new week has its own proposals") for each in self._open(cluster)
        ]
        moves += [_made(row, as_of_ms, f"week {period.label}") for row in made]
        kept.record(self.store, cluster, weeks=weeks, made=made, moves=moves)
        return [str(row["proposal_id"]) for row in made]

    def _propose_anew(self, cluster: str, period: Period, as_of_ms: int) -> int:
        """
        The week's proposals of each pool whose evidence has changed; gives how many were made.

        A pool stays as it is once a person has decided there, or its quotas were changed: a week moves a
        quota once.
        """
        found = evidence(self.store, cluster, period, self.policy)
        rows: list[dict[str, Any]] = kept.proposals(self.store)
        own = [row for row in rows if row["cluster"] == cluster and row["week"] == period.label]
        measured: dict[str, dict[str, Any]] = defaultdict(dict)
        for row in kept.week(self.store, cluster, period.label):
            measured[str(row["pool"])][str(row["holder"])] = row
        before = self._before(cluster, period)
        weeks: list[dict[str, object]] = []
        made: list[dict[str, object]] = []
        moves: list[Move] = []
        for site in pools(self.store, cluster, as_of_ms):
            told = measured[site.pool]
            mine = [row for row in own if row["pool"] == site.pool]
            what = news(told, {name: found.of(site.pool, name) for name in site.holders})
            moved = any(
                name in told and told[name]["live"] != each.gpus for name, each in site.holders.items()
            )
            if not what or moved or decided(mine):
                continue
            measured_now, proposed = self._of_pool(
                site, period, found, before, as_of_ms=as_of_ms, earlier=len(rows)
            )
            weeks += measured_now
            made += proposed
            moves += [
                self._gone(row, as_of_ms, f"more is known of week {period.label}: {_news_of(row, what)}")
                for row in mine
                if row["state"] in OPEN_STATES
            ]
            moves += [
                _made(row, as_of_ms, f"week {period.label}, made anew: {_news_of(row, what)}")
                for row in proposed
            ]
        if weeks:
            kept.record(self.store, cluster, weeks=weeks, made=made, moves=moves)
        return len(made)

    def _before(self, cluster: str, period: Period) -> dict[tuple[str, str], dict[str, object]]:
        rows = kept.last_weeks(self.store, cluster, period.end_ms - 1)
        return {(str(row["pool"]), str(row["holder"])): row for row in rows}

    def _check(self, cluster: str, period: Period, as_of_ms: int, *, again: bool) -> None:
        if period.end_ms > as_of_ms:
            message = (
                f"week {period.label} ends at {format_instant(period.end_ms)}, after"
                f" {format_instant(as_of_ms)}: proposals are made of a finished week"
            )
            raise UsageError(message)
        last_ms = kept.last_week_end(self.store, cluster)
        if last_ms is not None and (last_ms > period.end_ms or (last_ms == period.end_ms and not again)):
            message = (
                f"week {period.label}: proposals of it, or of a later week, are made already for cluster"
                f" {cluster}; `gpuledger quota list` shows them"
            )
            raise UsageError(message)

    def _of_pool(
        self,
        site: PoolSite,
        period: Period,
        found: Evidence,
        before: dict[tuple[str, str], dict[str, object]],
        *,
        as_of_ms: int,
        earlier: int,
    ) -> tuple[list[dict[str, object]], list[dict[str, object]]]:
        rules = rules_of(self.policy)
        measured = {name: found.of(site.pool, name) for name in site.holders}
        holders = []
        for name, holding in sorted(site.holders.items()):
            told, last = measured[name], before.get((site.pool, name), {})
            holders.append(
                Holder(
                    name=name,
                    agreed=self._agreed(site.pool, name, last, live=holding.gpus),
                    live=holding.gpus,
                    ratio=told.ratio,
                    debt=told.debt,
                    gpu_hours=told.gpu_hours,
                    coverage=told.coverage,
                    good_before=int(str(last.get("good_weeks", 0))),
                )
            )
        own = site.cohort.gpus if site.cohort else 0
        base = self._agreed(site.pool, COHORT, before.get((site.pool, COHORT), {}), live=own)
        pool = Pool(
            holders=tuple(holders),
            unit=self.terms.units.get(site.pool, 1),
            leftover=site.leftover,
            spare=max(0, own - base),
            base=base,
        )
        expires = self.policy.quota_proposal_expires_after // timedelta(milliseconds=1)
        proposed = propose(
            pool,
            name=f"{earlier}/{site.cluster}/{site.pool}",
            week=period.label,
            made_ms=as_of_ms,
            expires_ms=as_of_ms + expires,
            rules=rules,
        )
        weeks = [_week_row(site, period, holder, measured[holder.name], rules) for holder in holders]
        weeks.append(_cohort_row(site, period, agreed=base, live=own))
        teams = {name: told.teams for name, told in measured.items()}
        return weeks, [
            _proposal_row(site, period, each, teams, base=base, ratio=self.policy.quota_ratio)
            for each in proposed
        ]

    def _agreed(self, pool: str, holder: str, earlier: dict[str, object], *, live: int) -> int:
        """What people agreed on: the settings, else what was kept, else what the quota is now."""
        said = self.terms.agreed.get(pool, {}).get(holder)
        if said is not None:
            return said
        return int(str(earlier["agreed"])) if "agreed" in earlier else live

    def _open(self, cluster: str) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = kept.proposals(self.store)
        return [row for row in rows if row["cluster"] == cluster and row["state"] in OPEN_STATES]

    def _gone(self, row: dict[str, Any], as_of_ms: int, why: str = "") -> Move:
        late = row["expires_ms"] <= as_of_ms
        return Move(
            proposal_id=row["proposal_id"],
            at_ms=as_of_ms,
            from_state=row["state"],
            to_state=ProposalState.EXPIRED if late else ProposalState.SUPERSEDED,
            who=MAKER,
            note="" if late else why,
        )

    def _expire(self, cluster: str, as_of_ms: int) -> None:
        for row in self._open(cluster):
            if row["expires_ms"] <= as_of_ms:
                kept.move(self.store, cluster, self._gone(row, as_of_ms))


def reject(store: Store, proposal_id: str, *, who: str, note: str, at_ms: int) -> None:
    """
    Reject an open proposal.

    Raises:
        UsageError: there is none, or it is not open any more.
    """
    found = kept.proposals(store, proposal_id)
    if not found:
        message = f"proposal {proposal_id!r}: there is none; `gpuledger quota list` shows them"
        raise UsageError(message)
    row = found[0]
    change = Move(
        proposal_id=proposal_id, at_ms=at_ms, from_state=str(row["state"]), to_state=ProposalState.REJECTED,
        who=who, note=note,
    )  # fmt: skip
    if row["state"] not in OPEN_STATES or not kept.move(store, str(row["cluster"]), change):
        message = f"proposal {proposal_id} is {row['state']}: only an open one can be rejected"
        raise UsageError(message)


def _news_of(row: dict[str, Any], what: dict[str, str]) -> str:
    """Of its own holder only: who may see this proposal may not see the others."""
    return what.get(row["holder"], "of other holders of its pool")


def _made(row: dict[str, object], as_of_ms: int, note: str) -> Move:
    return Move(
        proposal_id=str(row["proposal_id"]), at_ms=as_of_ms, from_state="", to_state=ProposalState.PROPOSED,
        who=MAKER, note=note,
    )  # fmt: skip


def short_id(name: str) -> str:
    """
    The identity of a proposal for people and addresses: the same for the same pool, instant and holder.

    >>> short_id("c/pool/1/a")
    'q-f65b4c67'
    """
    return f"q-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def _week_row(
    site: PoolSite, period: Period, holder: Holder, told: Measured, rules: QuotaRules
) -> dict[str, object]:
    return {
        "cluster": site.cluster, "pool": site.pool, "holder": holder.name, "week": period.label,
        "start_ms": period.start_ms, "end_ms": period.end_ms, "agreed": holder.agreed, "live": holder.live,
        "ratio": _number(told.ratio), "ratio_because": told.ratio_because,
        "debt_gpu_hours": float(told.debt), "gpu_hours": float(told.gpu_hours),
        "coverage": float(told.coverage), "good_weeks": good_periods(holder, rules),
    }  # fmt: skip


def _cohort_row(site: PoolSite, period: Period, *, agreed: int, live: int) -> dict[str, object]:
    return {
        "cluster": site.cluster, "pool": site.pool, "holder": COHORT, "week": period.label,
        "start_ms": period.start_ms, "end_ms": period.end_ms, "agreed": agreed, "live": live,
        "ratio": None, "ratio_because": "a cohort runs nothing itself", "debt_gpu_hours": 0.0,
        "gpu_hours": 0.0, "coverage": 0.0, "good_weeks": 0,
    }  # fmt: skip


def _proposal_row(
    site: PoolSite, period: Period, made: Proposal, teams: dict[str, str], *, base: int, ratio: QuotaRatio
) -> dict[str, object]:
    holding = site.holders[made.holder] if made.holder else site.cohort
    assert holding is not None, "without a cohort's object nothing is proposed for it"
    says = holding.says
    known = made.evidence
    numbers: dict[str, object] = {}
    if known is not None:
        numbers = {
            "agreed_gpus": known.agreed,
            f"{ratio}_ratio": _number(known.ratio),
            "penalty_gpus": float(known.penalty),
            "debt_gpu_hours": float(known.debt),
            "gpu_hours": float(known.gpu_hours),
            "coverage": float(known.coverage),
        }
    return {
        "cluster": site.cluster, "proposal_id": short_id(made.proposal_id), "pool": site.pool,
        "holder": made.holder, "teams": teams.get(made.holder, ""), "week": period.label,
        "kind": made.kind, "before": made.before, "after": made.after,
        "base": 0 if made.holder else base, "unit": made.unit, "made_ms": made.made_ms,
        "expires_ms": made.expires_ms, "because": made.because, "evidence": json.dumps(numbers),
        "funding": json.dumps([
            {"proposal": short_id(each.proposal_id), "gpus": each.gpus} for each in made.funding
        ]),
        "from_free": made.from_free, "object_kind": says.kind, "object_uid": says.uid,
        "flavor": site.flavor, "resource": RESOURCE, "state": made.state,
    }  # fmt: skip


def _number(value: Fraction | None) -> float | None:
    return None if value is None else float(value)
