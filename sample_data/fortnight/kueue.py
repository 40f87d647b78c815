"""
Kueue's quotas in a tree of cohorts: what a queue could still get, and whom it may throw out.

Source: the documentation of Kueue's cohorts (nominal quota, borrowing and lending limits, reclaim).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sample_data.fortnight.lives import Life
from sample_data.fortnight.site import PRIORITIES, ROOT, Cohort, Kind, Limit, Queue, Reclaim, Site

_WRAPPER = "couldn't assign flavors to pod set main: insufficient "
_ROOT_NAME = f"cohort {ROOT}"  # a queue and a cohort may be called alike


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a workload gets quota; else Kueue's message, and whom it would throw out, and why."""

    fits: bool
    message: str = ""
    victims: tuple[Life, ...] = ()
    reclaims: bool = False


@dataclass(slots=True)
class Quotas:
    """Reserved devices by queue and kind, and who reserved them."""

    site: Site
    holders: dict[str, Life] = field(default_factory=dict)
    used: dict[tuple[str, Kind], int] = field(default_factory=dict)
    limits: dict[tuple[str, Kind], Limit] = field(default_factory=dict)
    _sums: dict[tuple[str, Kind], int] = field(default_factory=dict)
    _below: dict[str, list[str]] = field(default_factory=dict)
    _above: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for cohort in self.site.cohorts:
            self._add(cohort, f"cohort {cohort.parent}" if cohort.parent else "")
        for queue in self.site.queues:
            self._add(queue, f"cohort {queue.cohort}")

    def _add(self, holder: Cohort | Queue, above: str) -> None:
        name = f"cohort {holder.name}" if isinstance(holder, Cohort) else holder.name
        self._above[name] = above
        self._below.setdefault(above, []).append(name)
        self.limits |= {(name, kind): limit for kind, limit in holder.quotas.items()}

    def edit(self, queue: str, kind: Kind, limit: Limit) -> None:
        """A person writes another quota."""
        self.limits[queue, kind] = limit
        self._sums.clear()

    def reserve(self, life: Life) -> None:
        """Book a workload's devices."""
        key = (life.queue, life.request.kind)
        self.used[key] = self.used.get(key, 0) + life.request.total
        self.holders[life.uid] = life

    def release(self, life: Life) -> None:
        """Give them back."""
        if self.holders.pop(life.uid, None) is not None:
            self.used[life.queue, life.request.kind] -= life.request.total

    def verdict(self, life: Life) -> Verdict:
        """What Kueue decides about a workload now."""
        request = life.request
        most = self.most(life)
        wanted = f"quota for {request.resource} in flavor {request.flavor}, "
        if request.total > most:
            text = (
                f"previously considered podsets requests (0) + current podset request ({request.total})"
                f" > maximum capacity ({most})"
            )
            return Verdict(fits=False, message=f"{_WRAPPER}{wanted}{text}")
        missing = request.total - self.available(life.queue, request.kind)
        if missing <= 0:
            return Verdict(fits=True)
        message = f"{_WRAPPER}unused {wanted}{missing} more needed"
        victims, reclaims = self._victims(life)
        if victims:
            message += f". Pending the preemption of {len(victims)} workload(s)"
        return Verdict(fits=False, message=message, victims=victims, reclaims=reclaims)

    def most(self, life: Life) -> int:
        """What its queue could ever get: all of the cohort, within what it may borrow."""
        everything = self._subtree(_ROOT_NAME, life.request.kind)
        limit = self.limits[life.queue, life.request.kind]
        return everything if limit.borrowing is None else min(everything, limit.nominal + limit.borrowing)

    def would_borrow(self, life: Life) -> bool:
        """Whether the queue's own quota is too small for the workload now."""
        key = (life.queue, life.request.kind)
        return self.used.get(key, 0) + life.request.total > self.limits[key].nominal

    def available(self, name: str, kind: Kind) -> int:
        """Devices that a holder can still use, from its own quota and what it may borrow."""
        quota, usage = self._subtree(name, kind), self._usage(name, kind)
        above = self._above[name]
        if not above:
            return quota - usage
        kept = self._kept(name, kind)
        from_above = self.available(above, kind)
        limit = self.limits.get((name, kind))
        if limit is not None and limit.borrowing is not None:
            lent = quota - kept
            from_above = min(from_above, lent - max(0, usage - kept) + limit.borrowing)
        return max(0, kept - usage) + from_above

    def _subtree(self, name: str, kind: Kind) -> int:
        """Its own quota and what those below would lend."""
        if (name, kind) not in self._sums:
            own = self.limits[name, kind].nominal if (name, kind) in self.limits else 0
            below = self._below.get(name, ())
            self._sums[name, kind] = own + sum(
                self._subtree(child, kind) - self._kept(child, kind) for child in below
            )
        return self._sums[name, kind]

    def _kept(self, name: str, kind: Kind) -> int:
        """The part of its quota that it lends to nobody."""
        limit = self.limits.get((name, kind))
        if limit is None or limit.lending is None:
            return 0
        return max(0, self._subtree(name, kind) - limit.lending)

    def _usage(self, name: str, kind: Kind) -> int:
        below = self._below.get(name)
        if below is None:
            return self.used.get((name, kind), 0)
        return sum(max(0, self._usage(child, kind) - self._kept(child, kind)) for child in below)

    def _borrows(self, name: str, kind: Kind) -> bool:
        return self._usage(name, kind) > self._subtree(name, kind)

    def _victims(self, life: Life) -> tuple[tuple[Life, ...], bool]:
        """Who must go, the lowest and newest first; and whether they are of other queues."""
        queue = next(one for one in self.site.queues if one.name == life.queue)
        kind, mine = life.request.kind, PRIORITIES[life.request.priority_class]
        within = self.used.get((queue.name, kind), 0) + life.request.total
        nominal = self.limits[queue.name, kind].nominal
        held = [one for one in self.holders.values() if one.request.kind == kind and one.may_be_evicted]
        if queue.preempts_own:
            own = [
                one
                for one in held
                if one.queue == queue.name and PRIORITIES[one.request.priority_class] < mine
            ]
            found = self._fewest(life, own, lambda _: True)
            # Not to borrow: those thrown out would come back first.
            if found and within - sum(one.request.total for one in found) <= nominal:
                return found, False
        if queue.reclaims is not Reclaim.NEVER and within <= nominal:
            others = [
                one
                for one in held
                if one.queue != queue.name
                and (queue.reclaims is Reclaim.ANY or PRIORITIES[one.request.priority_class] < mine)
            ]
            return self._fewest(life, others, lambda one: self._lends_to(queue, one)), True
        return (), False

    def _lends_to(self, queue: Queue, other: Life) -> bool:
        """Whether the other one stands on borrowed quota, in each cohort up to a common one."""
        name, kind = other.queue, other.request.kind
        if not self._borrows(name, kind):
            return False
        cohort = self._above[name]
        return cohort == f"cohort {queue.cohort}" or self._borrows(cohort, kind)

    def _fewest(
        self, life: Life, candidates: Sequence[Life], may_go: Callable[[Life], bool]
    ) -> tuple[Life, ...]:
        order = sorted(
            candidates, key=lambda one: (PRIORITIES[one.request.priority_class], -(one.admitted_ms or 0))
        )
        kind, wanted = life.request.kind, life.request.total
        gone: list[Life] = []
        for one in order:
            if may_go(one):
                gone.append(one)
                self.used[one.queue, kind] -= one.request.total
            if self.available(life.queue, kind) >= wanted:
                break
        fits = self.available(life.queue, kind) >= wanted
        # Who need not go after all comes back, the first chosen first.
        for one in list(gone) if fits else ():
            self.used[one.queue, kind] += one.request.total
            if self.available(life.queue, kind) >= wanted:
                gone.remove(one)
            else:
                self.used[one.queue, kind] -= one.request.total
        for one in gone:
            self.used[one.queue, kind] += one.request.total
        return tuple(gone) if fits else ()
