"""Whatever an API server does while a recorded cluster is read, the same lives come of it: 2 of 2."""

import pytest

from tests.collector_live.played import play, seeds

pytestmark = [pytest.mark.recordings, pytest.mark.long]


@pytest.mark.parametrize("seed", seeds(100, 200))
def test_a_schedule_of_trouble_gives_the_lives_of_the_undisturbed_run(seed: int) -> None:
    play(seed)
