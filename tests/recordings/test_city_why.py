"""Why the arranged workloads of `city` wait, against the cause that was arranged for each."""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from analytics.why.reason import Explanation
from analytics.why.situation import explain
from api.why import folded
from domain.policy import Policy
from domain.window import parse_instant
from service import why, why_facts
from service.cli.app import run
from service.why_search import Search
from store.embedded import Store
from tests.golden.test_why_messages import check_forms, texts_in
from tests.recordings.comparing import ground_truth
from tests.recordings.expected import expected

# Whoever asks first for the store of `city` imports it, and whoever asks meanwhile waits.
pytestmark = [pytest.mark.recordings, pytest.mark.long, pytest.mark.timeout(600)]

# In seconds from the start: the causes of ensemble-wait, see `expected_reasons.yaml`.
FULL_UNTIL, OLDER_FROM = 1373, 1392


@dataclass(frozen=True)
class City:
    """The recording with its truth."""

    store: Store
    truth: Mapping[str, Any]
    uids: Mapping[str, str]

    @classmethod
    def of(cls, store: Store) -> "City":
        rows = store.rows("select name, workload_uid from workload")
        return cls(store, ground_truth("city"), {str(r["name"]): str(r["workload_uid"]) for r in rows})

    def at(self, seconds: float) -> int:
        return int((self.truth["epoch_start"] + seconds) * 1000)

    def why(self, names: list[str], seconds: float) -> dict[str, Explanation | None]:
        uids = {self.uids[name]: name for name in names}
        search = Search.of(self.store, "city", self.at(seconds))
        known = why_facts.read(self.store, "city", list(uids), self.at(seconds))
        return {
            uids[uid]: explain(one.situation(search.site, search.found(one))) for uid, one in known.items()
        }

    def marked(self) -> Iterator[tuple[int, list[tuple[str, str]]]]:
        """Each minute of the truth, in seconds from the start, with those that wait by their marks."""
        for minute in self.truth["by_minute"]:
            if minute["marked_waiting"]:
                yield round(minute["t"] - self.truth["epoch_start"]), minute["marked_waiting"]


@pytest.fixture(scope="module")
def city(city_store: Store) -> City:
    return City.of(city_store)


def disagreements(city: City, every: int) -> tuple[int, list[tuple[str, int, str, str]]]:
    """How many causes were compared at each so many-th minute of the truth, and which are another one."""
    compared = 0
    wrong: list[tuple[str, int, str, str]] = []
    table = expected("city")
    for seconds, marked in list(city.marked())[::every]:
        causes = {name: table.reason(name, seconds) for name, _ in marked}
        answers = city.why([name for name, cause in causes.items() if cause], seconds)
        for name, answer in answers.items():
            found = str(answer.primary.reason) if answer else ""
            compared += 1
            if found != causes[name] and not table.explained(name, seconds, found):
                wrong.append((name, seconds, found, causes[name]))
    return compared, wrong


def test_arranged_workloads_wait_for_their_arranged_cause(city: City) -> None:
    compared, wrong = disagreements(city, every=9)
    assert wrong == []
    assert compared > 25


@pytest.mark.long
def test_arranged_workloads_wait_for_their_arranged_cause_at_every_minute(city: City) -> None:
    compared, wrong = disagreements(city, every=1)
    assert wrong == []
    assert compared > 260


def test_an_image_that_is_not_there_keeps_a_bound_pod_from_starting(city: City) -> None:
    found = why.document(city.store, city.uids["bad-image"], city.at(600), Policy())
    assert found is not None
    assert (found["state"], found["waits"], found["primary"]["reason"]) == ("starting", False, "STARTING")
    assert found["verdict"].endswith("image registry.example.org/platform/train:2.1 cannot be pulled.")


def test_the_uid_of_a_job_or_a_pod_means_its_workload(city: City) -> None:
    uid = city.uids["giant-never"]
    (row,) = city.store.rows("select job_uid from workload where workload_uid = $uid", {"uid": uid})
    found = why.document(city.store, str(row["job_uid"]), city.at(600), Policy())
    assert found is not None
    assert (found["uid"], found["primary"]["reason"]) == (uid, "NEVER_FITS")
    assert why.document(city.store, uid, city.at(10), Policy()) is None


def test_the_cause_of_ensemble_wait_changes_once_older_jobs_are_let_in(city: City) -> None:
    before, after = (
        city.why(["ensemble-wait"], seconds)["ensemble-wait"]
        for seconds in (FULL_UNTIL - 60, OLDER_FROM + 30)
    )
    assert before is not None
    assert after is not None
    assert (before.primary.reason, before.primary.evidence["used"]) == ("QUOTA_EXHAUSTED", 24)
    assert (after.primary.reason, after.primary.evidence["strict_head"]) == ("BEHIND_IN_QUEUE", 1)


def test_its_priority_is_that_of_its_class_with_what_its_age_adds(city: City) -> None:
    found = why.document(city.store, city.uids["giant-never"], city.at(2400), Policy())
    assert found is not None
    made = found["priority"]
    assert (made["class"], made["value"], made["next_class"]) == ("training", 50_000.0, "interactive")
    # A tenth of 50,000 each 6 hours: it is above 100,000 after eleven steps.
    waited = parse_instant(made["outranks_at"]) - parse_instant(made["submitted_at"])
    assert waited == 11 * 6 * 3_600_000


def test_a_gang_that_is_complete_is_not_told_to_be_incomplete(city: City) -> None:
    answer = city.why(["gang-late"], 1017.5)["gang-late"]
    assert answer is not None
    assert [str(one.reason) for one in answer.findings] == ["PREEMPTING", "COHORT_EXHAUSTED"]


def test_who_holds_the_quota_is_named_to_their_team_and_summed_for_others(city: City) -> None:
    found = why.document(city.store, city.uids["grasp-0873"], city.at(700), Policy())
    assert found is not None
    assert (found["holds"], found["primary"]["reason"]) == ("quota", "COHORT_EXHAUSTED")
    seen = folded(found, lambda team: team == "robotics")
    amount = sum(one["amount"] for one in found["holders"]) + found["other_holders"]["amount"]
    assert sum(one["amount"] for one in seen["holders"]) + seen["other_holders"]["amount"] == amount
    assert {one["team"] for one in seen["holders"]} == {"robotics"}
    foreign = city.store.rows(
        "select distinct unnest([name, user_name, workload_uid, job_uid]) as name from workload "
        "where team != 'robotics'"
    )
    text = json.dumps(seen)
    assert [row["name"] for row in foreign if row["name"] and f'"{row["name"]}"' in text] == []


def test_every_text_of_city_has_a_reason(city: City, *, golden_rewrite: bool) -> None:
    check_forms(texts_in(city.store), rewrite=golden_rewrite)


def test_the_command_says_it_in_its_first_line(
    city_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copy(city_file, tmp_path / "gpuledger.duckdb")
    asked = ["--data-dir", str(tmp_path), "--as-of", "2026-11-29T16:10:00Z"]
    assert run(["why", "platform/frag-victim", *asked]) == 0
    first, *more = capsys.readouterr().out.splitlines()
    assert first == (
        "platform/frag-victim: Free GPUs are scattered: 4 GPUs are free where it may run, "
        "at most 1 on one node, and it needs 2 on one node."
    )
    assert any(line.split()[:2] == ["platform", "frag-filler-2"] for line in more)
    assert run(["why", "nobody", *asked]) == 2
