"""What moves in a period, and what pays for it: rules 1 to 5 and 7 over whole units."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction

from analytics.fairness.debt import most_owed_first
from analytics.quota.rules import (
    DEFAULT_RULES,
    Holder,
    Leftover,
    Pool,
    QuotaRules,
    down_to_units,
    good_periods,
    highest,
    is_measured,
    lowest,
    penalty,
    step,
)


class Kind(StrEnum):
    """Why a quota moves. The first three lower something, the others raise something."""

    CUT = "cut"
    WITHDRAWAL = "withdrawal"
    SPARE_DOWN = "spare_down"
    RETURN = "return"
    GIFT = "gift"
    SPARE_UP = "spare_up"

    @property
    def lowers(self) -> bool:
        """Whether a live quota gets smaller."""
        return self in {Kind.CUT, Kind.WITHDRAWAL, Kind.SPARE_DOWN}


COHORT = ""  # the name under which the cohort's own quota moves


@dataclass(frozen=True, slots=True, kw_only=True)
class Movement:
    """
    A quota moves from `before` to `after`, GPUs.

    `funded_by` names for a raise how much of it comes from which holder's cut of the same period;
    `from_free` is the rest, which is live nowhere already.
    """

    holder: str
    kind: Kind
    before: int
    after: int
    funded_by: tuple[tuple[str, int], ...] = ()
    from_free: int = 0

    @property
    def amount(self) -> int:
        """GPUs that move, always positive."""
        return abs(self.after - self.before)


@dataclass(slots=True)
class _Draft:
    """Amounts by holder while the rules are applied in order."""

    pool: Pool
    rules: QuotaRules
    cuts: dict[str, int] = field(default_factory=dict)
    withdrawals: dict[str, int] = field(default_factory=dict)
    returns: dict[str, int] = field(default_factory=dict)
    gifts: dict[str, int] = field(default_factory=dict)

    @property
    def available(self) -> int:
        """Agreed quota that nobody has after what was decided so far; the cohort's spare is in it."""
        lowered = sum(self.cuts.values()) + sum(self.withdrawals.values())
        raised = sum(self.returns.values()) + sum(self.gifts.values())
        return self.pool.free + self.pool.spare + lowered - raised

    def step(self, holder: Holder) -> int:
        return step(holder, self.pool.unit, self.rules)


def movements(pool: Pool, rules: QuotaRules = DEFAULT_RULES) -> tuple[Movement, ...]:
    """
    What is proposed for the next period: lowerings first, then the raises that they pay for.

    A holder moves at most once, by at most its step. Nothing moves for a holder of which too
    little was measured.

    Source: definitions, section 8, rules 1 to 5 and 7.
    """
    draft = _Draft(pool=pool, rules=rules)
    known = sorted((h for h in pool.holders if is_measured(h, rules)), key=lambda holder: holder.name)
    _cut(draft, known)
    _withdraw_unowed(draft, known)
    _return(draft, known)
    _give(draft, known)
    if pool.leftover is Leftover.NOT_CUT:
        _cut_no_more_than_given(draft, known)
    return tuple(_paid(draft))


def _cut(draft: _Draft, known: list[Holder]) -> None:
    """Rule 2: down towards agreed less penalty; a smaller penalty than before moves nothing up."""
    unit = draft.pool.unit
    for holder in known:
        due = penalty(holder, draft.rules)
        if due > 0:
            target = max(holder.agreed - due, Fraction(lowest(holder, unit, draft.rules)))
            _note(
                draft.cuts,
                holder,
                down_to_units(min(holder.live - target, Fraction(draft.step(holder))), unit),
            )


def _withdraw_unowed(draft: _Draft, known: list[Holder]) -> None:
    """Rule 4, first half: what lies above the agreed quota goes, where no debt is left."""
    for holder in known:
        if penalty(holder, draft.rules) == 0 and holder.debt <= 0:
            _note(draft.withdrawals, holder, _gift_to_take(draft, holder))


def _gift_to_take(draft: _Draft, holder: Holder) -> int:
    return down_to_units(min(holder.live - holder.agreed, draft.step(holder)), draft.pool.unit)


def _return(draft: _Draft, known: list[Holder]) -> None:
    """Rules 3 and 4: up again after good periods, paid by gifts of those least owed if need be."""
    unit = draft.pool.unit
    wanted: dict[str, int] = {}
    for holder in known:
        missing = holder.agreed - holder.live
        if missing > 0 and good_periods(holder, draft.rules) >= draft.rules.good_periods:
            half = max(Fraction(unit), Fraction(missing, 2))
            up = min(half, Fraction(draft.step(holder)), Fraction(missing))
            _note(wanted, holder, down_to_units(up, unit))
    owed = [h for h in known if h.debt > 0 and h.live > h.agreed and penalty(h, draft.rules) == 0]
    for holder in _least_owed_first(owed):
        uncovered = sum(wanted.values()) - max(draft.available, 0)
        if uncovered > 0:
            needed = -down_to_units(-uncovered, unit)
            _note(draft.withdrawals, holder, min(needed, _gift_to_take(draft, holder)))
    draft.returns = _shrunk(wanted, down_to_units(max(draft.available, 0), unit), unit)


def _shrunk(wanted: dict[str, int], available: int, unit: int) -> dict[str, int]:
    """What is covered of what is wanted: unit by unit to who got least so far, in order of name."""
    given = dict.fromkeys(wanted, 0)
    while available >= unit:
        lacking = [name for name in wanted if given[name] < wanted[name]]
        if not lacking:
            break
        given[min(lacking, key=lambda name: (given[name], name))] += unit
        available -= unit
    return {name: amount for name, amount in given.items() if amount}


def _give(draft: _Draft, known: list[Holder]) -> None:
    """Rule 5: what is left goes to those with debt in proportion to it, within step and cap."""
    room: dict[str, Fraction] = {}
    debts: dict[str, Fraction] = {}
    for holder in known:
        entitled = holder.debt > 0 and penalty(holder, draft.rules) == 0 and holder.live >= holder.agreed
        if entitled and holder.name not in draft.withdrawals:
            space = highest(holder, draft.rules) - holder.live
            room[holder.name] = max(Fraction(0), min(space, Fraction(draft.step(holder))))
            debts[holder.name] = holder.debt
    shares = _in_proportion(Fraction(max(draft.available, 0)), debts, room)
    draft.gifts = {
        name: amount for name, share in shares.items() if (amount := down_to_units(share, draft.pool.unit))
    }


def _in_proportion(
    whole: Fraction, weights: dict[str, Fraction], caps: dict[str, Fraction]
) -> dict[str, Fraction]:
    """Shares in proportion to positive weights; what a cap leaves over goes to the others."""
    shares: dict[str, Fraction] = {}
    open_names = set(weights)
    while open_names:
        total = sum((weights[name] for name in open_names), Fraction(0))
        full = {name for name in open_names if whole * weights[name] >= caps[name] * total}
        if not full:
            return shares | {name: whole * weights[name] / total for name in open_names}
        shares |= {name: caps[name] for name in full}
        whole -= sum((caps[name] for name in full), Fraction(0))
        open_names -= full
    return shares


def _cut_no_more_than_given(draft: _Draft, known: list[Holder]) -> None:
    """
    Rule 7 without a writable cohort: a cut is proposed only as large as its gifts.

    Gifts are taken back first, from those least owed; then the worst ratio is cut first.
    """
    needed = sum(draft.returns.values()) + sum(draft.gifts.values())
    needed -= max(draft.pool.free + draft.pool.spare, 0)
    least_owed = _least_owed_first(known)
    worst = sorted(known, key=lambda holder: (-(holder.ratio or Fraction(0)), holder.name))
    for lowered, order in ((draft.withdrawals, least_owed), (draft.cuts, worst)):
        for holder in [each for each in order if each.name in lowered]:
            amount = max(min(lowered.pop(holder.name), -down_to_units(-needed, draft.pool.unit)), 0)
            _note(lowered, holder, amount)
            needed -= amount


def _least_owed_first(holders: Sequence[Holder]) -> list[Holder]:
    """The other end of the order in which the cluster owes."""
    by_name = {holder.name: holder for holder in holders}
    order = most_owed_first({name: holder.debt for name, holder in by_name.items()})
    return [by_name[name] for name in reversed(order)]


def _note(amounts: dict[str, int], holder: Holder, amount: int) -> None:
    if amount > 0:
        amounts[holder.name] = amount


def _paid(draft: _Draft) -> list[Movement]:
    """The movements, each raise with what pays for it; what is free already is used first."""
    live = {holder.name: holder.live for holder in draft.pool.holders} | {COHORT: draft.pool.spare}
    raises = [(Kind.RETURN, n, a) for n, a in draft.returns.items()]
    raises += [(Kind.GIFT, n, a) for n, a in draft.gifts.items()]
    lowerings = [(Kind.WITHDRAWAL, n, a) for n, a in draft.withdrawals.items()]
    lowerings += [(Kind.CUT, n, a) for n, a in draft.cuts.items()]
    spare = max(draft.available, 0) if draft.pool.leftover is Leftover.COHORT else 0
    if spare > draft.pool.spare:
        raises.append((Kind.SPARE_UP, COHORT, spare - draft.pool.spare))
    elif spare < draft.pool.spare:
        lowerings.insert(0, (Kind.SPARE_DOWN, COHORT, draft.pool.spare - spare))
    found = [Movement(holder=n, kind=k, before=live[n], after=live[n] - a) for k, n, a in lowerings]
    free, sources = max(draft.pool.free, 0), {name: amount for _, name, amount in lowerings}
    for kind, name, amount in raises:
        from_free = min(free, amount)
        free -= from_free
        rest, funded = amount - from_free, []
        for source in list(sources):
            part = min(sources[source], rest)
            if part:
                funded.append((source, part))
                sources[source] -= part
                rest -= part
        found.append(
            Movement(
                holder=name,
                kind=kind,
                before=live[name],
                after=live[name] + amount,
                funded_by=tuple(funded),
                from_free=from_free,
            )
        )
    return found
