"""Answers of a server that may lack samples: why, and when they are asked for again."""

from dataclasses import dataclass
from typing import Final

# A stretch is asked for again when such a part of its length has passed: soon while it is short, and however
# long it lasts, the whole of it costs a few readings a day.
_PART_WAITED: Final = 8


@dataclass(slots=True)
class Lacking:
    """
    What a source may lack from where it counts as read to where it was asked last.

    Args:
        because: why; empty where all is there.
    """

    because: str = ""
    # Until it was asked for alone nobody knows: it may be the old that is not there.
    _newest_lacks: bool = True
    _asked_ms: int = 0
    _wait_ms: int = 0

    def is_early(self, now_ms: int) -> bool:
        """Whether it was asked for again lately: then only what is new is read."""
        # Of a clock that was ahead and is set right it is long ago, however far ahead it was.
        return bool(self.because) and 0 <= now_ms - self._asked_ms < self._wait_ms

    def ask(self, now_ms: int, *, length_ms: int, step_ms: int) -> None:
        """All of it is asked for now; noted before, for a server that then has no answer in time."""
        self._asked_ms, self._wait_ms = now_ms, max(step_ms, length_ms // _PART_WAITED)

    def take(self, told: str, *, of_new: bool) -> None:
        """
        Note why answers may lack samples, or that they are whole.

        Args:
            told: why, or empty.
            of_new: only what is new was asked for. When that is whole again, the rest may be there too.
        """
        if of_new:
            if self._newest_lacks and not told:
                self._wait_ms = 0
            self._newest_lacks = bool(told)
            told = self.because or told
        self.because = told
