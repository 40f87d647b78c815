"""A made-up site: live quotas that proposals are applied to, in an order that people and clusters choose."""

import random
from dataclasses import dataclass, field
from fractions import Fraction

from analytics.quota.proposal import (
    OPEN_STATES,
    Change,
    Live,
    Proposal,
    ProposalState,
    applied,
    as_far_as_funded,
    change_to_apply,
    changes_to_revert,
    moved_to,
    propose,
    superseded,
)
from analytics.quota.rules import Holder, Leftover, Pool, good_periods, highest, lowest, step
from domain.errors import UsageError
from tests.analytics.quota.holders import WEEK


@dataclass(slots=True)
class Site:
    """One pool over many periods; every write is checked against sum, floor, step and cap."""

    chance: random.Random
    agreed: dict[str, int]
    unit: int
    leftover: Leftover
    live: dict[str, int] = field(default_factory=dict)
    good: dict[str, int] = field(default_factory=dict)
    books: dict[str, Proposal] = field(default_factory=dict)
    period: int = 0
    moved: dict[str, int] = field(default_factory=dict)
    writes: int = 0
    reverts: int = 0

    @classmethod
    def made_up(cls, seed: int) -> "Site":
        chance = random.Random(seed)
        unit = chance.choice([1, 1, 1, 4, 8])
        agreed = {f"team-{i}": chance.randint(1, 120 // unit) * unit + chance.choice([0, 0, unit // 2])
                  for i in range(chance.randint(2, 8))}  # fmt: skip
        site = cls(chance=chance, agreed=agreed, unit=unit, leftover=chance.choice(list(Leftover)))
        site.live = {**agreed, "": 0}
        site.good = dict.fromkeys(agreed, 0)
        return site

    @property
    def now(self) -> Live:
        return Live(quotas=dict(self.live), agreed=sum(self.agreed.values()))

    def holders(self, *, calm: bool) -> tuple[Holder, ...]:
        """What was measured this period; calm: nobody wastes and all is known."""
        return tuple(
            Holder(
                name=name, agreed=agreed, live=self.live[name], good_before=self.good[name],
                ratio=Fraction(self.chance.choice([0, 5, 10]) if calm else self.chance.choice(
                    [0, 0, 10, 14, 16, 20, 30, 50, 96]), 100),
                debt=Fraction(self.chance.choice([-100, 0, 0, 5, 80, 900])),
                gpu_hours=Fraction(1000 if calm else self.chance.choice([10, 500, 500, 500, 500])),
                coverage=Fraction(10 if calm else self.chance.choice([5, 10, 10, 10, 10]), 10),
            )
            for name, agreed in self.agreed.items()
        )  # fmt: skip

    def pass_a_period(self, *, calm: bool = False) -> None:
        """Propose, decide, apply in any order, and now and then revert something."""
        self.period += 1
        self.moved = dict.fromkeys(self.agreed, 0)
        self._keep(superseded(list(self.books.values()), "pool"))
        holders = self.holders(calm=calm)
        pool = Pool(holders=holders, unit=self.unit, leftover=self.leftover, spare=self.live[""])
        made_ms = self.period * WEEK
        new = propose(pool, name="pool", week="2026-W10", made_ms=made_ms, expires_ms=made_ms + WEEK)
        self._keep(new)
        self.good = {holder.name: good_periods(holder) for holder in holders}
        waiting = (
            set() if calm else {p.proposal_id for p in new if p.kind.lowers and self.chance.random() < 0.2}
        )
        for each in new:
            rejected = not calm and self.chance.random() < 0.15
            self._keep([moved_to(each, ProposalState.REJECTED if rejected else ProposalState.APPROVED)])
        for _ in range(3):
            todo = [p.proposal_id for p in new if self.books[p.proposal_id].state is ProposalState.APPROVED]
            if not calm:
                self.chance.shuffle(todo)
            for proposal_id in todo:
                if proposal_id not in waiting:
                    self._try_to_apply(self.books[proposal_id], may_refuse=not calm)
        if not calm and self.chance.random() < 0.4:
            self._try_to_revert()

    def _try_to_apply(self, proposal: Proposal, *, may_refuse: bool) -> None:
        others = list(self.books.values())
        # People wait for all that pays for a raise, or take what there is.
        partly = as_far_as_funded(proposal, others).amount < proposal.amount
        if partly and self.chance.random() < 0.5:
            return
        try:
            change = change_to_apply(proposal, others, self.now)
        except UsageError:
            self._keep([moved_to(proposal, ProposalState.DRIFTED)])
            return
        if change is None:
            return
        if may_refuse and self.chance.random() < 0.1:
            self._keep([moved_to(proposal, ProposalState.REFUSED)])
            return
        self.write(change)
        self._keep([applied(proposal, change, others)])

    def _try_to_revert(self) -> None:
        done = [each for each in self.books.values() if each.state is ProposalState.APPLIED]
        recent = [each for each in done if each.made_ms >= (self.period - 3) * WEEK]
        if not recent:
            return
        before = dict(self.live)
        proposal = self.chance.choice(recent)
        try:
            changes = changes_to_revert(proposal, done, self.now)
        except UsageError:
            assert self.live == before
            return
        self.reverts += 1
        for change in changes:
            self.write(change, is_revert=True)
            self._keep([moved_to(self.books[change.proposal_id], ProposalState.REVERTED)])
        assert all(
            self.books[funding.proposal_id].state is ProposalState.APPLIED
            for each in self.books.values()
            if each.state is ProposalState.APPLIED
            for funding in each.funding
        ), "a gift outlived its cut"

    def write(self, change: Change, *, is_revert: bool = False) -> None:
        """The cluster takes a change; this is where the laws are looked at."""
        assert self.live[change.holder] == change.before
        self.live[change.holder] = change.after
        self.writes += 1
        assert sum(self.live.values()) <= sum(self.agreed.values()), "sum"
        assert min(self.live.values()) >= 0
        if not change.holder:
            return
        agreed = self.agreed[change.holder]
        is_now = Holder(name=change.holder, agreed=agreed, live=change.after, ratio=None, debt=Fraction(0),
                        gpu_hours=Fraction(0), coverage=Fraction(0))  # fmt: skip
        assert lowest(is_now, self.unit) <= change.after or change.after >= agreed, "floor"
        assert change.after <= highest(is_now), "cap"
        assert abs(change.after - change.before) <= step(is_now, self.unit), "step"
        if not is_revert:
            self.moved[change.holder] += abs(change.after - change.before)
            assert self.moved[change.holder] <= step(is_now, self.unit), "step of a period"

    def _keep(self, proposals: object) -> None:
        for each in proposals:  # type: ignore[attr-defined]
            self.books[each.proposal_id] = each
        stale = [key for key, each in self.books.items() if each.made_ms < (self.period - 4) * WEEK]
        for key in stale:
            if self.books[key].state not in OPEN_STATES:
                del self.books[key]
