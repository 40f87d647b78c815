"""What is set aside of a file, counted by cause: reading it again adds only what it did not have before."""

from collections import Counter
from collections.abc import Iterable, Mapping

from collector.imports.row import Aside
from domain.facts import SetAside

_MOST_SAMPLE = 1000


class Asides:
    """
    Counts of one source in one cluster.

    Args:
        source: under which name it is counted, for example `jobs.txt`.
        known: how often which cause was counted before.
    """

    def __init__(self, source: str, known: Mapping[str, int]) -> None:
        self._source = source
        self._counted = Counter(known)
        self._seen: Counter[str] = Counter()

    def note(self, aside: Iterable[Aside], *, observed_ms: int) -> tuple[Counter[str], list[SetAside]]:
        """How many lines were set aside by cause, and the rows of what was not counted before."""
        counted: Counter[str] = Counter()
        samples: dict[str, Aside] = {}
        for one in aside:
            counted[one.because] += one.lines
            samples.setdefault(one.because, one)
        self._seen += counted
        found: list[SetAside] = []
        for because, sample in samples.items():
            more = self._seen[because] - self._counted[because]
            if more <= 0:
                continue
            self._counted[because] += more
            text = f"line {sample.line}: {sample.sample}"[:_MOST_SAMPLE]
            found.append(
                SetAside(
                    source=self._source, because=because, sample=text, observed_ms=observed_ms, count=more
                )
            )
        return counted, found
