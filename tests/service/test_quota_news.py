"""Proposals whose week says something else by now: they are made anew by themselves, and leave a trace."""

import pytest

from domain.window import MS_PER_HOUR
from service.quota import reject
from service.quota_documents import detail, listing
from store import proposals as kept
from store.derived import Replacement
from tests.quota_site import END, MONDAY, NOW, WEEK_MS, Week, piece, queue, site
from tests.service.test_quota import moved, told

LATER = NOW + 2 * MS_PER_HOUR


def lost(week: Week, share: float, holder: str = "red") -> None:
    """More is known of a holder's week by now: that share of it was lost in crashes."""
    until_ms = MONDAY + round(share * WEEK_MS)
    pieces = [
        piece(f"w-{holder}", "crash_lost", MONDAY, until_ms, 1000.0),
        piece(f"w-{holder}", "useful", until_ms, END, 1000.0),
    ]
    week.store.replace(
        "c", [Replacement(table="waste_piece", rows=pieces, keys=("workload_uid", {f"w-{holder}"}))]
    )


def states(week: Week, as_of_ms: int = LATER) -> list[tuple[str, str]]:
    """Holder and state of every proposal."""
    return sorted((row["holder"], row["state"]) for row in listing(week.store, week.terms, as_of_ms).rows)


def test_open_proposals_are_made_anew_when_their_evidence_changes_and_say_why() -> None:
    week = site(red_lost=0.0)
    proposer = week.proposer
    assert proposer.refresh("c", NOW) == 0
    lost(week, 0.3)
    assert proposer.refresh("c", LATER) == 2
    assert moved(week, LATER) == {"red": ("cut", 40, 36), "blue": ("gift", 40, 44)}
    lost(week, 0.2)
    # 5 % too much of 40 are 2 GPUs.
    assert proposer.refresh("c", LATER + MS_PER_HOUR) == 2
    assert moved(week, LATER + MS_PER_HOUR) == {"red": ("cut", 40, 38), "blue": ("gift", 40, 42)}
    at_ms = LATER + MS_PER_HOUR
    assert states(week, at_ms).count(("red", "superseded")) == 1
    [first] = [
        row for row in listing(week.store, week.terms, at_ms).rows
        if (row["holder"], row["state"]) == ("red", "superseded")
    ]  # fmt: skip
    one = detail(week.store, week.terms, first["id"], at_ms)
    assert one is not None
    assert [(each["to_state"], each["note"]) for each in one["audit"]] == [
        ("proposed", "week 2026-W10, made anew: ratio 0 to 0.3"),
        ("superseded", "more is known of week 2026-W10: ratio 0.3 to 0.2"),
    ]


def test_what_is_told_of_other_holders_stays_with_them() -> None:
    week = site()
    proposer = week.proposer
    proposer.refresh("c", NOW)
    blue = told(week, "blue")["id"]
    lost(week, 0.2)
    proposer.refresh("c", LATER)
    note = kept.audit(week.store, blue)[-1]["note"]
    assert note == "more is known of week 2026-W10: of other holders of its pool"


def test_proposals_of_which_nothing_new_is_known_stay_what_they_are() -> None:
    week = site()
    week.proposer.refresh("c", NOW)
    before = states(week)
    # Another process begins to look at once.
    assert week.proposer.refresh("c", LATER) == 0
    lost(week, 0.301)
    assert week.proposer.refresh("c", LATER) == 0
    assert states(week) == before


def test_a_running_service_looks_once_an_hour() -> None:
    week = site()
    proposer = week.proposer
    proposer.refresh("c", NOW)
    lost(week, 0.2)
    assert proposer.refresh("c", NOW + MS_PER_HOUR - 1) == 0
    assert proposer.refresh("c", NOW + MS_PER_HOUR) == 2


def test_a_week_that_was_not_observed_enough_is_proposed_once_the_rest_came() -> None:
    week = site(lost_as="unknown")
    assert week.proposer.refresh("c", NOW) == 0
    lost(week, 0.3)
    assert week.proposer.refresh("c", LATER) == 2
    assert moved(week, LATER)["red"] == ("cut", 40, 36)


@pytest.mark.parametrize("acted", ["rejected", "changed"])
def test_a_pool_in_which_somebody_acted_is_left_as_it_is(acted: str) -> None:
    week = site()
    week.proposer.refresh("c", NOW)
    if acted == "rejected":
        reject(week.store, told(week, "red")["id"], who="ada", note="ours", at_ms=NOW + 1)
    else:
        week.see(queue("red", "36", "101"), NOW + 1)
    before = states(week)
    lost(week, 0.9)
    assert week.proposer.refresh("c", LATER) == 0
    assert states(week) == before
