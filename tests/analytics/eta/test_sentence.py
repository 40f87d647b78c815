"""How an estimate is told."""

from analytics.eta.calibration import Held
from analytics.eta.estimate import CLASS, Estimate
from analytics.eta.sentence import told
from domain.window import MS_PER_MINUTE as MINUTE


def said(held: Held, *, low: int = 10, high: int = 60) -> str:
    found = Estimate(
        low_ms=low * MINUTE, median_ms=20 * MINUTE, high_ms=high * MINUTE, rung=CLASS, like=20, started=20
    )
    return told(found, queue="", held=held, days=14, few_below=5)


def test_how_often_intervals_held_is_told_of_enough_of_them_only() -> None:
    plain = "It starts in about 20 min (80 %: 10 min to 1 h), from 20 like workloads of its class"
    assert said(Held(0, 0)) == said(Held(1, 0)) == said(Held(4, 4)) == f"{plain}."
    assert said(Held(5, 4)) == f"{plain}; 80 % of 5 such intervals held in the last 14 days."


def test_an_interval_whose_ends_are_told_alike_is_told_once() -> None:
    assert "(80 %: less than a minute)" in said(Held(0, 0), low=0, high=0)
