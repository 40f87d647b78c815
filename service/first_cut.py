"""
Whether the lives of what clusters run now were cut since the start, or since the books were made anew.

Until then a name that is not found says nothing: it may stand for work that is not read or not cut yet.
"""

from collections.abc import Callable, Collection

from collector.kube.watch_steps import Outcome
from domain.facts import ObjectKind
from domain.window import Clock
from store.embedded import Store

# What tells that there is nothing to be read.
_NOTHING_TO_READ = (f"{Outcome.NO_PERMISSION}:", f"{Outcome.NOT_INSTALLED}:")


class FirstCut:
    """
    Knows which clusters were read and cut since it was made.

    Whoever brings the books up to date or makes them anew does so alone, so that nothing is locked here.

    Args:
        store: has how far each kind was read.
        clusters: those that are read now.
        clock: when reading began.

    Attributes:
        was_refreshed: whether the books were brought up to date at all since then.
    """

    def __init__(self, store: Store, clusters: Collection[str], clock: Clock) -> None:
        self._store = store
        self._clusters = frozenset(clusters)
        self._began_ms = clock.now_ms()
        self._cut: frozenset[str] = frozenset()
        self.was_refreshed = False

    def begin_anew(self) -> None:
        """The books are other ones than before: nothing in them was cut yet."""
        self._cut = frozenset()
        self.was_refreshed = False

    def after(self, refresh: Callable[[], int]) -> int:
        """Bring the books up to date; gives what `refresh` gives. What was read before is cut then."""
        read = self._read()
        made = refresh()
        self._cut |= read
        self.was_refreshed = True
        return made

    def is_done(self, cluster: str) -> bool:
        """Whether a name that is not found in a cluster stands for nothing."""
        return cluster in self._cut

    def _read(self) -> frozenset[str]:
        """Clusters whose pods were seen since the start, or may not be."""
        return frozenset(
            str(mark["cluster"])
            for mark in self._store.marks()
            if mark["kind"] == ObjectKind.POD
            and mark["cluster"] in self._clusters
            and (
                int(str(mark["seen_ms"])) >= self._began_ms
                or str(mark["last_error"]).startswith(_NOTHING_TO_READ)
            )
        )
