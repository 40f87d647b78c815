"""From a week in the store to proposals, their patches, and what becomes of them."""

from collections.abc import Mapping
from typing import Any

import pytest

from domain.calendar import billing_zone, finished_week
from domain.errors import UsageError
from domain.policy import Policy, QuotaRatio
from domain.window import MS_PER_HOUR, format_instant, parse_instant
from service.quota import reject
from service.quota_documents import detail, listing
from service.quota_settings import QuotaSettings
from store import proposals as kept
from tests.json_patch import TestFailedError, applied, differences
from tests.quota_site import END, MONDAY, POOL, WEEK_MS, Week, cohort, queue, site

NOW = END + MS_PER_HOUR


def moved(week: Week, as_of_ms: int = NOW) -> dict[str, tuple[str, int, int]]:
    """Open proposals by holder: kind, before and after; the cohort is the empty name."""
    return {
        row["holder"]: (row["kind"], row["before_gpus"], row["after_gpus"])
        for row in listing(week.store, week.terms, as_of_ms).rows
        if row["state"] == "proposed"
    }


def told(week: Week, holder: str, as_of_ms: int = NOW) -> Mapping[str, Any]:
    [found] = [
        row
        for row in listing(week.store, week.terms, as_of_ms).rows
        if row["holder"] == holder and row["state"] == "proposed"
    ]
    one = detail(week.store, week.terms, found["id"], as_of_ms)
    assert one is not None
    return one


def test_a_week_of_crashes_is_a_cut_that_pays_for_what_another_is_owed() -> None:
    week = site()
    assert week.proposer.refresh("c", NOW) == 2
    # 30 % lost is 15 % too much: 6 of 40 GPUs, of which a week moves 4.
    assert moved(week) == {"red": ("cut", 40, 36), "blue": ("gift", 40, 44)}
    red = told(week, "red")
    assert red["evidence"] == {
        "agreed_gpus": 40, "hell_ratio": pytest.approx(0.3), "penalty_gpus": pytest.approx(6),
        "debt_gpu_hours": 0, "gpu_hours": pytest.approx(1000, rel=1e-4), "coverage": 1,
    }  # fmt: skip
    assert "30.0%" in red["because"]
    assert (red["pool"], red["week"], red["teams"]) == (POOL, "2026-W10", ["red"])
    assert told(week, "blue")["funding"] == [{"proposal": red["id"], "gpus": 4}]


@pytest.mark.parametrize(
    ("ratio", "expected"),
    [(QuotaRatio.HELL, {}), (QuotaRatio.WASTAGE, {"red": ("cut", 40, 36), "blue": ("gift", 40, 44)})],
)
def test_idleness_is_held_against_a_quota_only_where_the_settings_say_so(
    ratio: QuotaRatio, expected: dict[str, tuple[str, int, int]]
) -> None:
    week = site(lost_as="idle")
    week.policy = Policy(quota_ratio=ratio)
    week.proposer.refresh("c", NOW)
    assert moved(week) == expected
    if expected:
        shown = told(week, "red")["evidence"]
        assert shown["wastage_ratio"] == pytest.approx(0.3)
        assert "hell_ratio" not in shown


def test_what_nobody_is_owed_goes_to_the_cohort() -> None:
    week = site(blue_debt=0, own=16)
    week.proposer.refresh("c", NOW)
    assert moved(week) == {"red": ("cut", 40, 36), "": ("spare_up", 16, 20)}
    assert told(week, "")["because"] == (
        "The cohort's own quota goes from 16 to 20 GPUs: what is cut and given to nobody is there to borrow."
    )


def test_without_a_cohorts_own_quota_a_cut_is_only_as_large_as_its_gifts() -> None:
    for debt, expected in ((0.0, {}), (80.0, {"red": ("cut", 40, 36), "blue": ("gift", 40, 44)})):
        week = site(blue_debt=debt, own=None)
        week.proposer.refresh("c", NOW)
        assert moved(week) == expected


@pytest.mark.parametrize(
    "why",
    [{"gpu_hours": 40.0}, {"read_until_ms": MONDAY + WEEK_MS // 2}, {"red_lost": 0.15, "blue_debt": 0.0}],
)
def test_nothing_moves_on_too_little_or_without_a_cause(why: dict[str, Any]) -> None:
    week = site(**why)
    assert week.proposer.refresh("c", NOW) == 0
    assert moved(week) == {}


@pytest.mark.parametrize("holder", ["red", "blue", ""])
def test_the_patch_fits_the_object_as_last_read_and_its_inverse_restores_it(holder: str) -> None:
    week = site(own=16, blue_debt=0.0 if not holder else 80.0)
    week.proposer.refresh("c", NOW)
    found = told(week, holder)
    uid = f"ClusterQueue-{holder}" if holder else "Cohort-main"
    before = week.objects[uid]
    after = applied(found["patch"], before)
    [(path, was, now)] = differences(before, after)
    place = "/spec/resourceGroups/0/flavors/0/resources/0" if not holder else (
        "/spec/resourceGroups/1/flavors/1/resources/1")  # fmt: skip
    assert path == f"{place}/nominalQuota"
    assert (str(was), str(now)) == (str(found["before_gpus"]), str(found["after_gpus"]))
    assert type(was) is type(now)
    assert applied(found["inverse"], after) == before
    assert found["command"].startswith(
        "kubectl patch cohorts.kueue.x-k8s.io main" if not holder else "kubectl patch clusterqueues.kueue"
    )


def test_a_quota_that_somebody_moved_since_is_drifted_and_an_old_patch_is_refused() -> None:
    week = site()
    week.proposer.refresh("c", NOW)
    old = told(week, "red")["patch"]
    week.see(queue("red", "32", "101"), NOW)
    with pytest.raises(TestFailedError):
        applied(old, week.objects["ClusterQueue-red"])
    found = told(week, "red", NOW + 1)
    assert (found["patch"], found["live_gpus"]) == (None, 32)
    assert found["no_patch_because"] == "drifted: the object says 32 GPU, and this was made for 40"


def test_a_change_that_is_not_of_the_quota_gives_a_patch_for_the_new_version() -> None:
    week = site()
    week.proposer.refresh("c", NOW)
    week.see(queue("red", "40", "102", stopPolicy="Hold"), NOW)
    found = told(week, "red", NOW + 1)
    assert found["patch"][0]["value"] == "102"
    assert differences(
        week.objects["ClusterQueue-red"], applied(found["patch"], week.objects["ClusterQueue-red"])
    )


def test_a_week_is_proposed_once_and_the_next_one_supersedes_it() -> None:
    week = site(weeks=2)
    assert week.proposer.refresh("c", NOW) == 2
    assert week.proposer.refresh("c", NOW + 1) == 0
    first = {row["id"] for row in listing(week.store, week.terms, NOW).rows}
    with pytest.raises(UsageError, match="made already"):
        week.proposer.propose("c", finished_week(NOW, billing_zone("UTC")), NOW + 2)
    week.feed.store.append(read_until(END + WEEK_MS))
    # An hour before it would have expired.
    week.proposer.refresh("c", END + WEEK_MS)
    states = {row["id"]: row["state"] for row in listing(week.store, week.terms, END + WEEK_MS + 1).rows}
    assert {states[each] for each in first} == {"superseded"}
    audit = [(row["from_state"], row["to_state"]) for row in kept.audit(week.store, min(first))]
    assert audit == [("", "proposed"), ("proposed", "superseded")]


def test_a_proposal_that_nobody_decides_on_expires() -> None:
    week = site()
    week.proposer.refresh("c", NOW)
    week.proposer.refresh("c", NOW + WEEK_MS // 2)
    assert set(moved(week)) == {"red", "blue"}
    week.policy = type(week.policy)(quota_proposal_expires_after=week.policy.window)
    kept_rows = listing(week.store, week.terms, NOW).rows
    assert {row["expires_at"] for row in kept_rows} == {"2026-03-16T01:00:00.000Z"}
    week.proposer._expire("c", NOW + WEEK_MS)
    assert {row["state"] for row in listing(week.store, week.terms, NOW + WEEK_MS).rows} == {"expired"}


def test_a_rejected_proposal_says_who_and_why_and_stays_rejected() -> None:
    week = site()
    week.proposer.refresh("c", NOW)
    red = told(week, "red")
    reject(week.store, red["id"], who="ada", note="the crashes were ours", at_ms=NOW + 5)
    after = detail(week.store, week.terms, red["id"], NOW + 6)
    assert after is not None
    assert after["state"] == "rejected"
    assert [(each["to_state"], each["who"], each["note"]) for each in after["audit"]] == [
        ("proposed", "gpuledger", "week 2026-W10"),
        ("rejected", "ada", "the crashes were ours"),
    ]
    with pytest.raises(UsageError, match="only an open one"):
        reject(week.store, red["id"], who="bob", note="", at_ms=NOW + 7)
    with pytest.raises(UsageError, match="there is none"):
        reject(week.store, "q-nothing", who="bob", note="", at_ms=NOW + 7)


def test_what_was_agreed_is_the_settings_else_the_quota_of_the_first_week() -> None:
    week = site(terms=QuotaSettings(agreed={POOL: {"red": 80}}))
    week.proposer.refresh("c", NOW)
    # 15 % too much of 80 are 12 GPUs; red stands at 40 already, which is the floor.
    assert "red" not in moved(week)
    weeks = "select holder, agreed, live from quota_week where pool = 'main/a100' order by holder"
    rows = week.store.rows(weeks)
    assert [(row["holder"], row["agreed"], row["live"]) for row in rows] == [
        ("", 0, 0), ("blue", 40, 40), ("red", 80, 40)
    ]  # fmt: skip


def test_what_was_agreed_stays_when_a_cut_was_made() -> None:
    week = site(weeks=2)
    week.proposer.refresh("c", NOW)
    week.see(queue("red", "36", "101"), NOW)
    week.see(cohort(0, "51"), NOW)
    week.feed.store.append(read_until(END + WEEK_MS))
    week.proposer.refresh("c", END + WEEK_MS + 1)
    rows = week.store.rows(
        "select agreed, live from quota_week where holder = 'red' and pool = 'main/a100' order by week"
    )
    assert [(row["agreed"], row["live"]) for row in rows] == [(40, 40), (40, 36)]
    # The second week moves on towards 34.
    assert moved(week, END + WEEK_MS + 2)["red"] == ("cut", 36, 34)


def test_units_are_those_of_the_pool() -> None:
    week = site(terms=QuotaSettings(units={POOL: 8}))
    week.proposer.refresh("c", NOW)
    # The penalty of 6 GPUs is less than a node.
    assert moved(week) == {}


def test_a_cut_names_the_running_workloads_that_may_be_reclaimed() -> None:
    week = site()
    week.proposer.refresh("c", NOW)
    assert (told(week, "red")["exposed"], told(week, "red")["used_gpus"]) == ([], 0)
    for number, gpus in enumerate((30, 8, 2)):
        _reserve(week, f"run-{number}", gpus, admitted_ms=NOW - 100 + number)
    found = told(week, "red")
    # The blue queue never reclaims, so that nobody is exposed; 40 are used, and the cut leaves 36.
    assert (found["exposed"], found["used_gpus"], found["waits_until_free"]) == ([], 40, True)
    week.see(queue("blue", "40", "101", preemption={"reclaimWithinCohort": "Any"}), NOW - 1)
    found = told(week, "red")
    # The newest goes first: 2 GPUs are not enough, 8 more are.
    assert [each["uid"] for each in found["exposed"]] == ["run-2", "run-1"]
    assert told(week, "blue")["exposed"] == []


@pytest.mark.parametrize(
    ("zone", "as_of", "label", "start_at"),
    [
        # Sunday, 23:30 UTC: in Berlin it is Monday, and the week is over.
        ("Europe/Berlin", "2026-03-08T23:30:00Z", "2026-W10", "2026-03-01T23:00:00.000Z"),
        ("UTC", "2026-03-08T23:30:00Z", "2026-W09", "2026-02-23T00:00:00.000Z"),
        # Monday, 03:30 UTC: in New York it is Sunday still.
        ("America/New_York", "2026-03-02T03:30:00Z", "2026-W08", "2026-02-16T05:00:00.000Z"),
        # The clock changed on the last day of the week: it has 167 hours.
        ("Europe/Berlin", "2026-03-29T22:00:00Z", "2026-W13", "2026-03-22T23:00:00.000Z"),
    ],
)
def test_the_finished_week_is_that_of_the_billing_zone(
    zone: str, as_of: str, label: str, start_at: str
) -> None:
    found = finished_week(parse_instant(as_of), billing_zone(zone))
    assert (found.label, format_instant(found.start_ms)) == (label, start_at)
    assert found.end_ms <= parse_instant(as_of)


def test_a_running_week_is_not_proposed() -> None:
    week = site()
    running = finished_week(NOW + WEEK_MS, billing_zone("UTC"))
    with pytest.raises(UsageError, match="finished week"):
        week.proposer.propose("c", running, NOW)


def _reserve(week: Week, uid: str, gpus: int, *, admitted_ms: int) -> None:
    from store.lives import Watermark
    from tests.build import Books, make_workload

    books = Books(cluster="c")
    make_workload(books, uid, team="red", queue="red", namespace="red", gpus=gpus)
    books.add(
        "reservation", workload_uid=uid, flavor="a100", micro_gpus=gpus * 1_000_000, start_ms=admitted_ms,
        end_ms=None,
    )  # fmt: skip
    week.store.write_lives("c", [uid], books.tables, Watermark("lives", 1))


def read_until(at_ms: int) -> Any:
    from domain.facts import Batch, ObjectKind, SourceMark
    from domain.observed import Stretch

    mark = SourceMark(kind=ObjectKind.POD, resource_version="2", epoch=0, seen_ms=at_ms)
    seen = [Stretch(start_ms=END, end_ms=at_ms)]
    return Batch(cluster="c", marks={ObjectKind.POD: mark}, sights={ObjectKind.POD: seen})
