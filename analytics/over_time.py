"""A figure at many instants, of one sweep over the stretches in which things count (docs/adr/0065)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Self

from domain.errors import UsageError
from domain.metric import Ask, Metric
from domain.window import format_instant

# A day by the minute, and a little; of figures that are asked anew for each instant, few.
MOST_SWEPT: Final = 1500
MOST_ONE_BY_ONE: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Instants:
    """So many instants in milliseconds from the first one on, each a step after the one before."""

    first_ms: int
    step_ms: int
    number: int

    @classmethod
    def between(cls, first_ms: int, last_ms: int, step_ms: int) -> Self:
        """
        The first instant and each step after it; the last one is among them where a step meets it.

        Raises:
            UsageError: the last lies before the first, or the step is of no length.
        """
        if last_ms < first_ms:
            message = (
                f"start {format_instant(first_ms)}, end {format_instant(last_ms)}: expected a start that is"
                " not after the end"
            )
            raise UsageError(message)
        if step_ms <= 0:
            message = f"step of {step_ms} ms: expected a length above 0, for example 5m"
            raise UsageError(message)
        return cls(first_ms=first_ms, step_ms=step_ms, number=(last_ms - first_ms) // step_ms + 1)

    @property
    def last_ms(self) -> int:
        """The last one of them."""
        return self.first_ms + (self.number - 1) * self.step_ms

    def __iter__(self) -> Iterator[int]:
        """One after the other."""
        return iter(range(self.first_ms, self.last_ms + 1, self.step_ms))

    def check(self, most: int) -> None:
        """
        Refuse to tell of too many.

        Raises:
            UsageError: there are more than that.
        """
        if self.number > most:
            message = (
                f"a step of {self.step_ms} ms from {format_instant(self.first_ms)} on gives {self.number}"
                f" instants: expected at most {most}; take a longer step or a shorter range"
            )
            raise UsageError(message)

    def parameters(self) -> Mapping[str, int]:
        """As the SQL of a sweep names them."""
        return {"first_ms": self.first_ms, "step_ms": self.step_ms, "last_ms": self.last_ms}


def sweep(metric: Metric, ask: Ask) -> str:
    """
    The SQL of a metric's rows at many instants; its parameters are `Instants.parameters`.

    Stretches are narrowed first to those that reach an instant. Of these it is added up what begins and what
    ceases at each instant, and from the first instant on what counts. So each row of the store is looked at
    once, however many instants there are. Cluster and team stay, as in `analytics.evaluate.query`.
    """
    named = {*ask.by, *ask.filters, *metric.unless_asked, "cluster", "team"}
    labels = ", ".join(name for name in metric.dimensions if name in named)
    # A sum with something unknown in it is none: what is unknown goes apart.
    unknown = [f"no_{name}" for name in metric.stretch_sums]
    apart = ", ".join((labels, *unknown))
    sums = ("stretches", *metric.stretch_sums)
    summed, negative = ", ".join(f"sum({name}) as {name}" for name in sums), ", ".join(f"-{n}" for n in sums)
    told = ", ".join(
        f"case when no_{name} then null else {name}::bigint end as {name}" for name in metric.stretch_sums
    )
    return f"""\
-- One row per instant and combination of what a question keeps apart, summed from the stretches below.
with reaching as (
    select
        {labels},
        {", ".join(f"{name} is null as no_{name}" for name in metric.stretch_sums)},
        1 as stretches,
        {", ".join(f"coalesce({name}, 0) as {name}" for name in metric.stretch_sums)},
        greatest(after_ms - $first_ms + $step_ms, 0) // $step_ms as first_place,
        (least(until_ms, $last_ms) - $first_ms) // $step_ms + 1 as past_place
    from (
{metric.stretches}) as stretch
    where
        until_ms >= $first_ms
        and $first_ms + $step_ms * (greatest(after_ms - $first_ms + $step_ms, 0) // $step_ms)
        <= least(until_ms, $last_ms)
),

counted as (
    select {apart}, first_place, past_place, {summed}
    from reaching
    group by {apart}, first_place, past_place
),

changes as (
    select {apart}, place, {summed}
    from (
        select {apart}, first_place as place, {", ".join(sums)} from counted
        union all
        select {apart}, past_place as place, {negative} from counted
    ) as change
    group by {apart}, place
),

level as (
    select
        {apart},
        place,
        lead(place, 1, ($last_ms - $first_ms) // $step_ms + 1) over onwards as next_place,
        {", ".join(f"sum({name}) over onwards as {name}" for name in sums)}
    from changes
    window onwards as (partition by {apart} order by place)
)

select $first_ms + $step_ms * unnest(range(place, next_place)) as at_ms, {labels}, {told}
from level
where stretches > 0
"""  # noqa: S608 (names that metrics declare)
