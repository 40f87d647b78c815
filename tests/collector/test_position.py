"""The sights of a kind: lines of a watch and lists, as the few stretches that they are."""

from hypothesis import given
from hypothesis import strategies as st

from collector.position import Position
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
