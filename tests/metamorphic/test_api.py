"""A recording with one job removed changes exactly the figures that should change, on the API."""

import json
from math import floor
from pathlib import Path
from typing import Any

import pytest

from domain.window import format_instant
from sample_data import SMALL
from tests.metamorphic.elsewhere import ELSEWHERE
from tests.metamorphic.oracle import (
    GREATEST,
    SUMS,
    Member,
    ages,
    censored,
    counts,
    matches,
    member,
    started,
    true_ages,
)
from tests.metamorphic.recordings import lines, with_a_replay, without
from tests.metamorphic.worlds import PairOf, World, chosen, held_now, truth, waits_now, world_of

pytestmark = [pytest.mark.slow, pytest.mark.long, pytest.mark.timeout(300)]

STORIES = ("ended", "runs", "waits", "preempted once")
PERCENTILES = (
    "queue_wait_seconds",
    "time_to_placement_seconds",
    "time_to_running_seconds",
    "requeue_wait_seconds",
)
UNTOUCHED = ("wait_target_seconds",)
# A detail costs some 60 ms: one in so many is read, and all rows of all tables are compared besides.
DETAIL_EVERY = 40
Row = dict[str, Any]


@pytest.fixture(scope="module")
def members(whole: World) -> dict[str, Member]:
    """Every workload of the sample by uid, its truth with its labels."""
    return {row["uid"]: member(truth()[row["uid"]], row) for row in whole.listed()}


def test_the_jobs_left_out_are_four_of_different_stories() -> None:
    ended, runs, waits, preempted = (truth()[chosen()[story]] for story in STORIES)
    assert (ended["outcome"], held_now(ended), ended["waits"][0] > 300) == ("succeeded", [], True)
    assert (runs["outcome"], bool(held_now(runs))) == ("open", True)
    assert (waits["bound"], waits_now(waits)) == (None, True)
    assert (len(preempted["preemptions"]), len(preempted["waits"])) == (1, 2)


def test_figures_that_are_checked_elsewhere_are_not_checked_nowhere() -> None:
    root = Path(__file__).parents[2]
    assert [path for path in ELSEWHERE.values() if not (root / path).is_file()] == []


@pytest.mark.parametrize("story", STORIES)
def test_every_metric_changes_by_the_jobs_own_part_and_no_other(
    story: str, pair_of: PairOf, members: dict[str, Member]
) -> None:
    pair = pair_of(story)
    job = members[pair.uid]
    others = [one for uid, one in members.items() if uid != pair.uid]
    changed = set()
    for question in pair.before.questions():
        if question[0] in ELSEWHERE:
            continue
        before, after = pair.before.metric(question), pair.after.metric(question)
        was, now = before["rows"], after["rows"]
        assert {**after, "rows": was} == before, question
        kept = [(row, _without(question[0], row, job, others)) for row in was]
        expected = [(left, left is not row) for row, left in kept if left is not None]
        if expected:
            touched = [is_touched for _, is_touched in expected]
            assert _texts(now, touched) == _texts([row for row, _ in expected], touched), question
        else:  # nobody is left of whom there is something to tell
            assert {row["value"] for row in now} == {None}, question
            assert all(row["undefined_because"] for row in now), question
        if now != was:
            changed.add(question[0])
    assert changed >= _must_change(pair.uid)


def _must_change(uid: str) -> set[str]:
    """Metrics of which some row cannot stay as it is when this job is missing."""
    told = truth()[uid]
    names = {"first_placed_workloads", "first_wait_seconds"} if told["bound"] else set()
    if held_now(told):
        names |= {"held_gpus", "free_gpus", "reserved_gpus"}
    if waits_now(told):
        names |= {"queue_depth_workloads", "queue_depth_gpus", "starvation_index_seconds"}
        names |= {"starvation_index_ratio", "starvation_cumulative_seconds"}
    if told["preemptions"]:
        names |= {"preemptions_total", "requeue_wait_seconds"}
    if told["waits"][0] > 300:
        names.add("queue_wait_seconds")
    return names


def _without(metric: str, row: Row, job: Member, others: list[Member]) -> Row | None:
    """A row as it must be without the job; None where nobody is left for it."""
    if metric in UNTOUCHED or (row["value"] is None and not row["labels"]):
        return row
    if metric in SUMS:
        return _sum_without(metric, row, job, others)
    asked = {name: value for name, value in row["labels"].items() if name not in {"quantile", "estimator"}}
    if not (counts(metric, job) and matches(job.labels, asked)):
        return row
    rest = [one for one in others if counts(metric, one) and matches(one.labels, asked)]
    if metric in GREATEST:
        assert row["value"] == GREATEST[metric]([*rest, job])
        return _valued(row, GREATEST[metric](rest)) if rest else None
    assert metric in PERCENTILES, f"{metric}: no oracle for this metric; add one"
    return _percentile_without(metric, row, job, rest)


def _sum_without(metric: str, row: Row, job: Member, others: list[Member]) -> Row | None:
    mine = [value for part, value in SUMS[metric](job, truth()) if matches(part, row["labels"])]
    if not mine:
        return row
    theirs = [
        value for one in others for part, value in SUMS[metric](one, truth()) if matches(part, row["labels"])
    ]
    if metric != "free_gpus":
        assert row["value"] == sum(mine) + sum(theirs), (metric, row)
    # Figures about nodes have a row for each node and model, whoever is on it.
    stays = metric in {"held_gpus", "free_gpus"} and set(row["labels"]) <= {"cluster", "gpu_model", "node"}
    return _valued(row, row["value"] - sum(mine)) if theirs or stays else None


def _percentile_without(metric: str, row: Row, job: Member, rest: list[Member]) -> Row | None:
    quantile = row["labels"]["quantile"]
    if row["labels"]["estimator"] == "started":
        for members, shown in (([*rest, job], row["value"]), (rest, None)):
            value = started([age for age, over in ages(metric, members) if over], quantile)
            exact = started(true_ages(metric, members), quantile)
            assert (value is None) == (exact is None)
            if value is not None and exact is not None:
                assert abs(value - exact) <= 1  # stamps are whole seconds
                assert shown is None or shown == pytest.approx(value, abs=1e-6)
        ended = [age for age, over in ages(metric, rest) if over]
        return _valued(row, started(ended, quantile)) if rest else None
    assert (row["value"], row["lower_bound"], row["few"]) == censored(ages(metric, [*rest, job]), quantile)
    value, lower_bound, few = censored(ages(metric, rest), quantile)
    return _valued(row, value, lower_bound=lower_bound, few=few) if rest else None


def _valued(row: Row, value: float | None, **limits: bool) -> Row:
    return {**row, **limits, "value": value, "undefined_because": "why" if value is None else None}


def _texts(rows: list[Row], touched: list[bool]) -> list[str]:
    """Rows to compare: byte for byte, but of those touched neither rounding nor a reason's words."""
    assert len(rows) == len(touched)
    shown = []
    for row, is_touched in zip(rows, touched, strict=True):
        told = dict(row)
        if is_touched and row["value"] is None:
            told["undefined_because"] = bool(row["undefined_because"])
        elif is_touched:
            told["value"] = round(float(row["value"]), 6)
        shown.append(json.dumps(told))
    return shown


@pytest.mark.parametrize("story", STORIES)
def test_the_list_of_workloads_loses_that_row_and_no_other(story: str, pair_of: PairOf) -> None:
    pair = pair_of(story)
    before, after = pair.before.listed(), pair.after.listed()
    assert len(before) - len(after) == 1
    assert json.dumps([row for row in before if row["uid"] != pair.uid]) == json.dumps(after)


@pytest.mark.parametrize("story", STORIES)
def test_its_detail_is_gone_and_no_other_changes(story: str, pair_of: PairOf) -> None:
    pair = pair_of(story)
    status, problem = pair.after.reply(f"workloads/{pair.uid}")
    assert (status, json.loads(problem)["detail"].split(":")[0]) == (404, f"workload '{pair.uid}'")
    assert pair.before.derived(leaving_out=pair.uid) == pair.after.derived()
    for number, other in enumerate(uid for uid in truth() if uid != pair.uid):
        if number % DETAIL_EVERY == 0 or truth()[other]["mark"]:
            before, after = (world.reply(f"workloads/{other}") for world in (pair.before, pair.after))
            assert before == after, truth()[other]["name"]
            assert before[0] == 200


@pytest.mark.parametrize("story", STORIES)
def test_its_team_loses_one_workload_and_the_sources_stay_as_they_are(story: str, pair_of: PairOf) -> None:
    pair = pair_of(story)
    expected = pair.before.get("teams")
    for row in expected["rows"]:
        if row["team"] == pair.truth["team"]:
            row["workloads"] -= 1
            row["open_workloads"] -= pair.truth["outcome"] == "open"
            last = max(
                w["submitted"] for w in truth().values() if w["team"] == row["team"] and w["uid"] != pair.uid
            )
            row["last_submitted_at"] = format_instant(floor(last) * 1000)
    assert pair.after.get("teams") == expected
    assert pair.after.get("sources") == pair.before.get("sources")


def test_lines_that_are_told_twice_change_nothing(whole: World, tmp_path: Path) -> None:
    began = min(workload["submitted"] for workload in truth().values())
    # An hour with the preemption, and with many ends and deletions in it.
    twice = with_a_replay(
        SMALL, tmp_path / "recording", from_seconds=began + 1200, until_seconds=began + 4800
    )
    assert twice > 2000
    with world_of(tmp_path / "recording") as again:
        assert again.derived() == whole.derived()
        assert again.listed() == whole.listed()
        for path in ("teams", "sources", "metrics"):
            assert again.get(path) == whole.get(path)
        # The answers are made from these tables and those of facts: one question of each metric will do.
        for question in ((name, by) for name, by in whole.questions() if by is None):
            assert again.metric(question) == whole.metric(question), question
        for uid in chosen().values():
            assert again.get(f"workloads/{uid}") == whole.get(f"workloads/{uid}")


def test_no_trace_of_the_job_is_left_in_the_copy(tmp_path: Path) -> None:
    uid = chosen()["preempted once"]
    gone = without(SMALL, uid, tmp_path / "recording")
    # Its Workload, its Job, and a pod of each of its two attempts.
    assert len(gone) == 2 + len(truth()[uid]["pods"])
    for path in (tmp_path / "recording").iterdir():
        told = "".join(lines(path))
        assert not [uid for uid in gone if f'"uid":"{uid}"' in told], path.name
