"""Kueue's side: who has quota reserved, who may have it, who must make room."""

from dataclasses import dataclass, field

from sample_data.lives import Life
from sample_data.site import FLAVORS, PREEMPTING_TEAM, PRIORITIES, TEAMS

_WRAPPER = "couldn't assign flavors to pod set main: insufficient "


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Whether a workload gets quota; else Kueue's message, and whom it would throw out."""

    fits: bool
    message: str = ""
    victims: tuple[Life, ...] = ()


@dataclass(slots=True)
class Quotas:
    """Reserved devices by queue and flavor, within nominal quotas and the cohort's sum."""

    reserved: dict[tuple[str, str], int] = field(default_factory=dict)
    holders: list[Life] = field(default_factory=list)

    def reserve(self, life: Life) -> None:
        """Book a workload's devices."""
        key = (life.request.team, life.request.flavor)
        self.reserved[key] = self.reserved.get(key, 0) + life.request.total
        self.holders.append(life)

    def release(self, life: Life) -> None:
        """Give them back."""
        if life in self.holders:
            self.reserved[(life.request.team, life.request.flavor)] -= life.request.total
            self.holders.remove(life)

    def verdict(self, life: Life) -> Verdict:
        """What Kueue decides about a workload now."""
        request = life.request
        most = self._most(life)
        wanted = f"quota for {request.resource} in flavor {request.flavor}, "
        if request.total > most:
            text = (
                f"previously considered podsets requests (0) + current podset request ({request.total})"
                f" > maximum capacity ({most})"
            )
            return Verdict(fits=False, message=f"{_WRAPPER}{wanted}{text}")
        missing = self._missing(life)
        if missing <= 0:
            return Verdict(fits=True)
        message = f"{_WRAPPER}unused {wanted}{missing} more needed"
        victims = self._victims(life, missing)
        if victims:
            message += f". Pending the preemption of {len(victims)} workload(s)"
        return Verdict(fits=False, message=message, victims=victims)

    def _most(self, life: Life) -> int:
        flavor = FLAVORS[life.request.flavor]
        return flavor.quota[life.request.team] if flavor.borrowing_limit == 0 else sum(flavor.quota.values())

    def _missing(self, life: Life) -> int:
        request = life.request
        flavor = FLAVORS[request.flavor]
        in_cohort = sum(self.reserved.get((team, request.flavor), 0) for team in TEAMS)
        missing = in_cohort + request.total - sum(flavor.quota.values())
        if flavor.borrowing_limit is not None:
            allowed = flavor.quota[request.team] + flavor.borrowing_limit
            own = self.reserved.get((request.team, request.flavor), 0)
            missing = max(missing, own + request.total - allowed)
        return missing

    def _victims(self, life: Life, missing: int) -> tuple[Life, ...]:
        """Lower classes of the same queue and flavor, the lowest and newest first."""
        if life.request.team != PREEMPTING_TEAM:
            return ()
        mine = PRIORITIES[life.request.priority_class]
        candidates = [
            holder
            for holder in self.holders
            if holder.request.team == life.request.team
            and holder.request.flavor == life.request.flavor
            and not holder.draining
            and PRIORITIES[holder.request.priority_class] < mine
        ]
        candidates.sort(
            key=lambda holder: (PRIORITIES[holder.request.priority_class], -(holder.admitted_ms or 0))
        )
        victims: list[Life] = []
        for candidate in candidates:
            if missing <= 0:
                break
            victims.append(candidate)
            missing -= candidate.request.total
        return tuple(victims) if missing <= 0 else ()
