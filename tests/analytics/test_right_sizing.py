"""The size that would do: it has the room, nothing smaller has, and a smaller peak never asks for more."""

from hypothesis import given
from hypothesis import strategies as st

from analytics.right_sizing import AS_IT_IS, HEADROOM, Size, instances, smallest

CARDS = st.sampled_from(
    [Size(81_920.0, "NVIDIA-A100-SXM4-80GB"), Size(143_771.0, "NVIDIA-H200"), Size(46_068.0, "L40S")]
)
MODELS = st.lists(
    st.sampled_from([Size(15_360.0, "T4"), Size(24_576.0, "A10"), Size(46_068.0, "L40S")]), max_size=3
)


@given(CARDS, MODELS, st.floats(0, 200_000))
def test_the_size_has_the_room_and_nothing_smaller_has(
    own: Size, models: list[Size], peak_mib: float
) -> None:
    offered = [
        size for size in (*instances(own.name, own.total_mib), *models) if size.total_mib < own.total_mib
    ]
    chosen = smallest(peak_mib, own, models)
    fitting = [size for size in offered if size.total_mib >= HEADROOM * peak_mib]
    if chosen == AS_IT_IS:
        assert not fitting
    else:
        assert min(size.total_mib for size in fitting) in {s.total_mib for s in offered if s.name == chosen}


@given(CARDS, MODELS, st.floats(0, 200_000), st.floats(0, 1))
def test_a_smaller_peak_never_asks_for_more(
    own: Size, models: list[Size], peak_mib: float, part: float
) -> None:
    room = {size.name: size.total_mib for size in (*instances(own.name, own.total_mib), *models)}
    large, small = (smallest(mib, own, models) for mib in (peak_mib, peak_mib * part))
    assert room.get(small, own.total_mib) <= room.get(large, own.total_mib)


def test_each_card_that_can_be_cut_has_instances_smaller_than_itself() -> None:
    cards = {"A30": 24_576, "A100-40GB": 40_960, "H100-80GB": 81_559, "H200": 143_771, "B200": 183_359}
    for name, total_mib in cards.items():
        found = instances(name, total_mib)
        assert found, name
        assert all(size.total_mib < total_mib for size in found)
