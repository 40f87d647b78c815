"""The sample as the product has it, whole and without one of its jobs."""

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from sample_data import SMALL
from tests.metamorphic.recordings import without
from tests.metamorphic.worlds import Pair, PairOf, World, chosen, world_of

# For the session: the tests of the API and those of the pages ask the same worlds.


@pytest.fixture(scope="session")
def whole() -> Iterator[World]:
    """The sample."""
    with world_of(SMALL) as world:
        yield world


@pytest.fixture(scope="session")
def pair_of(whole: World, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PairOf]:
    """Gives the sample with and without the job of a story; each is made once."""
    made: dict[str, Pair] = {}
    with ExitStack() as worlds:

        def pair(story: str) -> Pair:
            if story not in made:
                uid = chosen()[story]
                folder = tmp_path_factory.mktemp("without") / "recording"
                without(SMALL, uid, folder)
                made[story] = Pair(whole, worlds.enter_context(world_of(folder)), uid)
            return made[story]

        yield pair
