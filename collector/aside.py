"""What was read and not understood, until it is committed."""

from collector.decoding import Payload, sample_of
from domain.facts import SetAside


class Aside:
    """Counts by source and reason, with the first sample of each."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], SetAside] = {}

    def __len__(self) -> int:
        return len(self._found)

    def add(
        self, source: str, because: str, sample: Payload | str, *, observed_ms: int, count: int = 1
    ) -> None:
        """Count something that was set aside."""
        earlier = self._found.get((source, because))
        self._found[source, because] = SetAside(
            source=source,
            because=because,
            sample=earlier.sample if earlier else sample_of(sample),
            observed_ms=earlier.observed_ms if earlier else observed_ms,
            count=count + (earlier.count if earlier else 0),
        )

    def taken(self) -> list[SetAside]:
        """All that was counted; from here on it is counted anew."""
        found, self._found = list(self._found.values()), {}
        return found
