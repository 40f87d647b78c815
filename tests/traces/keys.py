"""
Every key of the traces' `reference.json`: where the product says the same, or why it does not.

A pattern stands for all keys that it matches, parts joined by `/`; groups are `*`. `Made` are figures that
the product has as metrics, `Stored` those that tests find in its tables, `Left` those that it has nowhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Made:
    """Equal to what a metric says; `test` compares them."""

    metrics: tuple[str, ...]
    test: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """Equal to what stands in the tables; no metric says it, `because`."""

    test: str
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Nowhere compared, `because`."""

    because: str


_WAITS = (
    "first_placed_workloads", "longest_queue_wait_seconds", "queue_wait_seconds", "xdmod_wait_per_job_hours",
)  # fmt: skip
_CPU_WAITS = "metrics of waits count workloads that ask GPUs, and these jobs ask CPUs"
_NO_MEAN_OF_TIME = Left(because="no metric is a mean over time of what waits or is held")
_MOST_HELD = Left(because="no metric looks for the instant at which most was held")
_SAME_WAITS = Left(because="another mean of the same waits, whose quantiles are compared")
_OF_THE_DATA = Left(because="it counts rows of the file: no figure of a cluster")
_RUNS = Left(because="no metric is a percentile of how long jobs ran; GPU-hours held say what they cost")


def _logs(name: str) -> Made:
    return Made(metrics=_WAITS, test=f"test_logs.py::{name}")


_METACENTRUM = "test_logs.py::test_metacentrum_has_its_waits_and_its_deepest_queue"
_PHILLY = "test_logs.py::test_philly_has_its_gpu_hours_by_virtual_cluster_and_month"
_OPENB = "test_openb.py::test_openb_has_every_answer_of_its_reference"
_HELIOS = "test_helios.py::test_all_virtual_clusters_have_theirs_and_so_has_the_cluster"
_GENAI = "test_genai.py::test_every_figure_of_activity_is_that_of_the_reference"
_NASA = "test_logs.py::test_nasa_has_its_jobs_and_hours_and_no_waits"
_LCG = "test_logs.py::test_lcg_streams_its_188041_jobs"
_EAGLE = "test_logs.py::test_a_sample_of_eagle_has_its_waits_and_gpu_hours"
_READINGS = (
    "gpu_activity_ratio", "gpu_readings", "gpu_readings_inactive_ratio", "gpu_readings_quantile_ratio",
)  # fmt: skip
_XDMOD = Left(because="Open XDMoD's published cells of the same jobs are compared instead, in test_xdmod.py")

# Of every trace; they say how the others were found.
ABOUT = ("trace", "quantiles", "definitions/*")
KEYS: Mapping[str, Mapping[str, Made | Stored | Left]] = {
    "alibaba-dlrm-2025": {
        "wait_by_role/*": _logs("test_dlrm_has_its_waits_by_role_and_application"),
        "wait_by_app_top20_by_gpu_hours/*": _logs("test_dlrm_has_its_waits_by_role_and_application"),
        "gpu_hours_by_*": Left(because="so that both kinds of jobs have waits, CPUs are read as GPUs"),
        "counts/*": _OF_THE_DATA,
        "apps": _OF_THE_DATA,
    },
    "alibaba-genai-2026": {
        "all/pods": Made(metrics=("gpu_activity_ratio",), test=_GENAI),
        "all/[!p]*": Made(metrics=_READINGS, test=_GENAI),
        "all/p[0-9]*": Made(metrics=_READINGS, test=_GENAI),
        "by_pod/*": Made(metrics=_READINGS, test=_GENAI),
        "queue_*": Left(because="requests that wait at a service's gateway are no workloads, nor activity"),
    },
    "alibaba-openb-2023": {
        "by_qos/gpu_hours/*": Made(metrics=("held_gpu_hours",), test=_OPENB),
        "*/wait_*_cont": Stored(test=_OPENB, because=_CPU_WAITS),
        "*/wait_*/n": Stored(test=_OPENB, because=_CPU_WAITS),
        "*/wait_*/max": Stored(test=_OPENB, because=_CPU_WAITS),
        "*/wait_*_disc": _SAME_WAITS,
        "*/wait_*/mean": _SAME_WAITS,
        "*/never_scheduled_pods/*": Stored(test=_OPENB, because=_CPU_WAITS),
        "by_qos/failed_share*": Stored(test=_OPENB, because="see by_qos/gpu_hours_failed"),
        "by_qos/gpu_hours_failed/*": Stored(
            test=_OPENB, because="lost work ends at the last checkpoint: a metric of all hours of failed jobs"
            " would charge useful ones"
        ),
        "all_pods/gpu_hours/*": Made(metrics=("held_gpu_hours",), test=_OPENB),
        "all_pods/gpu_hours_failed/*": Left(because="the sum of by_qos/gpu_hours_failed, which is compared"),
        "all_pods/failed_share*": Left(because="follows from two figures that are compared"),
        "starvation/max_wait*": Left(because="it is the longest of the waits, which are compared"),
        "starvation/max_age*": Stored(test=_OPENB, because="they were gone when one asks"),
        "queue_depth_all/max_depth": Stored(test=_OPENB, because=_CPU_WAITS),
        "queue_depth_all/first_time_of_max": Stored(test=_OPENB, because=_CPU_WAITS),
        "gpus_allocated/max_depth": Made(metrics=("held_gpus",), test=_OPENB),
        "gpus_allocated/first_time_of_max": Made(metrics=("held_gpus",), test=_OPENB),
        "*/time_weighted_mean": _NO_MEAN_OF_TIME,
        "pods_by_qos_phase": Stored(test=_OPENB, because="outcomes are of workloads, one by one"),
        "nodes_by_model": _OF_THE_DATA,
    },
    "alibaba-pai-2020": {"machines": _OF_THE_DATA},
    "alibaba-spot-2026": {
        "nodes": _OF_THE_DATA,
        "hours_demand_over_95pct": Left(because="the trace has sums by the hour, of which no importer is"),
        "gini*": Left(because="no metric is a Gini coefficient: Jain's index is the one of the definitions"),
    },
    "helios-earth-2020-05": {
        "by_vc/*/gpus_capacity_max": Left(because="no metric is the largest capacity of a window"),
        "by_vc/*/*_allocation_ratio": Left(
            because="means and medians of a ratio that is rounded in the file; held over all is compared"
        ),
        "by_vc/*/[!gmp]*": Made(metrics=("queue_state_gpu_hours",), test=_HELIOS),
        "by_vc/*/gpu_hours_*": Made(metrics=("queue_state_gpu_hours",), test=_HELIOS),
        "by_vc/*/minutes*": Made(metrics=("queue_state_seconds",), test=_HELIOS),
        "by_vc/*/*_queue_depth": Made(
            metrics=("queue_state_depth_workloads", "queue_state_mean_depth_workloads"), test=_HELIOS
        ),
        "by_vc/*/max_pending_gpus": Made(metrics=("queue_state_depth_gpus",), test=_HELIOS),
        "longest_nonempty_queue_minutes/*": Made(metrics=("queue_state_seconds",), test=_HELIOS),
        "cluster_total/*": Made(
            metrics=(
                "queue_state_depth_gpus", "queue_state_depth_workloads", "queue_state_gpu_hours",
                "queue_state_held_ratio",
            ), test=_HELIOS,
        ),
    },
    "metacentrum-wagap-2013": {
        "wait_*": Made(metrics=_WAITS, test=_METACENTRUM),
        "cpu_hours_by_queue/*4d": Left(because="two of its jobs ran for minus 43 years"),
        "cpu_hours_by_queue/*[!d]": Made(metrics=("held_gpu_hours",), test=_METACENTRUM),
        "cpu_hours_by_queue/*[!4]d": Made(metrics=("held_gpu_hours",), test=_METACENTRUM),
        "cpu_hours_by_user*": Made(metrics=("held_gpu_hours",), test=_METACENTRUM),
        "queue_depth/max_depth": Made(metrics=("queue_depth_workloads",), test=_METACENTRUM),
        "queue_depth/first_time_of_max": Made(metrics=("queue_depth_workloads",), test=_METACENTRUM),
        "procs_in_use/max_depth": _MOST_HELD,
        "procs_in_use/first_time_of_max": _MOST_HELD,
        "*/time_weighted_mean": _NO_MEAN_OF_TIME,
    },
    "nrel-eagle-2019-sample": {
        "wait_by_partition/*_cont": Stored(test=_EAGLE, because=_CPU_WAITS),
        "wait_by_partition/*/n": Stored(test=_EAGLE, because=_CPU_WAITS),
        "wait_by_partition/*/max": Stored(test=_EAGLE, because=_CPU_WAITS),
        "wait_by_partition/*_disc": _SAME_WAITS,
        "wait_by_partition/*/mean": _SAME_WAITS,
        "wait_by_gpu/*": Left(because="the same waits in other groups"),
        "gpu_hours_by_user/*": Made(metrics=("held_gpu_hours",), test=_EAGLE),
        "states/*": _OF_THE_DATA,
    },
    "philly-2017": {
        "gpu_hours_by_*": Made(metrics=("held_gpu_hours",), test=_PHILLY),
        "jobs_by_vc/*": Made(metrics=("submitted_workloads",), test=_PHILLY),
        "duration_seconds_by_vc/*": _RUNS,
        "jobs_by_size_class/*": _OF_THE_DATA,
        "jobs_by_num_gpus/*": _OF_THE_DATA,
        "gpus_in_use*/[mf]*": _MOST_HELD,
        "gpus_in_use*/time_weighted_mean": _NO_MEAN_OF_TIME,
        "active_nodes/*": Left(because="counts of nodes, of which no importer is"),
    },
    "swf-lcg-2005": {
        "run_by_group/*": _RUNS,
        "cpu_hours_by_group/*": Stored(test=_LCG, because="the hours of 188,041 jobs take minutes to book"),
        "jobs": Left(because="it is the number of lines, which the importer counts"),
        "users": Stored(test=_LCG, because="no metric counts who ever asked"),
        "procs_in_use*/[mf]*": _MOST_HELD,
        "procs_in_use*/time_weighted_mean": _NO_MEAN_OF_TIME,
    },
    "swf-nasa-ipsc-1993": {
        "run_by_group/*": _RUNS,
        "cpu_hours_by_group/*": Made(metrics=("held_gpu_hours",), test=_NASA),
        "jobs": Left(because="it is the number of lines, which the importer counts"),
        "users": Left(because="no metric counts who ever asked"),
        "procs_in_use*/[mf]*": _MOST_HELD,
        "procs_in_use*/time_weighted_mean": _NO_MEAN_OF_TIME,
    },
    "xdmod-slurm-2017": {"[!tqd]*": _XDMOD, "queue_depth/*": _XDMOD},
}  # fmt: skip
