"""A proposal's states, what pays for it, and what undoes it; GPUs."""

from fractions import Fraction

import pytest

from analytics.quota.proposal import (
    Change,
    Live,
    Proposal,
    ProposalState,
    applied,
    as_far_as_funded,
    change_to_apply,
    changes_to_revert,
    moved_to,
    propose,
    superseded,
    waits_until_free,
)
from analytics.quota.rules import Leftover, Pool
from domain.errors import UsageError
from tests.analytics.quota.holders import WEEK, holder, pool


def proposals(subject: Pool) -> dict[str, Proposal]:
    """Approved ones, by holder."""
    made = propose(subject, name="a100", week="2026-W10", made_ms=WEEK, expires_ms=2 * WEEK)
    return {each.holder: moved_to(each, ProposalState.APPROVED) for each in made}


def two_cuts() -> dict[str, Proposal]:
    """`x` 40 to 36 and `y` 20 to 18 pay for `owed` 60 to 66."""
    return proposals(
        pool(holder("x", 40, ratio=0.5), holder("y", 20, ratio=0.5), holder("owed", 60, debt=50))
    )


LIVE = Live(quotas={"x": 40, "y": 20, "owed": 60, "": 0}, agreed=120)


def after(books: dict[str, Proposal], live: Live, *names: str) -> Live:
    """The cluster after these were applied, and the books too."""
    for name in names:
        change = change_to_apply(books[name], list(books.values()), live)
        assert change is not None
        live = live.after(change)
        books[name] = applied(books[name], change, list(books.values()))
    return live


def test_a_gift_names_the_cuts_that_fund_it() -> None:
    books = two_cuts()
    gift = books["owed"]
    assert [(each.proposal_id, each.gpus) for each in gift.funding] == [
        ("a100/604800000/x", 4),
        ("a100/604800000/y", 2),
    ]
    assert gift.from_free == 0


def test_a_gift_is_not_applied_before_its_cuts() -> None:
    books = two_cuts()
    assert change_to_apply(books["owed"], list(books.values()), LIVE) is None
    assert after(books, LIVE, "x", "y", "owed").quotas == {"x": 36, "y": 18, "owed": 66, "": 0}


@pytest.mark.parametrize("state", [ProposalState.REJECTED, ProposalState.REFUSED, ProposalState.APPROVED])
def test_a_cut_that_does_not_happen_shrinks_its_gift(state: ProposalState) -> None:
    books = two_cuts()
    if state is not ProposalState.APPROVED:
        books["y"] = moved_to(books["y"], state)
    live = after(books, LIVE, "x", "owed")
    assert live.quotas["owed"] == 64
    assert books["owed"].after == 64
    assert as_far_as_funded(books["owed"], list(books.values())) == books["owed"]


def test_reverting_a_cut_withdraws_its_gifts_first() -> None:
    books = two_cuts()
    live = after(books, LIVE, "x", "y", "owed")
    changes = changes_to_revert(books["x"], list(books.values()), live)
    assert changes == (
        Change(proposal_id="a100/604800000/owed", holder="owed", before=66, after=60),
        Change(proposal_id="a100/604800000/x", holder="x", before=36, after=40),
    )


def test_reverting_takes_later_gifts_that_lived_off_the_freed_quota() -> None:
    books = proposals(pool(holder("x", 40, ratio=0.5), holder("owed", 60), leftover=Leftover.UNUSED))
    live = after(books, Live(quotas={"x": 40, "owed": 60}, agreed=100), "x")
    later = propose(
        pool(holder("x", 40, 36, hours=1), holder("owed", 60, debt=50), leftover=Leftover.UNUSED),
        name="a100", week="2026-W11", made_ms=2 * WEEK, expires_ms=3 * WEEK,
    )  # fmt: skip
    books["owed"] = moved_to(later[0], ProposalState.APPROVED)
    live = after(books, live, "owed")
    assert live.quotas == {"x": 36, "owed": 64}
    changes = changes_to_revert(books["x"], list(books.values()), live)
    assert [(each.holder, each.after) for each in changes] == [("owed", 60), ("x", 40)]


def test_a_quota_that_somebody_moved_is_drift_and_is_not_written_over() -> None:
    books = two_cuts()
    moved = Live(quotas={**LIVE.quotas, "x": 39}, agreed=120)
    with pytest.raises(UsageError, match=r"a100/604800000/x: the quota of x is 39 GPU, expected 40"):
        change_to_apply(books["x"], list(books.values()), moved)
    live = after(books, LIVE, "x")
    edited = Live(quotas={**live.quotas, "x": 50}, agreed=120)
    with pytest.raises(UsageError, match="is 50 GPU, expected 36"):
        changes_to_revert(books["x"], list(books.values()), edited)


def test_a_cut_is_not_given_back_out_of_quota_that_is_not_there() -> None:
    books = two_cuts()
    live = after(books, LIVE, "x")
    taken = Live(quotas={**live.quotas, "owed": 63}, agreed=120)
    with pytest.raises(
        UsageError, match="giving back 4 GPU with 1 free would make more live than the 120 agreed"
    ):
        changes_to_revert(books["x"], list(books.values()), taken)


def test_what_was_applied_and_reverted_is_exactly_as_before() -> None:
    books = two_cuts()
    live = after(books, LIVE, "x", "y", "owed")
    for name in ("owed", "y", "x"):
        for change in changes_to_revert(books[name], list(books.values()), live):
            live = live.after(change)
            books[change.holder] = moved_to(books[change.holder], ProposalState.REVERTED)
    assert live == LIVE


def test_a_cut_waits_until_it_takes_nothing_away_from_running_work() -> None:
    books = two_cuts()
    assert [waits_until_free(books["x"], used) for used in (36, 37)] == [False, True]
    assert not waits_until_free(books["owed"], 100)


def test_a_final_state_has_no_way_out_and_says_so() -> None:
    books = two_cuts()
    rejected = moved_to(books["x"], ProposalState.REJECTED)
    with pytest.raises(UsageError, match="is rejected, not to become applied: possible is none, it is final"):
        moved_to(rejected, ProposalState.APPLIED)
    with pytest.raises(UsageError, match="approve it before it is applied"):
        change_to_apply(rejected, [], LIVE)
    with pytest.raises(UsageError, match="only an applied one can be reverted"):
        changes_to_revert(rejected, [], LIVE)


def test_a_new_period_supersedes_what_is_still_open() -> None:
    books = two_cuts()
    after(books, LIVE, "x")
    given_up = superseded(list(books.values()), "a100")
    assert {each.holder: each.state.value for each in given_up} == {"y": "superseded", "owed": "superseded"}
    assert superseded(list(books.values()), "h100") == ()


def test_each_proposal_has_a_sentence_for_its_team() -> None:
    books = two_cuts()
    assert (
        books["x"].because
        == "x goes from 40 to 36 GPUs: its hell ratio was 50.0% in week 2026-W10, over the 15% that are"
        " tolerated."
    )
    assert books["owed"].because == (
        "owed goes from 60 to 66 GPUs, above the 60 agreed: the cluster owed it 50.0 GPU-hours when"
        " week 2026-W10 ended."
    )
    unused = proposals(pool(holder("x", 40, ratio=0.5), leftover=Leftover.UNUSED))["x"]
    assert unused.because.endswith("Of what is lowered in this pool, 4 GPUs stay unused until given.")
    back = proposals(pool(holder("x", 40, 36, good=1), spare=4))
    assert back["x"].because == "x goes from 36 to 38 GPUs of the 40 agreed, after 2 or more good periods."
    assert back[""].because.startswith("The cohort's own quota goes from 4 to 2 GPUs")
    paid = proposals(pool(holder("x", 40, 44), holder("y", 4, 0, hours=0)))
    assert (
        paid["x"].because
        == "x goes from 44 to 40 GPUs: of its gift above the 40 agreed; it was owed 0.0 GPU-hours when"
        " week 2026-W10 ended."
    )


def test_evidence_says_what_the_proposal_rests_on() -> None:
    evidence = two_cuts()["x"].evidence
    assert evidence is not None
    assert (evidence.agreed, evidence.ratio, evidence.penalty) == (40, Fraction(1, 2), Fraction(12))


def test_a_gift_does_not_live_off_quota_that_was_freed_for_others() -> None:
    books = two_cuts()
    after(books, LIVE, "x")
    funded = as_far_as_funded(books["owed"], list(books.values()))
    assert (funded.after, [each.gpus for each in funded.funding]) == (64, [4])
