"""200 random sites over 52 periods: no violation of sum, floor, step and cap, and nobody is stuck."""

import pytest

from tests.analytics.quota.sites import Site


@pytest.mark.parametrize("first", range(0, 200, 50))
def test_no_site_breaks_a_limit_and_everybody_gets_back_what_was_agreed(first: int) -> None:
    writes = reverts = 0
    for seed in range(first, first + 50):
        site = Site.made_up(seed)
        for _ in range(52):
            site.pass_a_period()
        writes += site.writes
        reverts += site.reverts
        for _ in range(40):
            site.pass_a_period(calm=True)
        short = {
            name: (live, site.agreed[name])
            for name, live in site.live.items()
            if name and live < site.agreed[name]
        }
        assert short == {}, f"seed {seed}, {site.leftover}"
    # The sites are not trivial: they wrote and undid a lot.
    assert writes > 50 * 52
    assert reverts > 50
