"""
What the product says of a sample against what the simulator knows, for several seeds.

Instants of objects are whole seconds, rounded down, and the last write of an ending follows it by
up to a fifth of a second: that is how far the two may lie apart.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from api.answers import ListQuestion, Question
from collector.recording import import_recording
from domain.window import FixedClock, parse_instant
from sample_data import SETTINGS
from sample_data.generate import END, generate
from service.answers import Answers
from service.refresh import Refresher
from service.settings_file import load_settings
from store.embedded import Store
from store.open_until import FOREVER

# Two of six each time; `make long` has the others.
SEEDS = [pytest.param(seed, marks=[] if seed <= 7 else pytest.mark.long) for seed in (7, 11, 12, 13, 14, 15)]
STAMP_SECONDS = 1.0
WRITE_SECONDS = 0.3
DETAIL_EVERY = 10

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]


@dataclass(frozen=True, slots=True)
class Told:
    """A sample's truth by uid, and what the product answers about the same workloads."""

    truth: Mapping[str, Mapping[str, Any]]
    answered: Mapping[str, Mapping[str, Any]]
    answers: Answers

    def pairs(self) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        return [(self.truth[uid], self.answered[uid]) for uid in self.truth]

    def in_detail(self) -> list[tuple[Mapping[str, Any], Mapping[str, Any]]]:
        """Those with a story or several pods, and a share of the ordinary ones."""
        chosen = [
            uid
            for number, (uid, truth) in enumerate(self.truth.items())
            if truth["mark"] or len(truth["pods"]) > 1 or number % DETAIL_EVERY == 0
        ]
        return [(self.truth[uid], self.answers.workload(uid) or {}) for uid in chosen]


@pytest.fixture(scope="module", params=SEEDS)
def told(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Told]:
    folder: Path = tmp_path_factory.mktemp("sample")
    end_ms = parse_instant(END)
    sample = generate(seed=request.param, end_ms=end_ms)
    sample.write(folder)
    settings = load_settings(SETTINGS)
    store = Store.open(None)
    summary = import_recording(folder, "sample", store)
    assert (summary.set_aside, summary.lines > 5_000) == ({}, True)
    tenancy, policy = settings.tenancy_rules(), settings.thresholds()
    Refresher(store=store, tenancy=tenancy, policy=policy).refresh()
    answers = Answers(store, tenancy, policy, FixedClock(end_ms))
    answered = {row["uid"]: row for row in answers.workloads(ListQuestion(page_size=1000)).rows}
    yield Told({workload["uid"]: workload for workload in sample.truth["workloads"]}, answered, answers)
    store.close()


def test_every_workload_is_known_and_no_other(told: Told) -> None:
    assert set(told.answered) == set(told.truth)


def test_team_user_and_class_are_those_of_the_settings(told: Told) -> None:
    for truth, answer in told.pairs():
        for name in ("namespace", "name", "team", "user", "priority_class", "service_class", "outcome"):
            assert answer[name] == truth[name], (truth["name"], name)


def test_submission_placement_start_and_end_agree(told: Told) -> None:
    names = {
        "submitted": "submitted_at",
        "bound": "first_placed_at",
        "first_running": "first_running_at",
        "ended": "ended_at",
    }
    for truth, answer in told.pairs():
        for ours, theirs in names.items():
            _agree(truth[ours], answer[theirs], f"{truth['name']} {ours}")


def test_what_has_ended_counts_no_more(told: Told) -> None:
    """Questions about now step over it: docs/adr/0031."""
    rows = told.answers.store.rows("select workload_uid, ended_ms, open_until_ms from workload")
    forever = {row["workload_uid"] for row in rows if row["open_until_ms"] == FOREVER}
    assert forever == {row["workload_uid"] for row in rows if row["ended_ms"] is None}
    assert len(forever) < len(rows) / 2


def test_queue_waits_agree(told: Told) -> None:
    for truth, answer in told.pairs():
        first, *later = truth["waits"] or [0.0]
        assert answer["queue_wait_seconds"] == pytest.approx(first, abs=STAMP_SECONDS), truth["name"]
        requeued = answer["requeue_wait_seconds"] or 0.0
        assert requeued == pytest.approx(sum(later), abs=STAMP_SECONDS), truth["name"]


def test_preemptions_agree_with_their_preemptor(told: Told) -> None:
    for truth, answer in told.pairs():
        assert answer["preemptions"] == len(truth["preemptions"]), truth["name"]
    for truth, answer in told.in_detail():
        preemptors = [attempt["preempted_by"] for attempt in answer["attempts"] if attempt["preempted_by"]]
        assert preemptors == [preemption["preemptor"] for preemption in truth["preemptions"]]


def test_pods_their_nodes_and_restarts_agree(told: Told) -> None:
    for truth, answer in told.in_detail():
        pods = {pod["uid"]: pod for attempt in answer["attempts"] for pod in attempt["pods"]}
        assert set(pods) == {pod["uid"] for pod in truth["pods"]}, truth["name"]
        for pod in truth["pods"]:
            ours = pods[pod["uid"]]
            assert (ours["node"], ours["restarts"]) == (pod["node"], pod["restarts"])
            assert ours["gpus"] == pod["gpus"]
            _agree(pod["bound"], ours["bound_at"], f"{pod['name']} bound")
            _agree(pod["released"], ours["released_at"], f"{pod['name']} released")


def test_gpu_seconds_agree_for_each_workload_and_in_all(told: Told) -> None:
    total = 0.0
    for truth, answer in told.pairs():
        slack = STAMP_SECONDS * sum(pod["gpus"] for pod in truth["pods"])
        assert answer["gpu_seconds"] == pytest.approx(truth["gpu_seconds"], abs=slack), truth["name"]
        total += truth["gpu_seconds"]
    assert sum(answer["gpu_seconds"] for answer in told.answered.values()) == pytest.approx(total, rel=0.001)


def test_gpus_held_now_are_those_that_the_simulator_has_given_out(told: Told) -> None:
    held = told.answers.metric("held_gpus", Question(by=())).rows
    expected = sum(
        pod["gpus"] for truth in told.truth.values() for pod in truth["pods"] if pod["released"] is None
    )
    assert [row.value for row in held] == [expected]


def _agree(truth: float | None, answer: str | None, what: str) -> None:
    assert (truth is None) == (answer is None), what
    if truth is not None and answer is not None:
        apart = truth - parse_instant(answer) / 1000
        assert -WRITE_SECONDS <= apart < STAMP_SECONDS, (what, apart)
