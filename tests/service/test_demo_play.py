"""A played sample: what its clock tells, and that the feed gives the same as an import at once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collector.dcgm.answers import Part
from collector.dcgm.parquet import read_parquet
from collector.dcgm.samples import Gathered
from collector.intake import Intake
from collector.recording import import_recording, readings
from domain.errors import SettingsError, UsageError
from domain.gpu_sample import Field
from domain.window import Clock, FixedClock, parse_instant
from sample_data import SETTINGS, SMALL, Sample, fortnight
from sample_data.fortnight import SAMPLES
from sample_data.fortnight import SETTINGS as FORTNIGHT_SETTINGS
from sample_data.fortnight.generate import generate
from sample_data.fortnight.site import little_site
from sample_data.generate import END
from service import demo as shown
from service.books import Books, books_of
from service.demo import demo
from service.gpu_metrics import keep_parts
from service.play import Feed, Meters, PlayClock, Player
from service.refresh import Refresher
from service.settings_file import load_settings
from store.embedded import Store
from tests.collector_live.running import HandClock

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


def test_meters_hand_over_samples_before_an_instant_and_tell_how_far_they_were_read() -> None:
    store = Store.open(None)
    meters = Meters(store=store, cluster="sample", rest=_parts(range(10), range(10, 12)))
    # As many as are before it; none twice; from one part into the next.
    assert [meters.advance(END_MS + minutes * 60_000) for minutes in (0, 3, 3, 11, 60)] == [0, 3, 0, 8, 1]
    assert store.rows("select count(*) as n from gpu_sample", {}) == [{"n": 12}]
    (mark,) = store.sample_marks()
    assert mark["read_until_ms"] == END_MS + 11 * 60_000 + 1
    store.close()


def test_a_cut_counts_what_was_set_aside_once() -> None:
    (part,) = _parts(range(4))
    part.samples.set_aside["odd"] = 2
    before, after = part.cut(END_MS + 60_000)
    assert [one.samples.frame.height for one in (before, after)] == [1, 3]
    assert [one.samples.set_aside["odd"] for one in (before, after)] == [2, 0]
    assert (before.until_ms, after.until_ms) == (END_MS + 60_000, part.until_ms)


def test_a_recorded_sample_keeps_its_own_time() -> None:
    began = FixedClock(100 * HOUR_MS)
    clock = PlayClock.before(END_MS, began, length_ms=HOUR_MS, speed=60)
    assert clock.now_ms() == END_MS - HOUR_MS
    later = replace(clock, machine=FixedClock(100 * HOUR_MS + 30_000))
    assert later.now_ms() == END_MS - HOUR_MS // 2
    assert replace(clock, machine=FixedClock(200 * HOUR_MS)).now_ms() == END_MS


@pytest.mark.long
def test_a_played_day_with_gpu_metrics_keeps_the_books_of_one_that_was_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate(seed=1, end_ms=END_MS, site=little_site(), days=1).write(tmp_path)
    imported, played = Store.open(None), Store.open(None)
    import_recording(tmp_path, "sample", imported)
    keep_parts(imported, "sample", read_parquet(tmp_path / SAMPLES, source="dcgm"))
    monkeypatch.setattr(fortnight, "FORTNIGHT", tmp_path)
    scene = shown._scene(Sample.FORTNIGHT, played, tmp_path, speed=60, minutes=180, say=print)
    feed = scene.clock
    assert isinstance(feed, Feed)
    assert (feed.now_ms(), scene.play is None) == (END_MS - 3 * HOUR_MS, False)
    books = _books(played, feed)
    for minutes in (120, 90, 61, 60, 0):
        feed.advance(END_MS - minutes * 60_000)
        books.refresh()
        (last,) = played.rows("select max(at_ms) as at_ms from gpu_sample", {})
        assert END_MS - (minutes + 1) * 60_000 <= int(str(last["at_ms"])) < END_MS - minutes * 60_000
    _books(imported, FixedClock(END_MS)).refresh()
    for table in ("workload", "activity_span", "activity_holding", "gpu_hour", "waste_piece"):
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
        player.join(60)
    assert (feed.now_ms(), player.error) == (END_MS, None)
    store.close()


def test_the_time_of_a_sample_waits_for_whoever_measures_and_does_not_catch_up() -> None:
    store, machine, measured = Store.open(None), HandClock(100 * HOUR_MS), [END_MS - HOUR_MS]
    feed = Feed.of(SMALL, Intake("sample", store, store.known("sample")))
    clock = PlayClock.before(END_MS, machine, length_ms=HOUR_MS, speed=60)
    player = Player(feed, clock, measured=lambda: measured[-1])

    def played_seconds(after_seconds: int) -> int:
        machine.at_ms += after_seconds * 1000
        return (player._now_ms() - END_MS + HOUR_MS) // 1000

    # Four seconds of the machine's may pass unmeasured, that is four minutes of the sample's.
    assert [played_seconds(after) for after in (0, 3, 1, 1, 60)] == [0, 180, 240, 240, 240]
    measured.append(END_MS - HOUR_MS + 240_000)
    assert [played_seconds(after) for after in (0, 1, 1)] == [240, 300, 360]
    store.close()


def test_a_speed_that_does_not_move_is_refused() -> None:
    with pytest.raises(UsageError, match="expected a speed above 0"):
        demo(play=0)


def test_how_much_is_played_is_said_with_a_speed() -> None:
    with pytest.raises(UsageError, match="expected a speed too"):
        demo(played_minutes=30)


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


def _books(store: Store, clock: Clock) -> Books:
    settings = load_settings(FORTNIGHT_SETTINGS)
    return books_of(store, tenancy=settings.tenancy_rules(), policy=settings.thresholds(), clock=clock)


def _parts(*minutes: range) -> Iterator[Part]:
    """A part for each range: a sample of one GPU in each of these minutes from the end on."""
    for of_part in minutes:
        gathered = Gathered()
        number = gathered.series({"UUID": "GPU-1", "Hostname": "n1", "modelName": "NVIDIA-L40S"})
        assert number is not None
        for minute in of_part:
            gathered.add(number, Field.ENGINE, END_MS + minute * 60_000, 0.5)
        until_ms = END_MS + of_part[-1] * 60_000 + 1
        yield Part(source="dcgm", until_ms=until_ms, samples=gathered.samples(60_000))
