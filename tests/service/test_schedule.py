"""The ticker: a run that takes longer than the interval."""

import logging
import threading

import pytest

from service.schedule import Ticker


def test_others_that_are_slow_hold_up_nothing_of_ours() -> None:
    let_go, done = threading.Event(), threading.Event()
    ticker = Ticker()
    for number in range(20):
        ticker.every(60, lambda: let_go.wait(90), name=f"slow {number}", asks_others=True)
    ticker.every(60, done.set, name="ours")
    ticker.start()
    assert done.wait(60)
    let_go.set()
    ticker.stop()


def test_a_run_left_out_because_the_last_one_still_runs_is_no_warning(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG, logger="gpuledger.schedule")
    let_go = threading.Event()
    ticker = Ticker()
    ticker.every(1, lambda: let_go.wait(90), name="slow")
    ticker.start()
    left_out = threading.Event()
    for _ in range(600):
        if any("left out" in record.message for record in caplog.records):
            break
        left_out.wait(0.1)
    let_go.set()
    ticker.stop()
    told = [record for record in caplog.records if "left out" in record.message]
    assert {record.levelno for record in told} == {logging.DEBUG}
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
