"""GPU-time held, and what it was for."""

from datetime import timedelta

from analytics.wastage.asked import GPU_TIME, HELD_HOURS, TIME_ADDS, TIME_APART, WASTE_DIMENSIONS
from domain.alert import AlertRule, Limit, Severity
from domain.metric import Metric, Page, Unit

METRIC = Metric(
    name="held_gpu_hours",
    unit=Unit.GPU_HOURS,
    title="GPU-hours held, by cause",
    definition=(
        "GPU-hours that pods held in the window, each second with exactly one cause: gang_hold, startup, "
        "startup_over_limit, draining, backoff, infra_lost, preempted_lost, crash_lost, idle, "
        "resident_idle, unknown or useful. The causes sum to the time held. A cause is the one known at "
        "the instant asked: time that a later crash turns into lost time moves from useful to crash_lost."
    ),
    source="definitions of this product; DCGM activity, pod and workload states",
    sql=GPU_TIME,
    labels=("cluster", "team", "cause"),
    dimensions=(*WASTE_DIMENSIONS, "cause"),
    compute=HELD_HOURS,
    windowed=True,
    adds=TIME_ADDS,
    apart=TIME_APART,
    pages=(Page.WASTE,),
    alerts=(
        AlertRule(
            name="GpuIdle",
            summary="GPUs of team {team} in {cluster} were held idle for {value} GPU-hours",
            description=(
                "{value} GPU-hours were held in the window while the GPUs did nothing and kept nothing in"
                " memory; the limit is {limit}. One GPU that is idle for a whole day makes 24."
            ),
            link="waste?cluster={cluster}&team={team}",
            limit=Limit(times=24.0),
            identity=("cluster", "team"),
            match={"cause": "idle"},
            hold=timedelta(minutes=15),
            window=timedelta(hours=1),
            severity=Severity.INFO,
        ),
    ),
    rests_on_samples=True,
)
