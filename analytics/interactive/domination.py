"""Domination: one user who holds most of the interactive pool."""

from collections.abc import Sequence
from dataclasses import dataclass

from analytics.interactive.reserve import Room, pool_now
from domain.metric import Row
from domain.policy import Policy
from domain.workload import ServiceClass


@dataclass(frozen=True, slots=True, kw_only=True)
class Domination:
    """
    The interactive pool and who holds it, micro-GPU.

    `pool` is the reserve, or what interactive work holds where that is more. Work without a known
    user belongs to nobody: `unknown` says whether there is any.
    """

    pool: float
    reserve: float
    held: dict[str, int]
    waiting: frozenset[str]
    unknown: bool

    @property
    def largest(self) -> float:
        """The largest user's part of the pool; 0 where nobody holds any."""
        return max(self.held.values(), default=0) / self.pool if self.pool else 0.0

    def dominating(self, policy: Policy) -> set[str]:
        """Users above their part, while another one waits or they hold more than half of the reserve."""
        return {
            user
            for user, held in self.held.items()
            if held > policy.domination_ratio * self.pool
            and (self.waiting - {user} or held > self.reserve / 2)
        }


def domination(rows: Sequence[Row], policy: Policy) -> Domination:
    """Who holds the interactive pool of one pool of GPUs, from its rows of the instant."""
    room: Room = pool_now([row for row in rows if row["what"] != "waiting"], policy)
    held: dict[str, int] = {}
    unknown = False
    for row in rows:
        if row["what"] == "held" and row["service_class"] == ServiceClass.INTERACTIVE:
            user, micro = str(row["user_name"]), row["micro_gpus"]
            unknown = unknown or not user or micro is None
            if user and micro is not None:
                held[user] = held.get(user, 0) + int(str(micro))
    reserve = policy.interactive_reserve_ratio * room.capacity
    return Domination(
        pool=max(reserve, room.interactive),
        reserve=reserve,
        held=held,
        waiting=frozenset(str(row["user_name"]) for row in rows if row["what"] == "waiting"),
        unknown=unknown,
    )
