"""How much of a window the recording `city` covers, by its objects and by its exporters."""

from itertools import pairwise

import pytest

from api.answers import Question
from domain.policy import Policy
from domain.window import FixedClock, Window, from_ms
from service.answers import Answers
from service.clocks import EndOfData
from service.gpu_metrics import keep_scrapes, scrape_files
from service.observation import share_of_window
from store.embedded import Store
from tests.recordings.comparing import TENANCY, show
from tests.shared import shared

pytestmark = [pytest.mark.recordings, pytest.mark.slow, pytest.mark.timeout(300)]

FIRST_LINE = "select min(start_ms) as at_ms from observed_stretch where kind = 'Pod'"
# "h100-02 refuses 634 to 659 [s from the start] ... and l40s-03 2033 to 2073", say the recording's notes.
SILENT = {"h100-02": [(634, 659), (2033, 2073)], "l40s-03": [(2033, 2073)]}
# An exporter is asked each 5 s, and an answer stands for 7.5 s.
STEP, STANDS = 5, 7.5


def test_twice_its_length_is_observed_in_half(city_store: Store) -> None:
    now_ms = EndOfData(city_store).now_ms()
    [row] = city_store.rows(FIRST_LINE)
    began_ms = int(str(row["at_ms"]))
    answers = Answers(city_store, TENANCY, Policy(), FixedClock(now_ms))
    length = from_ms(now_ms) - from_ms(began_ms)
    for window, expected in ((length, 1.0), (2 * length, 0.5), (length / 2, 1.0)):
        asked = Question(as_of_ms=now_ms, window=window)
        assert answers.metric("queue_wait_seconds", asked).coverage == pytest.approx(expected, abs=1e-6)
    [rows] = city_store.rows("select count(*) as stretches from observed_stretch where source = ''")
    # One per kind: each had a bookmark a minute, or Events all the time.
    assert rows["stretches"] == len(city_store.marks())


def test_an_exporter_that_refuses_leaves_a_gap_on_its_node_alone(city_store: Store) -> None:
    files = [shared(f"data/recorded/city/dcgm/{node}.scrapes.gz") for node in (*SILENT, "h100-03")]
    keep_scrapes(city_store, "city", scrape_files(files, None))
    [row] = city_store.rows("select min(start_ms) as at_ms from observed_stretch where node <> ''")
    began_ms = int(str(row["at_ms"]))
    for node, silent in {**SILENT, "h100-03": []}.items():
        stretches = [
            ((int(str(one["start_ms"])) - began_ms) / 1000, (int(str(one["end_ms"])) - began_ms) / 1000)
            for one in city_store.stretches(start_ms=0, as_of_ms=1 << 60)
            if one["node"] == node
        ]
        gaps = [(a, b) for (_, a), (b, _) in pairwise(stretches)]
        show(node, gaps)
        for start, end in silent:
            found = [(a, b) for a, b in gaps if start - 2 * STEP <= a <= start + STANDS + STEP]
            assert len(found) == 1, (node, start)
            assert abs(found[0][1] - end) <= 2 * STEP
        assert len(stretches) < 100
    window = Window(start_ms=began_ms + 2_045_000, end_ms=began_ms + 2_070_000)
    told = share_of_window(city_store, window, policy=Policy(), samples=True, clusters=("city",))
    assert told is not None
    # Of 40 nodes one of these three told.
    assert float(told) == pytest.approx(1 / 40)
