"""What a week says of the holders of quota, and what proposals say as of an earlier instant."""

from datetime import timedelta

import pytest

from api.answers import Question
from domain.calendar import finished_week
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import MS_PER_HOUR, FixedClock
from service.answers import Answers
from service.quota import reject
from service.quota_documents import detail, listing
from service.quota_evidence import evidence
from service.quota_site import pools
from store import proposals as kept
from store.derived import Replacement
from store.lives import Watermark
from tests.build import Books, make_workload
from tests.quota_site import (
    END,
    MONDAY,
    NOW,
    POOL,
    WEEK_MS,
    cohort,
    piece,
    queue,
    share,
    site,
    team_share,
)
from tests.service.test_quota import moved, read_until

DAY = 24 * MS_PER_HOUR


def test_what_a_person_decides_later_is_not_told_as_of_before_and_what_nobody_decides_on_expires() -> None:
    week = site()
    week.policy = Policy(quota_proposal_expires_after=timedelta(days=3))
    week.proposer.refresh("c", NOW)
    red = next(row["id"] for row in listing(week.store, week.terms, NOW + 1).rows if row["holder"] == "red")
    reject(week.store, red, who="ada", note="ours", at_ms=NOW + 5000)
    week.proposer.refresh("c", NOW + 3 * DAY)
    assert {row["state"] for row in listing(week.store, week.terms, NOW + 3 * DAY).rows} == {
        "rejected",
        "expired",
    }
    for at_ms, state, changes in (
        (NOW, "proposed", 1),
        (NOW + 4999, "proposed", 1),
        (NOW + 5000, "rejected", 2),
    ):
        then = detail(week.store, week.terms, red, at_ms)
        assert then is not None
        assert (then["state"], len(then["audit"])) == (state, changes)
        states = {row["id"]: row["state"] for row in listing(week.store, week.terms, at_ms).rows}
        assert states[red] == state
    assert detail(week.store, week.terms, red, NOW - 1) is None
    assert listing(week.store, week.terms, NOW - 1).rows == []


@pytest.mark.parametrize(("cluster", "model"), [("d", "A100"), ("c", "H100")])
def test_a_week_counts_its_own_cluster_and_models_and_owes_what_the_page_says(
    cluster: str, model: str
) -> None:
    week, books = site(), Books(cluster=cluster)
    make_workload(books, "more", team="red", queue="red", gpu_model=model)
    week.store.write_lives(cluster, ["more"], books.tables, Watermark("lives", 2))
    foreign = piece("more", "crash_lost", MONDAY, END, 500.0) | {"cluster": cluster, "gpu_model": model}
    week.store.replace(
        cluster, [Replacement(table="waste_piece", rows=[foreign], keys=("workload_uid", {"more"}))]
    )
    lacks = {"start_ms": END - DAY, "end_ms": END, "until_ms": END, "entitled": 8_000_000, "held": 3_000_000,
             "opening_debt": 80.0}  # fmt: skip
    for table, row in (("share_span", share("red", 80.0)), ("team_share_span", team_share("red"))):
        week.store.replace("c", [Replacement(table=table, rows=[row | lacks])])
    period = finished_week(NOW, week.proposer.agreement.zone)
    found = evidence(week.store, "c", period, week.policy).of(POOL, "red")
    assert (float(found.gpu_hours), float(found.ratio or 0)) == pytest.approx((1000, 0.3), rel=1e-4)
    page = Answers(week.store, Tenancy(), Policy(), FixedClock(NOW)).metric(
        "fairness_debt_gpu_hours", Question(as_of_ms=END, by=("queue",))
    )
    owed = {each.labels["queue"]: each.value for each in page.rows}["red"]
    assert owed is not None
    assert 80 < owed == pytest.approx(float(found.debt))


def test_the_cohorts_spare_is_no_free_quota() -> None:
    week = site(weeks=2, blue_debt=0, own=16)
    week.proposer.refresh("c", NOW)
    for changed in (queue("red", "36", "101"), cohort(20, "51")):
        week.see(changed, NOW)
    week.feed.store.append(read_until(END + WEEK_MS))
    week.proposer.refresh("c", END + WEEK_MS + 1)
    assert moved(week, END + WEEK_MS + 2) == {"red": ("cut", 36, 34), "": ("spare_up", 20, 22)}


def test_a_week_that_is_made_anew_is_one_week_of_good_conduct() -> None:
    week = site(red_lost=0.0)
    period = finished_week(NOW, week.proposer.agreement.zone)
    for at_ms in (NOW, NOW + 1):
        week.proposer.propose("c", period, at_ms, again=True)
    rows = kept.last_weeks(week.store, "c", END)
    good = {row["holder"]: row["good_weeks"] for row in rows if row["pool"] == POOL}
    assert (good["red"], good["blue"]) == (1, 1)


def test_a_namespace_holds_its_quota_in_place_of_a_queue_and_teams_are_those_of_the_week() -> None:
    week, books = site(), Books(cluster="c")
    make_workload(books, "plain", team="green", queue="", namespace="ml", gpu_model="A100")
    week.store.write_lives("c", ["plain"], books.tables, Watermark("lives", 2))
    held = piece("plain", "useful", MONDAY, END, 168.0)
    week.store.replace("c", [Replacement(table="waste_piece", rows=[held], keys=("workload_uid", {"plain"}))])
    holder = "namespace/ml"
    week.store.replace("c", [Replacement(table="share_span", rows=[share(holder, 0.0)])])
    users = [
        team_share(holder) | {"team": team, "start_ms": start_ms}
        for team, start_ms in (("green", END - 1), ("later", END))
    ]
    week.store.replace("c", [Replacement(table="team_share_span", rows=users)])
    found = evidence(week.store, "c", finished_week(NOW, week.proposer.agreement.zone), week.policy)
    told = found.of(POOL, holder)
    assert float(told.gpu_hours) == pytest.approx(168)
    assert told.teams == "green"


def test_an_object_says_as_of_before_what_it_said_then() -> None:
    week = site()
    week.see(queue("red", "32", "101"), NOW)

    def quota(as_of_ms: int) -> int:
        [found] = [each for each in pools(week.store, "c", as_of_ms) if each.pool == POOL]
        return found.holders["red"].gpus

    assert (quota(NOW), quota(NOW + 1)) == (40, 32)
