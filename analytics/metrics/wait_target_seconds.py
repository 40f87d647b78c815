"""The wait that each service class was promised."""

from collections.abc import Sequence

from analytics.evaluate import grouped
from analytics.targets import target
from domain.metric import Ask, Metric, Page, Row, Sample, Unit


def _promised(rows: Sequence[Row], ask: Ask) -> list[Sample]:
    return [_of_group(labels, members, ask) for labels, members in grouped(rows, ask.by)]


def _of_group(labels: dict[str, str], members: Sequence[Row], ask: Ask) -> Sample:
    targets = {target(ask.policy, str(row["service_class"])).wait for row in members}
    if len(targets) > 1:
        return Sample.undefined(labels, "classes have different targets: ask by service_class")
    return Sample(labels=labels, value=targets.pop().total_seconds())


METRIC = Metric(
    name="wait_target_seconds",
    unit=Unit.SECONDS,
    title="Wait target",
    definition=(
        "The wait that the policy promises a service class, on p99 queue wait and on the starvation index;"
        " unclassified work is held to the promise of batch."
    ),
    source="settings of the site",
    sql="""\
-- One row per service class.
select service_class
from (values ('interactive'), ('batch'), ('best_effort'), ('unclassified')) as promised (service_class)
""",
    labels=("service_class",),
    dimensions=("service_class",),
    compute=_promised,
    pages=(Page.QUEUES,),
)
