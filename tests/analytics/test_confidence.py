"""Confidence intervals of censored percentiles: against lifelines, and what must hold of any."""

import math
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lifelines import KaplanMeierFitter
from lifelines.utils import qth_survival_times

from analytics.censored import Curve, Stay, Stays, survival_quantiles
from analytics.confidence import Interval, intervals, limits

STAYS = st.lists(st.tuples(st.integers(1, 12), st.booleans()), min_size=1, max_size=40)


def observed(drawn: list[tuple[int, bool]]) -> list[Stay]:
    return [Stay(0, age, placed) for age, placed in drawn]


def fitted(stays: list[Stay]) -> KaplanMeierFitter:
    fitter = KaplanMeierFitter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitter.fit([stay.exit_ms for stay in stays], [stay.placed for stay in stays])
    return fitter


@given(STAYS)
def test_limits_are_those_of_lifelines(drawn: list[tuple[int, bool]]) -> None:
    stays = observed(drawn)
    theirs = fitted(stays).confidence_interval_
    ours = limits(Curve.of(Stays.of(stays)))
    for age_ms, survival, low, high in zip(*ours, strict=True):
        if survival:
            assert (low, high) == pytest.approx(tuple(theirs.loc[age_ms]), abs=1e-9)


@given(STAYS, st.sampled_from([0.25, 0.5, 0.9]))
def test_the_interval_holds_the_percentile(drawn: list[tuple[int, bool]], quantile: float) -> None:
    stays = observed(drawn)
    found, told = intervals(stays, [quantile]), survival_quantiles(stays, [quantile])
    assert found is not None
    assert told is not None
    (interval,) = found
    if interval.low_ms is not None:
        assert interval.low_ms <= told[0].value_ms
    # What the curve does not reach, its upper limit does not reach either.
    if interval.high_ms is not None:
        assert not told[0].lower_bound
        assert told[0].value_ms <= interval.high_ms
    assert interval.largest_ms == max(stay.exit_ms for stay in stays)


# Weeks until the relapse of acute myelogenous leukaemia without maintenance chemotherapy, from Miller 1981,
# the data set `aml` of R's package survival; 16 was cut off. R prints no limits for log-log; lifelines does.
WEEKS = (5, 5, 8, 8, 12, 16, 23, 27, 30, 33, 43, 45)


def test_the_median_of_a_textbook_sample_lies_where_lifelines_says() -> None:
    stays = [Stay(0, weeks, weeks != 16) for weeks in WEEKS]
    found = intervals(stays, [0.5])
    theirs = qth_survival_times(0.5, fitted(stays).confidence_interval_)
    low, high = (float(theirs[column].iloc[0]) for column in theirs)
    assert not math.isinf(high)
    assert found == [Interval(low_ms=round(low), high_ms=round(high), largest_ms=45)]


def test_more_of_the_same_waits_make_a_narrower_interval() -> None:
    few = [Stay(0, age, placed=True) for age in range(1, 11)]
    (wide,), (narrow,) = (intervals(few * times, [0.5]) or [] for times in (1, 20))
    assert (wide.low_ms, wide.high_ms) == (1, 8)
    assert narrow.low_ms is not None
    assert narrow.high_ms is not None
    assert narrow.high_ms - narrow.low_ms <= 2


def test_nothing_observed_has_no_interval() -> None:
    assert intervals([], [0.5]) is None
