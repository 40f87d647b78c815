"""Answers of queries, kept between two commits: one page asks the same rows many times."""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sized
from threading import Lock
from typing import Final, Generic, TypeVar

import polars as pl

_Answer = TypeVar("_Answer", bound=Sized)
# About 100 MB of the widest rows that we ask.
MOST_ROWS: Final = 100_000
# One answer may take so much of it; a larger one would push out all others for itself.
_SHARE: Final = 4


class Kept(Generic[_Answer]):
    """
    What was read since the last commit, by question; the longest unused goes first. For any thread.

    Args:
        most_rows: of all answers together.
    """

    def __init__(self, most_rows: int = MOST_ROWS) -> None:
        self._most_rows = most_rows
        self._lock = Lock()
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._rows = 0
        self._commits = 0

    def answer(self, question: Hashable, read: Callable[[], _Answer]) -> _Answer:
        """What is kept of the question, else what `read` gives now."""
        with self._lock:
            if question in self._answers:
                self._answers.move_to_end(question)
                return self._answers[question]
            began = self._commits
        answer = read()
        with self._lock:
            # What was read across a commit may be of before it.
            if began == self._commits and question not in self._answers:
                self._keep(question, answer)
        return answer

    def forget(self) -> None:
        """Something was committed: nothing that is kept holds any more."""
        with self._lock:
            self._commits += 1
            self._answers.clear()
            self._rows = 0

    def _keep(self, question: Hashable, answer: _Answer) -> None:
        if _size(answer) > self._most_rows // _SHARE:
            return
        self._answers[question] = answer
        self._rows += _size(answer)
        while self._rows > self._most_rows:
            _, dropped = self._answers.popitem(last=False)
            self._rows -= _size(dropped)


def _size(answer: Sized) -> int:
    """Rows, or what stands in their lists where that is more; an empty answer takes room too."""
    if isinstance(answer, pl.DataFrame):
        lists = [name for name, kind in answer.schema.items() if kind == pl.List]
        return max(answer.height, 0, *(int(answer[name].list.len().sum()) for name in lists)) + 1
    return len(answer) + 1
