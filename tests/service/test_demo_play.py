"""A played sample: what its clock tells, and that the feed gives the same as an import at once."""

from pathlib import Path

import pytest

from collector.intake import Intake
from collector.recording import import_recording, readings
from domain.errors import SettingsError, UsageError
from domain.window import FixedClock, parse_instant
from sample_data import SETTINGS, SMALL, Sample
from sample_data.generate import END
from service.demo import demo
from service.play import Feed, PlayClock, Player
from service.refresh import Refresher
from service.settings_file import load_settings
from store.embedded import Store

HOUR_MS = 3_600_000
END_MS = parse_instant(END)


class SteppedClock:
    """A machine's clock that moves on by a step each time it is asked."""

    def __init__(self, at_ms: int, step_ms: int) -> None:
        self.at_ms = at_ms
        self.step_ms = step_ms

    def now_ms(self) -> int:
        self.at_ms += self.step_ms
        return self.at_ms


def test_the_clock_begins_its_length_before_the_end_and_meets_the_machine_there() -> None:
    begun = PlayClock.over(FixedClock(HOUR_MS), length_ms=HOUR_MS, speed=30)
    assert begun.end_ms == HOUR_MS + HOUR_MS // 30
    assert begun.now_ms() == begun.end_ms - HOUR_MS
    halfway = PlayClock(machine=FixedClock(begun.end_ms - 60_000), end_ms=begun.end_ms, speed=30)
    assert halfway.now_ms() == begun.end_ms - 30 * 60_000


def test_the_clock_stops_at_the_end_of_the_sample() -> None:
    late = PlayClock(machine=FixedClock(2 * HOUR_MS), end_ms=HOUR_MS, speed=30)
    assert late.now_ms() == HOUR_MS


def test_a_feed_hands_over_what_came_in_before_an_instant_and_tells_that_instant() -> None:
    with_store = Store.open(None)
    feed = Feed.of(SMALL, Intake("sample", with_store, with_store.known("sample")))
    handed = feed.advance(END_MS - HOUR_MS)
    assert handed == sum(reading.observed_ms < END_MS - HOUR_MS for reading in readings(SMALL))
    assert feed.now_ms() == END_MS - HOUR_MS
    assert feed.advance(END_MS - HOUR_MS) == 0
    seen = [mark["seen_ms"] for mark in with_store.marks()]
    assert all(isinstance(at_ms, int) and at_ms < END_MS - HOUR_MS for at_ms in seen)
    with_store.close()


def test_a_sample_that_was_played_gives_the_lives_of_one_that_was_imported() -> None:
    imported, played = Store.open(None), Store.open(None)
    import_recording(SMALL, "sample", imported)
    refresher = _refresher(played)
    feed = Feed.of(SMALL, Intake("sample", played, played.known("sample")))
    for minutes in range(60, -1, -5):
        feed.advance(END_MS + 1 - minutes * 60_000)
        refresher.refresh()
    _refresher(imported).refresh()
    for table in ("workload", "span", "attempt", "holding", "eviction"):
        ours, theirs = (store.rows(f"select * from {table} order by all", {}) for store in (played, imported))  # noqa: S608
        assert ours == theirs
        assert ours
    imported.close()
    played.close()


def test_a_player_moves_the_feed_to_the_end_and_stops() -> None:
    store = Store.open(None)
    feed = Feed.of(SMALL, Intake("sample", store, store.known("sample")))
    clock = PlayClock(machine=SteppedClock(END_MS - 4_000, 2_000), end_ms=END_MS, speed=600)
    with Player(feed, clock) as player:
        player.join(30)
    assert (feed.now_ms(), player.error) == (END_MS, None)
    store.close()


def test_a_speed_that_does_not_move_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a speed above 0"):
        demo(play=0)


def test_the_fortnight_is_not_played() -> None:
    with pytest.raises(UsageError, match="expected --sample small"):
        demo(sample=Sample.FORTNIGHT, play=30)


def test_the_demo_leaves_a_store_alone_that_is_there_already(tmp_path: Path) -> None:
    store_file = load_settings(SETTINGS, overrides={"store.data_dir": tmp_path}).store_file
    store_file.write_bytes(b"somebody's")
    with pytest.raises(UsageError, match="there is a store already"):
        demo(data_dir=tmp_path)
    assert store_file.read_bytes() == b"somebody's"


def test_the_demo_has_no_authentication_and_so_listens_on_this_machine_only(tmp_path: Path) -> None:
    with pytest.raises(SettingsError):
        demo(sample=Sample.SMALL, host="0.0.0.0", port=0, data_dir=tmp_path)  # noqa: S104 (refused)


def _refresher(store: Store) -> Refresher:
    settings = load_settings(SETTINGS)
    return Refresher(store=store, tenancy=settings.tenancy_rules(), policy=settings.thresholds())
