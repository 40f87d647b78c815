"""Causes of held GPU-time in the small recordings: an answer about then is what was known then."""

from datetime import timedelta

import pytest

from analytics.evaluate import evaluate, parameters
from analytics.metrics import REGISTRY
from analytics.wastage.asked import GPU_HOUR
from analytics.wastage.bill import Bill, bill
from analytics.wastage.causes import Cause, account
from domain.metric import Ask
from domain.policy import Policy
from domain.window import Window
from service.wastage import Wastage
from tests.recordings.comparing import imported, rows

pytestmark = [pytest.mark.recordings, pytest.mark.timeout(300)]

# The recordings' time is compressed: jobs run for seconds or a minute.
POLICY = Policy(idle_after=timedelta(seconds=9), assumed_checkpoint_interval=timedelta(seconds=5))
# Every GPU works for eight seconds, then rests for as long as it is old: nobody recorded their activity.
MADE_UP = """
insert into activity_span
select
    cluster, workload_uid, pod_uid, 'all', micro_gpus,
    bound_ms + 1000 * step.s, bound_ms + 1000 * (step.s + 1),
    case when step.s % 24 < 8 then 'high' else 'low' end
from holding
cross join (select unnest(range(300)) as s) as step
where micro_gpus > 0 and bound_ms + 1000 * step.s < coalesce(released_ms, 9000000000000)
"""


@pytest.mark.parametrize("name", ["native", "kueue", "volcano"])
def test_figures_of_any_instant_are_those_of_the_account_as_of_then(name: str) -> None:
    store = imported(name)
    with store.transaction() as connection:
        connection.execute(MADE_UP)
    stage = Wastage(store, POLICY)
    assert stage.refresh(name, 0) > 0
    uids = [row["workload_uid"] for row in rows(store, "select workload_uid from gpu_workload")]
    courses = dict(stage.courses(name, uids))
    assert courses
    (seen,) = rows(store, "select min(bound_ms) as first, max(bound_ms) as last from holding")
    metric = REGISTRY["held_gpu_hours"]
    causes: set[str] = set()
    for part in range(1, 13):
        until = seen["first"] + (seen["last"] + 60_000 - seen["first"]) * part // 12
        window = Window(start_ms=seen["first"], end_ms=until)
        ask = Ask(window=window, by=("cause",))
        found = evaluate(metric, store.rows(metric.sql, parameters(metric, ask)), ask)
        told = {sample.labels["cause"]: sample.value for sample in found if sample.value}
        whole = Bill.empty()
        for course in courses.values():
            whole += bill(account(course, as_of_ms=until, rules=stage.rules), window)
        assert told == {
            cause.value: whole.by_cause[cause] / GPU_HOUR for cause in Cause if whole.by_cause[cause]
        }
        causes |= told.keys()
    assert causes >= {"useful", "idle", "startup", "preempted_lost" if name != "volcano" else "useful"}
