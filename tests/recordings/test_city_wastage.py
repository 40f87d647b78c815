"""
Causes of held GPU-time in the long recording, `city`, against what its script and kubelets did.

The recording's time is compressed: a minute of it stands for about 66. Its policy is compressed too;
so that its losses compare with the truth's, which counts everything since the last checkpoint, an
unknown checkpoint means here that all of the run is lost.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any

import pytest

from domain.policy import Policy
from service.activity import Activity
from service.gpu_metrics import keep_scrapes, scrape_files
from service.wastage import Wastage
from store.embedded import Store
from tests.recordings.comparing import Comparison, ground_truth, rows, show
from tests.recordings.test_city import APART
from tests.shared import shared

pytestmark = [pytest.mark.recordings, pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(600)]

# Exporters collect each 10 s, so that 30 s are the shortest idleness that three samples tell of.
IDLE_AFTER = timedelta(seconds=30)
STEP_SECONDS = 10
POLICY = Policy(
    idle_after=IDLE_AFTER,
    assumed_checkpoint_interval=timedelta(days=1),
    short_run=timedelta(days=1),
    checkpoint_budgets={},
)
LOST = {"crash_lost", "preempted_lost", "infra_lost"}
# What of a run our phases take out of running: nothing that is lost in it is work.
NOT_RUNNING = {"gang_hold", "startup", "startup_over_limit", "draining", "backoff"}
# Stamps are whole seconds at both ends of a run, and the truth's clocks differ by a little more.
STAMPS_SECONDS = 1.5
HALF_A_SECOND = 0.5

# Pods whose loss has another cause, or another size, in the truth, each with the reason.
DEVIATING = {
    # The scheduler preempted a member, so the whole gang's attempt was cut by a preemption; the truth
    # counts the member alone, and says of the others that their Job had failed.
    **dict.fromkeys(
        ("score-0192", "encoder-0475", "render-0343", "sweep-0457"), "gang of a preempted member"
    ),
    # It crashed in the second in which it was preempted: the truth calls it a crash.
    **dict.fromkeys(("diffusion-0036-vftpc", "rank-0098-sr67n"), "crash and preemption in one second"),
}

PIECES = """
select
    gpu_time.pod_uid,
    gpu_time.workload_uid,
    gpu_time.user_name,
    gpu_time.namespace || '/' || gpu_time.name as workload_name,
    gpu_time.cause,
    gpu_time.micro_gpus / 1e6 as gpus,
    gpu_time.start_ms / 1000 as start,
    least(coalesce(gpu_time.end_ms, $end_ms), $end_ms) / 1000 as until
from gpu_time
where gpu_time.start_ms < $end_ms
"""
# As if every GPU had been seen to work all the time: what is lost then depends on the lives only.
ALWAYS_BUSY = """
insert into activity_span
select
    cluster, workload_uid, pod_uid, 'all', micro_gpus, bound_ms, coalesce(released_ms, 2000000000000), 'high'
from holding
where micro_gpus > 0
"""
Pieces = Mapping[str, list[dict[str, Any]]]


@dataclass
class City:
    """The recording's truth, and our pieces by pod: of lives alone, and with GPU metrics."""

    store: Store
    truth: dict[str, Any]
    busy: Pieces
    seen: Pieces

    @cached_property
    def workloads(self) -> dict[str, dict[str, Any]]:
        """The truth's workloads by the name that its pods use."""
        return {
            f"{each['kind']}/{each['namespace']}/{each['name']}": each for each in self.truth["workloads"]
        }

    @cached_property
    def checkpoints(self) -> dict[str, list[float]]:
        """Every workload's checkpoints: one of any pod is its workload's."""
        found: dict[str, list[float]] = defaultdict(list)
        for pod in self.truth["pods"]:
            found[pod["workload"]] += pod["checkpoints"]
        return found

    def labels(self, pod: dict[str, Any]) -> dict[str, str]:
        """By what totals are kept apart."""
        workload = self.workloads[pod["workload"]]
        return {
            "workload": pod["workload"],
            "team": workload["team"],
            "user": workload["user"] or "",
            "class": workload["class"],
            "model": pod["model"],
        }


@pytest.fixture(scope="module")
def city(city_store: Store) -> City:
    truth = ground_truth("city")
    keep_scrapes(city_store, "city", scrape_files([shared("data/recorded/city/dcgm")], None))
    Activity(city_store, POLICY).refresh("city", 0)
    Wastage(city_store, POLICY).refresh("city", 0)
    seen = _pieces(city_store, truth)
    with city_store.transaction() as connection:
        connection.execute("delete from activity_span")
        connection.execute(ALWAYS_BUSY)
        connection.execute("delete from waste_account")
    Wastage(city_store, POLICY).refresh("city", 0)
    return City(store=city_store, truth=truth, busy=_pieces(city_store, truth), seen=seen)


def _pieces(store: Store, truth: dict[str, Any]) -> Pieces:
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for piece in rows(store, PIECES, end_ms=round(truth["epoch_end"] * 1000)):
        found[piece["pod_uid"]].append(piece)
    return found


def amount(pieces: Iterable[dict[str, Any]], causes: set[str] | None = None) -> float:
    """GPU-seconds of these causes, or of all."""
    return sum(
        float(piece["gpus"] * (piece["until"] - piece["start"]))
        for piece in pieces
        if causes is None or piece["cause"] in causes
    )


def seconds(pieces: Iterable[dict[str, Any]], causes: set[str], start: float, end: float) -> float:
    """How much of a stretch has one of these causes."""
    return sum(
        float(max(0.0, min(piece["until"], end) - max(piece["start"], start)))
        for piece in pieces
        if piece["cause"] in causes
    )


def totals(
    city: City, ours: Callable[[dict[str, Any]], float], theirs: Callable[[dict[str, Any]], float]
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """By each label: ours, the truth's, and the GPUs of every run that was cut short."""
    found: dict[tuple[str, str], tuple[float, float, float]] = defaultdict(lambda: (0.0, 0.0, 0.0))
    for pod in city.truth["pods"]:
        if pod["pod"] in APART or pod["pod"].startswith(tuple(DEVIATING)):
            continue
        cut = pod["gpu"] * len(cut_runs(pod, city))
        for label in city.labels(pod).items():
            one, other, gpus = found[label]
            found[label] = (one + ours(pod), other + theirs(pod), gpus + cut)
    return found


def show_totals(name: str, found: Mapping[tuple[str, str], tuple[float, float, float]]) -> None:
    show(f"\n{name}, GPU-seconds", "ours", "truth", sep="   ")
    for (label, value), (ours, theirs, _) in sorted(found.items()):
        if label != "workload" and (ours or theirs):
            show(f"{label:<7} {value:<24} {ours:>10.0f} {theirs:>10.0f}")


def cut_runs(pod: dict[str, Any], city: City) -> list[tuple[str, float, float]]:
    """Runs that were cut short, by the truth: kind of loss, since when nothing was saved, and until when."""
    found = []
    for run in pod["runs"]:
        end, how = run["end"] or city.truth["epoch_end"], run.get("how") or ""
        saved = max((at for at in city.checkpoints[pod["workload"]] if at <= end), default=0.0)
        if how.startswith(("crash", "failed")):
            found.append(("crash_lost", max(run["start"], saved), end))
        elif how == "killed" and pod.get("preempted"):
            found.append(("preempted_lost", max(run["start"], saved), end))
    return found


def unsaved(pod: dict[str, Any], city: City, kind: str) -> float:
    """GPU-seconds of running time, by our phases, that the truth says were lost so."""
    pieces = city.busy.get(pod["uid"], [])
    return sum(
        float(max(0.0, end - since - seconds(pieces, NOT_RUNNING, since, end)) * pod["gpu"])
        for found, since, end in cut_runs(pod, city)
        if found == kind
    )


def test_every_second_held_has_a_cause(city: City) -> None:
    held = Comparison("GPU-seconds held by cause")
    for pod in city.truth["pods"]:
        if pod["pod"] not in APART:
            held.compare(amount(city.seen.get(pod["uid"], [])), pod["gpu_seconds"]["held"], pod["pod"])
    found = totals(
        city, lambda pod: amount(city.seen.get(pod["uid"], [])), lambda pod: pod["gpu_seconds"]["held"]
    )
    show("", held)
    show_totals("held", found)
    most = {pod["pod"]: STAMPS_SECONDS * pod["gpu"] for pod in city.truth["pods"]}
    assert not [item for item in held.differences if abs(item[0]) > most[item[1]]]
    large = {key: value for key, value in found.items() if key[0] in {"team", "model", "class"}}
    assert {label for label, _ in large} == {"team", "model", "class"}
    for (_, value), (ours, theirs, _) in large.items():
        assert ours == pytest.approx(theirs, rel=0.01), value


@pytest.mark.parametrize("label", ["user", "workload"])
def test_whoever_held_is_whom_the_truth_names(city: City, label: str) -> None:
    """By our own names of the pieces, unlike the totals above."""
    ours, theirs, gpus = (defaultdict[str, float](float) for _ in range(3))
    for pod in city.truth["pods"]:
        if pod["pod"] in APART:
            continue
        name = city.labels(pod)[label]
        if label == "workload":
            # Each pod of a StatefulSet is a workload of its own.
            kind, _, named = name.partition("/")
            name = f"{pod['namespace']}/{pod['pod']}" if kind == "StatefulSet" else named
        theirs[name] += pod["gpu_seconds"]["held"]
        gpus[name] += pod["gpu"]
        for piece in city.seen.get(pod["uid"], []):
            whose = piece["user_name" if label == "user" else "workload_name"]
            ours[whose] += amount([piece])
    off = {
        name: (ours[name], theirs[name])
        for name in {*ours, *theirs}
        if abs(ours[name] - theirs[name]) > STAMPS_SECONDS * gpus[name]
    }
    show(f"\nheld by {label}: {len(theirs)} compared, off {off}")
    assert len(theirs) > 10
    assert not off


@pytest.mark.parametrize("kind", ["crash_lost", "preempted_lost"])
def test_work_lost_is_what_the_truth_says_was_not_saved(city: City, kind: str) -> None:
    lost = Comparison(kind)
    off = {}
    for pod in city.truth["pods"]:
        ours = amount(city.busy.get(pod["uid"], []), {kind})
        theirs = unsaved(pod, city, kind)
        lost.compare(ours / pod["gpu"], theirs / pod["gpu"], pod["pod"])
        if abs(ours - theirs) / pod["gpu"] > STAMPS_SECONDS * max(1, len(pod["runs"])):
            off[pod["pod"]] = (ours, theirs)
    found = totals(
        city,
        lambda pod: amount(city.busy.get(pod["uid"], []), {kind}),
        lambda pod: unsaved(pod, city, kind),
    )
    show("", lost, f"deviating: {off}", sep="\n")
    show_totals(kind, found)
    assert not {pod: why for pod, why in off.items() if not pod.startswith(tuple(DEVIATING))}
    for (label, value), (ours, theirs, gpus) in found.items():
        # A checkpoint's stamp is cut off to a whole second, so half a second more of each run is lost.
        assert ours == pytest.approx(theirs, abs=HALF_A_SECOND * gpus + 8), (label, value)


def test_crash_loop_pauses_with_the_gpus_held_are_backoff(city: City) -> None:
    def pauses(pod: dict[str, Any]) -> float:
        away = NOT_RUNNING - {"backoff"}
        pieces = city.busy.get(pod["uid"], [])
        return sum(
            float(max(0.0, end - start - seconds(pieces, away, start, end)) * pod["gpu"])
            for start, end, state in pod["segments"]
            if state == "backoff"
        )

    off = {}
    for pod in city.truth["pods"]:
        ours, theirs = amount(city.busy.get(pod["uid"], []), {"backoff"}), pauses(pod)
        if abs(ours - theirs) / pod["gpu"] > STAMPS_SECONDS * max(1, len(pod["runs"])):
            off[pod["pod"]] = (ours, theirs)
    found = totals(city, lambda pod: amount(city.busy.get(pod["uid"], []), {"backoff"}), pauses)
    show_totals("backoff", found)
    show(f"deviating: {off}")
    assert not off


def test_idle_is_what_the_truth_says_did_nothing(city: City) -> None:
    """Ours lies in the truth's, within a sample at each end; and the truth's long idleness is in ours."""
    wrongly = rightly = missed = caught = 0.0
    for pod in city.truth["pods"]:
        quiet = _joined((start, end) for start, end, state in pod["segments"] if state in {"idle", "dead"})
        pieces = city.seen.get(pod["uid"], [])
        for piece in pieces:
            if piece["cause"] in {"idle", "resident_idle"}:
                inside = sum(
                    max(0.0, min(end + STEP_SECONDS, piece["until"]) - max(start - 2, piece["start"]))
                    for start, end in quiet
                )
                length = piece["until"] - piece["start"]
                rightly += min(inside, length) * piece["gpus"]
                wrongly += max(0.0, length - inside) * piece["gpus"]
        for start, end in quiet:
            if end - start >= IDLE_AFTER.total_seconds() + 2 * STEP_SECONDS:
                for piece in pieces:
                    part = max(0.0, min(end, piece["until"]) - max(start, piece["start"])) * piece["gpus"]
                    caught += part * (piece["cause"] in {"idle", "resident_idle"})
                    missed += part * (piece["cause"] in {"useful", *LOST})
    show(f"\nidle: ours {rightly + wrongly:.0f} GPU-s, of which not so in the truth {wrongly:.0f};")
    show(f"of the truth's long idleness caught {caught:.0f}, called useful or lost {missed:.0f}")
    assert wrongly < 0.02 * (rightly + wrongly)
    assert missed < 0.1 * (caught + missed)


def _joined(stretches: Iterable[tuple[float, float]]) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for start, end in sorted(stretches):
        if found and start - found[-1][1] < 0.1:
            found[-1] = (found[-1][0], end)
        else:
            found.append((start, end))
    return found


def test_known_activity_covers_most_of_the_running_time(city: City) -> None:
    running = unknown = 0.0
    for pieces in city.seen.values():
        running += amount(pieces) - amount(pieces, NOT_RUNNING)
        unknown += amount(pieces, {"unknown"})
    show(f"\nrunning {running:.0f} GPU-s, activity unknown {unknown:.0f} ({100 * unknown / running:.1f} %)")
    # Runs of seconds begin before their first sample; shared GPUs and failing exporters add the rest.
    assert unknown < 0.1 * running
