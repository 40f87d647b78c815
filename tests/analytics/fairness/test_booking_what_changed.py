"""A sweep books those entities of which something changed, and that is as if it booked all."""

from datetime import timedelta
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fairness.books.accounts import Accounts
from analytics.fairness.books.course import pieces
from analytics.fairness.books.site import Site
from analytics.fairness.books.sweep import Sweep
from tests.analytics.fairness.sites import course, flavor, nodes, queue, quota, site
from tests.laws import law

QUEUES = ("nlp", "vision", "")
HALF_LIFE = timedelta(days=7)


def all_booked(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on every entity of a pool is booked at each of its changes."""
    book = Accounts.book

    def book_all(accounts: Accounts, *given: Any, **named: Any) -> None:
        book(accounts, *given, **named | {"touched": None})

    monkeypatch.setattr(Accounts, "book", book_all)


def swept(where: Site, random: Random) -> Accounts:
    """Work of random queues and teams on two nodes, swept."""
    accounts = Accounts.of(HALF_LIFE)
    found = [
        piece
        for number in range(30)
        for start in [random.randrange(300)]
        for placed in [start + random.randrange(1, 40)]
        for piece in pieces(
            course(
                f"w{number}", gpus=random.randrange(1, 5), queue=random.choice(QUEUES),
                team=random.choice("ab"), waits=((start, placed),),
                stays=((random.choice(("n1", "n2")), placed, placed + random.randrange(1, 90)),),
            ),
            where,
        )
    ]  # fmt: skip
    Sweep(where, accounts).run(found, 0)
    return accounts


def sites() -> list[Site]:
    """With quotas in one cohort, and without any."""
    two = (
        flavor("a100"),
        queue("nlp", "all", quota("a100", 4)),
        queue("vision", "all", quota("a100", 8)),
    )
    return [site(*two, *nodes("n1", "n2")), site(*nodes("n1", "n2"))]


@law(20, few=5)
@given(st.integers(0, 2**32))
def test_what_changed_is_enough(seed: int) -> None:
    for where in sites():
        found = swept(where, Random(seed))
        with pytest.MonkeyPatch.context() as monkeypatch:
            all_booked(monkeypatch)
            whole = swept(where, Random(seed))
        assert list(found.shares.entries()) == list(whole.shares.entries())
        assert list(found.teams.entries()) == list(whole.teams.entries())
        assert list(found.pools.entries()) == list(whole.pools.entries())
        assert found.shares.over
