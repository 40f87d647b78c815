"""
Kueue's arithmetic of one flavor and resource: what queues and cohorts have, use, keep and may take.

Source: Kueue `pkg/cache/scheduler/resource_node.go`; KEP-79 (hierarchical cohorts), KEP-1224 (lending
limits). Amounts are whole and of one unit, whichever the caller has.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueQuota:
    """
    What a ClusterQueue, or with `is_cohort` a Cohort, has of one flavor and resource.

    A limit of None is none. `used` is what its workloads have reserved; a cohort has none itself.
    """

    name: str
    parent: str
    nominal: int
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    used: int = 0
    is_cohort: bool = False


class Holder:
    """A queue or cohort in its tree. The limits of a holder without a parent count nothing."""

    __slots__ = ("_available", "_potential", "below", "kept", "parent", "quota", "subtree", "used")

    def __init__(self, quota: QueueQuota) -> None:
        self.quota: Final = quota
        self.parent: Holder | None = None
        self.below: list[Holder] = []
        self.subtree = 0
        self.kept = 0
        self.used = 0
        self._available: int | None = None
        self._potential: int | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self.quota.name

    @property
    def own_left(self) -> int:
        """What it keeps from its parent and nobody below it uses."""
        return max(0, self.kept - self.used)

    @property
    def borrowing_limit(self) -> int | None:
        """What it may borrow of its parent; None where nothing limits it, or there is no parent."""
        return self.quota.borrowing_limit if self.parent else None

    @property
    def unused(self) -> int:
        """What is left of the quota below it; negative where more is used."""
        return self.subtree - self.used

    @property
    def available(self) -> int:
        """What a workload could take here now; negative where too much is used already."""
        if self._available is None:
            self._available = self._available_now()
        return self._available

    def _available_now(self) -> int:
        if self.parent is None:
            return self.unused
        above = self.parent.available
        limit = self.borrowing_limit
        if limit is not None:
            lent = self.subtree - self.kept - max(0, self.used - self.kept)
            above = min(above, lent + limit)
        return self.own_left + above

    @property
    def potential(self) -> int:
        """What it could have if nobody used anything."""
        if self._potential is None:
            most = self.subtree
            if self.parent:
                most = self.kept + self.parent.potential
                limit = self.borrowing_limit
                most = most if limit is None else min(most, self.subtree + limit)
            self._potential = most
        return self._potential

    @property
    def height(self) -> int:
        """How many levels of cohorts and queues are below it."""
        return 1 + max(child.height for child in self.below) if self.below else 0

    def line(self) -> list["Holder"]:
        """It, its cohort, and those above."""
        return [self, *(self.parent.line() if self.parent else [])]

    def take(self, amount: int) -> None:
        """Use more, or less; its cohort is used for what it does not have of its own."""
        before = max(0, self.used - self.kept)
        self.used += amount
        more = max(0, self.used - self.kept) - before
        if self.parent and more:
            self.parent.take(more)
        else:
            self.forget()

    def forget(self) -> None:
        """Count anew what is available here and below, which depends on what is used here."""
        self._available = None
        for child in self.below:
            child.forget()


class QuotaTree:
    """
    The queues and cohorts of a cluster, for one flavor and resource.

    A cohort that only its members name has no quota of its own. A circle of cohorts, which Kueue refuses, is
    cut where it closes.
    """

    def __init__(self, quotas: Iterable[QueueQuota]) -> None:
        known = list(quotas)
        self.queues: dict[str, Holder] = {one.name: Holder(one) for one in known if not one.is_cohort}
        self.cohorts: dict[str, Holder] = {one.name: Holder(one) for one in known if one.is_cohort}
        for one in known:
            if one.parent and one.parent not in self.cohorts:
                unwritten = QueueQuota(name=one.parent, parent="", nominal=0, is_cohort=True)
                self.cohorts[one.parent] = Holder(unwritten)
        for holder in [*self.queues.values(), *self.cohorts.values()]:
            parent = self.cohorts.get(holder.quota.parent)
            if parent is not None and holder not in parent.line():
                holder.parent = parent
                parent.below.append(holder)
        for holder in [*self.queues.values(), *self.cohorts.values()]:
            if holder.parent is None:
                _fill(holder)


def _fill(holder: Holder) -> None:
    """Sums a tree up from its leaves: a parent has what its children do not keep, and is used above that."""
    holder.subtree = holder.quota.nominal
    holder.used = holder.quota.used
    for child in holder.below:
        _fill(child)
        holder.subtree += child.subtree - child.kept
        holder.used += max(0, child.used - child.kept)
    limit = holder.quota.lending_limit if holder.parent else None
    holder.kept = 0 if limit is None else max(0, holder.subtree - limit)
