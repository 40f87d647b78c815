"""Who a workload belongs to: effective-dated rules for team, user, project and service class."""

import fnmatch
from collections.abc import Mapping
from dataclasses import dataclass, field

from domain.errors import PolicyError
from domain.workload import ServiceClass

UNASSIGNED = "unassigned"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """What the rules look at, as it was at one instant."""

    namespace: str
    namespace_labels: Mapping[str, str]
    labels: Mapping[str, str]
    queue: str
    priority_class: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """
    One rule: where every written condition holds, it gives a value; the first match wins.

    The value is `value`, or that of a label of the workload or of its namespace. A rule holds in
    `[valid_from_ms, valid_to_ms)`, so that history keeps the answer of its day. Patterns are
    shell globs.
    """

    value: str = ""
    from_label: str = ""
    from_namespace_label: str = ""
    namespace: str = "*"
    queue: str = "*"
    priority_class: str = "*"
    labels: Mapping[str, str] = field(default_factory=dict)
    namespace_labels: Mapping[str, str] = field(default_factory=dict)
    valid_from_ms: int | None = None
    valid_to_ms: int | None = None

    def __post_init__(self) -> None:
        ways = ("value", "from_label", "from_namespace_label")
        given = [way for way in ways if getattr(self, way)]
        if len(given) != 1:
            message = f"a rule with {' and '.join(given) or 'no value'}: expected one of {', '.join(ways)}"
            raise PolicyError(message)

    def answer(self, subject: Subject, at_ms: int) -> str | None:
        """The value for that subject at that instant; None where the rule does not hold."""
        if not (self.valid_from_ms or 0) <= at_ms < (self.valid_to_ms or at_ms + 1):
            return None
        patterns = [
            (self.namespace, subject.namespace),
            (self.queue, subject.queue),
            (self.priority_class, subject.priority_class),
            *((pattern, subject.labels.get(key, "")) for key, pattern in self.labels.items()),
            *(
                (pattern, subject.namespace_labels.get(key, ""))
                for key, pattern in self.namespace_labels.items()
            ),
        ]
        if not all(fnmatch.fnmatchcase(text, pattern) for pattern, text in patterns):
            return None
        if self.from_label:
            return subject.labels.get(self.from_label)
        if self.from_namespace_label:
            return subject.namespace_labels.get(self.from_namespace_label)
        return self.value


def _first(rules: tuple[Rule, ...], subject: Subject, at_ms: int) -> str | None:
    answers = (rule.answer(subject, at_ms) for rule in rules)
    return next((answer for answer in answers if answer), None)


_CLASS_RULES = tuple(
    Rule(priority_class=pattern, value=service_class)
    for pattern, service_class in (
        ("interactive*", ServiceClass.INTERACTIVE),
        ("best-effort*", ServiceClass.BEST_EFFORT),
        ("best_effort*", ServiceClass.BEST_EFFORT),
        ("batch*", ServiceClass.BATCH),
        ("training*", ServiceClass.BATCH),
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tenancy:
    """
    The rules of a site.

    Without team rules a team is its namespace; with them, what none of them matches is
    `unassigned`. `renamed` maps a team's earlier names to its present one; `renamed_ms` says of an
    earlier name until when it was borne, which decides what a statement of those days calls the team.

    Raises:
        PolicyError: two teams are called the same at the same time, or one has two names at once.
    """

    teams: tuple[Rule, ...] = ()
    users: tuple[Rule, ...] = ()
    projects: tuple[Rule, ...] = ()
    service_classes: tuple[Rule, ...] = _CLASS_RULES
    renamed: Mapping[str, str] = field(default_factory=dict)
    renamed_ms: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        teams = sorted(set(self.renamed.values()))
        for at_ms in set(self.renamed_ms.values()):
            named: dict[str, str] = {}
            for team in teams:
                called = self.called(team, at_ms)
                if named.setdefault(called, team) != team:
                    message = (
                        f"renamed: {named[called]!r} and {team!r} are both called {called!r} at one time;"
                        " expected one team of a name"
                    )
                    raise PolicyError(message)
        ends = [(self.renamed[name], at_ms) for name, at_ms in self.renamed_ms.items()]
        for team, at_ms in ends:
            if ends.count((team, at_ms)) > 1:
                message = f"renamed: two names of {team!r} end at one instant: expected one at a time"
                raise PolicyError(message)

    def present(self, name: str) -> str:
        """
        The present name of a team.

        A name that some team bears now stands for that team, also where another one bore it before:
        so present names stay what they are.
        """
        return name if name in set(self.renamed.values()) else self.renamed.get(name, name)

    def called(self, name: str, before_ms: int) -> str:
        """What the team of that name was called just before an instant."""
        team = self.present(name)
        earlier = [
            (until_ms, old)
            for old, until_ms in self.renamed_ms.items()
            if self.renamed[old] == team and before_ms <= until_ms
        ]
        return min(earlier)[1] if earlier else team

    def team(self, subject: Subject, at_ms: int) -> str:
        """The team at that instant, by its present name."""
        if not self.teams:
            return self._present_name(subject.namespace)
        return self._present_name(_first(self.teams, subject, at_ms) or UNASSIGNED)

    def user(self, subject: Subject, at_ms: int) -> str:
        """Who submitted, empty where no rule says."""
        return _first(self.users, subject, at_ms) or ""

    def project(self, subject: Subject, at_ms: int) -> str:
        """The project, empty where no rule says."""
        return _first(self.projects, subject, at_ms) or ""

    def service_class(self, subject: Subject, at_ms: int) -> ServiceClass:
        """What it was promised."""
        return ServiceClass(_first(self.service_classes, subject, at_ms) or ServiceClass.UNCLASSIFIED)

    def _present_name(self, name: str) -> str:
        return self.renamed.get(name, name)
