"""Who is asking: their role and their teams."""

from dataclasses import dataclass
from enum import StrEnum


class Role(StrEnum):
    """What a viewer may see. Every role but the researcher's sees all teams."""

    RESEARCHER = "researcher"
    ADMIN = "admin"
    FINANCE = "finance"
    OPERATOR = "operator"


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """Somebody who asks. `teams` are the viewer's own; they matter for a researcher only."""

    name: str
    role: Role
    teams: frozenset[str] = frozenset()

    @property
    def sees_all_teams(self) -> bool:
        """Whether nothing is hidden."""
        return self.role is not Role.RESEARCHER

    def sees(self, team: str) -> bool:
        """Whether that team's work is shown in full."""
        return self.sees_all_teams or team in self.teams
