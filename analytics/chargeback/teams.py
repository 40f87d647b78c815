"""Which team a stay belongs to on its day, and what that team is called when the period ends."""

from collections.abc import Iterable
from dataclasses import dataclass

from analytics.chargeback.usage import Owner
from domain.errors import PolicyError
from domain.tenant import Subject, Tenancy


@dataclass(frozen=True, slots=True, kw_only=True)
class TeamName:
    """From `from_ms` on, the team that the rules call `team` is called `name`."""

    team: str
    name: str
    from_ms: int


@dataclass(frozen=True, slots=True)
class TeamNames:
    """
    What teams are called over time.

    A renamed team is one team: its rows carry the name that it had at the end of the period, so
    that a later rename does not change an earlier statement.

    Raises:
        PolicyError: two teams are given the same name at the same time.
    """

    names: tuple[TeamName, ...] = ()

    def __post_init__(self) -> None:
        for at_ms in {name.from_ms for name in self.names}:
            teams: dict[str, str] = {}
            for team in sorted({name.team for name in self.names}):
                called = self.name(team, at_ms + 1)
                if teams.setdefault(called, team) != team:
                    message = f"team names: {teams[called]!r} and {team!r} are both called {called!r}"
                    raise PolicyError(message)

    def name(self, team: str, before_ms: int) -> str:
        """The team's name just before an instant; its own word where no name is given."""
        known = [name for name in self.names if name.team == team and name.from_ms < before_ms]
        return max(known, key=lambda name: name.from_ms).name if known else team


def owners(tenancy: Tenancy, seen: Iterable[tuple[int, Subject]]) -> tuple[Owner, ...]:
    """
    Who a stay belongs to over time: one owner per change, by the rules of each instant.

    Args:
        seen: the workload as the rules look at it, from which instant on, in time order; at least
            one. A namespace that is deleted keeps the rules of the days on which it was used.
    """
    history = list(seen)
    rules = (*tenancy.teams, *tenancy.users, *tenancy.projects)
    first_ms = history[0][0]
    dates = {at for rule in rules for at in (rule.valid_from_ms, rule.valid_to_ms) if at is not None}
    found: list[Owner] = []
    for at_ms in sorted({at for at, _ in history} | {at for at in dates if at > first_ms}):
        subject = [subject for from_ms, subject in history if from_ms <= at_ms][-1]
        owner = Owner(
            team=tenancy.team(subject, at_ms),
            project=tenancy.project(subject, at_ms),
            user=tenancy.user(subject, at_ms),
            queue=subject.queue,
            from_ms=at_ms,
        )
        before = found[-1] if found else None
        if before is None or (before.team, before.project, before.user, before.queue) != (
            owner.team, owner.project, owner.user, owner.queue,
        ):  # fmt: skip
            found.append(owner)
    return tuple(found)
