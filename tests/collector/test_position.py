"""The sights of a kind: lines of a watch and lists, as the few stretches that they are."""

from hypothesis import given
from hypothesis import strategies as st

from collector.position import Position, Positions
from domain.facts import ObjectKind, SourceMark
from domain.observed import Stretch, merged

SIGHTS = st.lists(st.tuples(st.integers(0, 40), st.booleans()), min_size=1, max_size=12)


@given(SIGHTS, st.sampled_from([0, 1, 4]))
def test_sights_in_any_order_are_the_stretches_that_they_merge_to(
    sights: list[tuple[int, bool]], patience_ms: int
) -> None:
    position = Position(patience_ms=patience_ms)
    for at_ms, resumed in sights:
        position.sighted(at_ms, resumed=resumed)
    single = [Stretch(start_ms=at_ms, end_ms=at_ms, resumed=resumed) for at_ms, resumed in sights]
    assert position.sights() == merged(single, patience_ms)
    assert position.sights() == []


@given(st.lists(st.integers(0, 40), min_size=1, max_size=12))
def test_a_line_of_a_watch_is_a_sight_of_a_watch_that_went_on(instants: list[int]) -> None:
    lines, sights = Position(patience_ms=3), Position(patience_ms=3)
    for at_ms in instants:
        lines.advance("", at_ms)
        sights.sighted(at_ms, resumed=True)
    assert lines.sights() == sights.sights()


def test_a_list_at_the_instant_of_a_line_tells_that_the_silence_before_was_not_watched() -> None:
    position = Position(patience_ms=5)
    for resumed in (True, False):
        position.sighted(30, resumed=resumed)
    assert position.sights() == [Stretch(start_ms=30, end_ms=30, resumed=False)]


def test_what_the_watch_repeats_takes_no_position_back() -> None:
    position = Position()
    position.advance("20", 2_000)
    position.advance("9", 1_000)
    assert (position.resource_version, position.seen_ms) == ("20", 2_000)
    # A list of before that reading is a replay; one that is later and of an older version is not.
    assert not position.begins_anew("9", 2_000)
    assert position.begins_anew("9", 2_001)
    assert not position.begins_anew("21", 2_001)


def test_a_cluster_that_says_for_the_first_time_who_it_is_is_no_other_one() -> None:
    mark = SourceMark(kind=ObjectKind.POD, resource_version="7", epoch=0, seen_ms=5)
    positions = Positions({ObjectKind.POD: mark})
    for cluster_uid, expected in (("one", (0, "7")), ("one", (0, "7")), ("two", (1, ""))):
        positions.identify(cluster_uid)
        assert (positions.histories, positions.of(ObjectKind.POD).resource_version) == expected
