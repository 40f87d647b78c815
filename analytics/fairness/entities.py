"""
Who shares what: a pool of GPUs, the holders of quota in it, and the cohorts that they stand in.

Quantities are whole micro-GPU, weights thousandths as in `domain.objects`.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from domain.errors import DataError

# A function in C, for a sweep asks it of all entities of a pool at each change.
_NAME: Final = attrgetter("name")


def _refuse_negative(thing: "Entity | CohortTree | Pool", kind: str, name: str) -> None:
    for name_of in thing.__slots__:
        value = getattr(thing, name_of)
        if isinstance(value, int) and value < 0:
            message = (
                f"{kind} {name!r}, {name_of} = {value}: expected at least 0;"
                " an unlimited limit is None, a quota that nobody set is 0"
            )
            raise DataError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entity:
    """
    A holder of quota in a pool: a queue, a namespace with a ResourceQuota, else a team (quota 0).

    `held` are the GPUs it has, `demand` those and what its waiting workloads ask. A limit of None
    is unlimited. `alone`: it stands in no cohort (nor does a namespace with a ResourceQuota), so it
    neither lends nor borrows, and what it holds above its quota is over quota.

    Raises:
        DataError: a negative number.
    """

    name: str
    quota: int
    demand: int
    held: int
    weight_milli: int = 1000
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    alone: bool = False

    def __post_init__(self) -> None:
        # A sweep makes millions of them: the word for what is wrong is looked for where something is.
        limits = (self.borrowing_limit or 0, self.lending_limit or 0)
        if min(self.quota, self.demand, self.held, self.weight_milli, *limits) < 0:
            _refuse_negative(self, "entity", self.name)

    @property
    def most(self) -> int:
        """What it can be entitled to: its demand, within its quota and what it may borrow."""
        if self.alone:
            return min(self.demand, self.quota)
        return _within(self.demand, self.quota, self.borrowing_limit)

    def lendable(self, used: int) -> int:
        """What it may lend while it uses so much of its quota."""
        unused = max(0, self.quota - used)
        if self.alone:
            return 0
        return unused if self.lending_limit is None else min(unused, self.lending_limit)


@dataclass(frozen=True, slots=True, kw_only=True)
class CohortTree:
    """
    Entities that lend to each other, and the cohorts below. `quota` is the cohort's own.

    The limits are what the whole cohort may borrow from, and lend to, its parent; a cohort without
    a parent has none.

    Raises:
        DataError: a negative number.
    """

    name: str = ""
    quota: int = 0
    weight_milli: int = 1000
    borrowing_limit: int | None = None
    lending_limit: int | None = None
    entities: tuple[Entity, ...] = ()
    cohorts: tuple["CohortTree", ...] = ()

    def __post_init__(self) -> None:
        limits = (self.borrowing_limit or 0, self.lending_limit or 0)
        if min(self.quota, self.weight_milli, *limits) < 0:
            _refuse_negative(self, "cohort", self.name)

    def members(self) -> Iterator[Entity]:
        """The entities of this cohort and of all below."""
        yield from self.entities
        for cohort in self.cohorts:
            yield from cohort.members()

    @property
    def own_quota(self) -> int:
        """Quota written on this cohort and on all below, that of entities left out."""
        return self.quota + sum(cohort.own_quota for cohort in self.cohorts)

    @property
    def total_quota(self) -> int:
        """All quota: a cohort's own adds to that of its members."""
        if not self.cohorts:
            return self.quota + sum(entity.quota for entity in self.entities)
        return self.own_quota + sum(entity.quota for entity in self.members())

    def room(self, wanted: int, used: int) -> int:
        """How much of what its members want above what they use it may take from its parent."""
        return _within(used + wanted, self.total_quota, self.borrowing_limit) - used


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """
    GPUs that the same entities compete for: a cohort's in one flavor, else a cluster's of one model.

    `entities` are all, in order of name. `capacity`: GPUs that are schedulable or held by the entities,
    less those that others hold.
    `hard_quota`: the system gives nobody what is in no quota (Kueue, Volcano `capability`,
    ResourceQuota).

    Raises:
        DataError: a negative capacity, two entities of one name, or a limit at the root.
    """

    capacity: int
    tree: CohortTree
    hard_quota: bool
    entities: tuple[Entity, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        found = tuple(sorted(self.tree.members(), key=_NAME))
        object.__setattr__(self, "entities", found)
        if self.capacity < 0:
            _refuse_negative(self, "pool", self.tree.name)
        names = list(map(_NAME, found))
        if len(set(names)) < len(names):
            twice = sorted({name for name in names if names.count(name) > 1})
            message = f"pool {self.tree.name!r}, entities {twice}: expected each name once; add them up first"
            raise DataError(message)
        if (self.tree.borrowing_limit, self.tree.lending_limit) != (None, None):
            message = f"pool {self.tree.name!r}: expected a root cohort without limits; it has no parent"
            raise DataError(message)

    @property
    def without_quota(self) -> int:
        """Capacity that is in nobody's quota."""
        return max(0, self.capacity - self.tree.total_quota)


def _within(wanted: int, quota: int, borrowing_limit: int | None) -> int:
    return wanted if borrowing_limit is None else min(wanted, quota + borrowing_limit)
