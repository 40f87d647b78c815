"""
Proposals: a movement that somebody can approve, its states, and what undoes it.

A raise names the lowerings that pay for it. It is applied after them and only as far as they
were applied, so that the sum of live quotas never exceeds the sum agreed; rule 6.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction

from analytics.quota.movements import Kind, Movement, movements
from analytics.quota.rules import DEFAULT_RULES, Leftover, Pool, QuotaRules, down_to_units, penalty
from domain.errors import UsageError
from domain.words import count


class ProposalState(StrEnum):
    """Where a proposal stands; those without a way out are final."""

    PROPOSED = "proposed"
    APPROVED = "approved"
    APPLIED = "applied"
    REVERTED = "reverted"
    EXPIRED = "expired"
    REJECTED = "rejected"
    REFUSED = "refused"
    DRIFTED = "drifted"
    SUPERSEDED = "superseded"


_GIVEN_UP = frozenset(
    {ProposalState.EXPIRED, ProposalState.REJECTED, ProposalState.DRIFTED, ProposalState.SUPERSEDED}
)
_NEXT = {
    ProposalState.PROPOSED: _GIVEN_UP | {ProposalState.APPROVED},
    ProposalState.APPROVED: _GIVEN_UP | {ProposalState.APPLIED, ProposalState.REFUSED},
    ProposalState.APPLIED: frozenset({ProposalState.REVERTED, ProposalState.DRIFTED}),
}
OPEN_STATES = frozenset({ProposalState.PROPOSED, ProposalState.APPROVED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What a proposal rests on; GPU-hours for debt and use, GPUs for the penalty."""

    agreed: int
    ratio: Fraction | None
    penalty: Fraction
    debt: Fraction
    gpu_hours: Fraction
    coverage: Fraction


@dataclass(frozen=True, slots=True, kw_only=True)
class Funding:
    """So many GPUs of a raise come from the proposal with this identity."""

    proposal_id: str
    gpus: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """
    A quota is to go from `before` to `after`, whole GPUs; `holder` empty means the cohort itself.

    `unit` is what it is rounded to when it shrinks, `from_free` the part of a raise that nothing
    pays for because it is agreed and live nowhere. `evidence` is None for the cohort.
    """

    proposal_id: str
    pool: str
    holder: str
    kind: Kind
    before: int
    after: int
    unit: int
    made_ms: int
    expires_ms: int
    because: str
    evidence: Evidence | None = None
    funding: tuple[Funding, ...] = ()
    from_free: int = 0
    state: ProposalState = ProposalState.PROPOSED

    @property
    def amount(self) -> int:
        """GPUs that move, never negative."""
        return abs(self.after - self.before)


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One write: the holder's live quota must be `before`, and becomes `after`; GPUs."""

    proposal_id: str
    holder: str
    before: int
    after: int


def propose(
    pool: Pool, *, name: str, week: str, made_ms: int, expires_ms: int, rules: QuotaRules = DEFAULT_RULES
) -> tuple[Proposal, ...]:
    """
    The proposals of one period, such as the week 2026-W48, for one pool, lowerings first.

    Identities are made of the pool, the instant and the holder: the same question gives the same.
    """
    moved = movements(pool, rules)
    ids = {m.holder: f"{name}/{made_ms}/{m.holder or 'cohort'}" for m in moved}
    holders = {holder.name: holder for holder in pool.holders}
    given = sum(m.amount for m in moved if not m.kind.lowers)
    lowered = sum(m.amount for m in moved if m.kind.lowers)
    found = []
    for move in moved:
        holder = holders.get(move.holder)
        evidence = None
        if holder is not None:
            evidence = Evidence(
                agreed=holder.agreed, ratio=holder.ratio, penalty=penalty(holder, rules), debt=holder.debt,
                gpu_hours=holder.gpu_hours, coverage=holder.coverage,
            )  # fmt: skip
        because = _of_cohort(move, pool.base) if evidence is None else _sentence(move, evidence, week, rules)
        if move.kind.lowers and lowered > given and pool.leftover is Leftover.UNUSED:
            because += (
                f" Of what is lowered in this pool, {count(lowered - given, 'GPU')} stay {Leftover.UNUSED}."
            )
        found.append(
            Proposal(
                proposal_id=ids[move.holder],
                pool=name,
                holder=move.holder,
                kind=move.kind,
                before=move.before,
                after=move.after,
                unit=pool.unit,
                made_ms=made_ms,
                expires_ms=expires_ms,
                because=because,
                evidence=evidence,
                from_free=move.from_free,
                funding=tuple(Funding(proposal_id=ids[source], gpus=n) for source, n in move.funded_by),
            )
        )
    return tuple(found)


def _of_cohort(move: Movement, base: int) -> str:
    """The sentence about the cohort's own quota, all of it."""
    moves = f"from {base + move.before:,} to {count(base + move.after, 'GPU')}"
    why = (
        "what lay there to borrow goes back to its holders"
        if move.kind.lowers
        else "what is cut and given to nobody is there to borrow"
    )
    return f"The cohort's own quota goes {moves}: {why}."


def _sentence(move: Movement, evidence: Evidence, week: str, rules: QuotaRules) -> str:
    """The sentence for the team."""
    moves = f"from {move.before:,} to {count(move.after, 'GPU')}"
    if move.kind is Kind.CUT:
        assert evidence.ratio is not None
        return (
            f"{move.holder} goes {moves}: its {rules.ratio} ratio was {float(evidence.ratio):.1%} in week"
            f" {week}, over the {float(rules.tolerated_ratio):.0%} that are tolerated."
        )
    if move.kind is Kind.RETURN:
        good = f"after {rules.good_periods} or more good periods"
        return f"{move.holder} goes {moves} of the {evidence.agreed} agreed, {good}."
    debt = f"{float(evidence.debt):,.1f} GPU-hours"
    if move.kind is Kind.GIFT:
        return (
            f"{move.holder} goes {moves}, above the {evidence.agreed} agreed: the cluster owed it {debt} when"
            f" week {week} ended."
        )
    return (
        f"{move.holder} goes {moves}: of its gift above the {evidence.agreed} agreed; it was owed {debt} when"
        f" week {week} ended."
    )


def moved_to(proposal: Proposal, state: ProposalState) -> Proposal:
    """
    The proposal in another state.

    Raises:
        UsageError: there is no way from its state to that one.
    """
    allowed = _NEXT.get(proposal.state, frozenset())
    if state not in allowed:
        ways = ", ".join(sorted(allowed)) or "none, it is final"
        message = (
            f"proposal {proposal.proposal_id} is {proposal.state}, not to become {state}: possible is {ways}"
        )
        raise UsageError(message)
    return replace(proposal, state=state)


def superseded(proposals: Sequence[Proposal], pool: str) -> tuple[Proposal, ...]:
    """The pool's open proposals, given up because a new period has its own."""
    still = (each for each in proposals if each.pool == pool and each.state in OPEN_STATES)
    return tuple(moved_to(each, ProposalState.SUPERSEDED) for each in still)


def waits_until_free(proposal: Proposal, used: int) -> bool:
    """
    Whether a lowering waits with `apply: when_free`: more is used than it would leave.

    Args:
        proposal: any.
        used: GPUs that the holder's quota covers now.
    """
    return proposal.kind.lowers and used > proposal.after


def as_far_as_funded(proposal: Proposal, others: Sequence[Proposal]) -> Proposal:
    """
    A raise as large as what was really freed for it; lowerings stay as they are.

    A rejected, waiting, refused or reverted cut frees nothing. An amount of 0 is left when nothing was.
    """
    if proposal.kind.lowers:
        return proposal
    applied = {each.proposal_id for each in others if each.state is ProposalState.APPLIED}
    funding = tuple(each for each in proposal.funding if each.proposal_id in applied)
    covered = proposal.from_free + sum(each.gpus for each in funding)
    if covered >= proposal.amount:
        return proposal
    return replace(proposal, after=proposal.before + down_to_units(covered, proposal.unit), funding=funding)


@dataclass(frozen=True, slots=True, kw_only=True)
class Live:
    """
    What a pool's quotas are on the cluster now, GPUs, and the sum of what was agreed.

    The cohort's spare stands under the empty name.
    """

    quotas: Mapping[str, int]
    agreed: int

    @property
    def free(self) -> int:
        """Agreed and live nowhere."""
        return self.agreed - sum(self.quotas.values())

    def after(self, change: Change) -> "Live":
        """The same with one change made."""
        return replace(self, quotas={**self.quotas, change.holder: change.after})


def change_to_apply(proposal: Proposal, others: Sequence[Proposal], live: Live) -> Change | None:
    """
    The write that applies an approved proposal now; None while nothing of it is funded.

    Raises:
        UsageError: it is not approved, or the live quota is not what it was made for (drifted).
    """
    if proposal.state is not ProposalState.APPROVED:
        message = f"proposal {proposal.proposal_id} is {proposal.state}: approve it before it is applied"
        raise UsageError(message)
    now = live.quotas.get(proposal.holder, 0)
    if now != proposal.before:
        raise UsageError(_drift(proposal, now, expected=proposal.before))
    funded = as_far_as_funded(proposal, others)
    after = funded.after
    if not funded.kind.lowers:
        after = funded.before + min(funded.amount, max(down_to_units(live.free, funded.unit), 0))
    if after == funded.before:
        return None
    return Change(proposal_id=funded.proposal_id, holder=funded.holder, before=funded.before, after=after)


def applied(proposal: Proposal, change: Change, others: Sequence[Proposal]) -> Proposal:
    """The proposal after its write: as large as the write was, and paid for by what was applied."""
    funded = as_far_as_funded(proposal, others)
    return moved_to(replace(funded, after=change.after), ProposalState.APPLIED)


def changes_to_revert(proposal: Proposal, others: Sequence[Proposal], live: Live) -> tuple[Change, ...]:
    """
    The writes that undo an applied proposal, in order: for a lowering its gifts first.

    Raises that this lowering paid for go whole; if that is not enough, so do later ones that were
    paid from free quota, newest first. All whose identity is in the changes become reverted.

    Raises:
        UsageError: it is not applied, a quota has moved since, or there would be more live than agreed.
    """
    if proposal.state is not ProposalState.APPLIED:
        message = f"proposal {proposal.proposal_id} is {proposal.state}: only an applied one can be reverted"
        raise UsageError(message)
    found: list[Change] = []
    if proposal.kind.lowers:
        for raise_, is_named in _resting_on(proposal, others):
            if is_named or live.free < proposal.amount:
                change = _inverse(raise_, live)
                found.append(change)
                live = live.after(change)
    last = _inverse(proposal, live)
    if last.after - last.before > max(live.free, 0) and last.after > last.before:
        message = (
            f"proposal {proposal.proposal_id}: giving back {proposal.amount} GPU with {live.free} free would"
            f" make more live than the {live.agreed} agreed; lower what was raised since, then revert"
        )
        raise UsageError(message)
    return (*found, last)


def _resting_on(proposal: Proposal, others: Sequence[Proposal]) -> Iterator[tuple[Proposal, bool]]:
    """Applied raises that a lowering paid for, then later ones paid from free quota, newest first."""
    raises = [
        each
        for each in others
        if each.state is ProposalState.APPLIED and each.pool == proposal.pool and not each.kind.lowers
    ]
    raises.sort(key=lambda each: (-each.made_ms, each.proposal_id))
    named = [each for each in raises if any(f.proposal_id == proposal.proposal_id for f in each.funding)]
    yield from ((each, True) for each in named)
    for each in raises:
        if each not in named and each.from_free and each.made_ms >= proposal.made_ms:
            yield each, False


def _inverse(proposal: Proposal, live: Live) -> Change:
    """The exact inverse, from `after` to `before`."""
    now = live.quotas.get(proposal.holder, 0)
    if now != proposal.after:
        raise UsageError(_drift(proposal, now, expected=proposal.after))
    return Change(
        proposal_id=proposal.proposal_id, holder=proposal.holder, before=proposal.after, after=proposal.before
    )


def _drift(proposal: Proposal, now: int, *, expected: int) -> str:
    whose = proposal.holder or "the cohort"
    return (
        f"proposal {proposal.proposal_id}: the quota of {whose} is {now} GPU, expected {expected}: something"
        f" moved it since; revert that first, or propose anew"
    )
