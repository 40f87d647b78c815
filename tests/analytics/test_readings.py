"""Figures of single readings against the plain way of finding them: every reading written out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.activity.readings import QUANTILES, counted, inactive, quantiles, weighted_quantile
from analytics.censored import started_quantile
from domain.metric import Ask
from domain.window import Window

DEVICES, LEVELS = st.sampled_from(["GPU-0", "GPU-1"]), st.sampled_from([0.0, 1e-6, 0.25, 1.0])
TOLD = st.lists(st.tuples(DEVICES, LEVELS, st.integers(1, 9)), min_size=1)
ASK = Ask(window=Window(start_ms=0, end_ms=1), by=("device",))


@given(TOLD)
def test_readings_that_are_counted_have_the_figures_of_readings_written_out(
    told: list[tuple[str, float, int]],
) -> None:
    rows = [
        {"device": device, "activity": activity, "readings": number, "dropped": False}
        for device, activity, number in told
    ]
    for device in {device for device, _, _ in told}:
        written = [activity for name, activity, number in told if name == device for _ in range(number)]
        found = {
            sample.labels["quantile"]: sample
            for sample in quantiles(rows, ASK)
            if sample.labels["device"] == device
        }
        for quantile in QUANTILES:
            assert found[str(quantile)].value == pytest.approx(started_quantile(written, quantile))
            assert found[str(quantile)].few == (len(written) < ASK.policy.few_below)
        [share] = [one for one in inactive(rows, ASK) if one.labels["device"] == device]
        assert share.value == written.count(0.0) / len(written)
        [count] = [one for one in counted(rows, ASK) if one.labels["device"] == device]
        assert count.value == len(written)


def test_a_quantile_between_two_readings_lies_between_them() -> None:
    assert weighted_quantile([(0.0, 1), (0.5, 1), (1.0, 2)], 0.9) == 1.0
    assert weighted_quantile([(0.0, 1), (1.0, 1)], 0.9) == 0.9
