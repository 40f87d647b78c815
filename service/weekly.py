"""
The weekly reports: files that lie in the data folder, one per week that is over.

A week is an ISO week in UTC. Which files are there says what is done, so that a week is neither
written twice nor skipped, however long nobody ran.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from api.answers import Answers, ReportQuestion
from api.formats import to_json
from api.reports import REPORTS
from api.reports.report import made
from domain.errors import ProductError
from domain.window import Clock, from_ms, to_ms
from service import report_text

log = logging.getLogger("gpuledger.weekly")

WEEK: Final = timedelta(days=7)


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReports:
    """
    Writes what is due.

    Args:
        folder: where the files lie; made when the first one is written.
        first_ms: gives the instant of the first thing known, None while nothing is.
        dashboard_url: where the figures' pages are.
        report: which one.
        weeks: how many weeks back are written at most.
    """

    answers: Answers
    clock: Clock
    folder: Path
    first_ms: Callable[[], int | None]
    dashboard_url: str
    report: str = "waste"
    weeks: int = 8

    def write_due(self) -> int:
        """Write the weeks that are over and have no file; gives how many were written."""
        written = 0
        for end in self._due():
            try:
                self._write(end)
            except ProductError:
                log.exception("weekly report failed", extra={"week": week_name(end)})
                continue
            written += 1
        return written

    def _due(self) -> Iterator[datetime]:
        first_ms = self.first_ms()
        if first_ms is None:
            return
        end = last_week_end(from_ms(self.clock.now_ms()))
        for back in range(self.weeks):
            at = end - back * WEEK
            if to_ms(at) <= first_ms:
                return
            if not self._file(at, "md").exists():
                yield at

    def _write(self, end: datetime) -> None:
        question = ReportQuestion(as_of_ms=to_ms(end), window=WEEK)
        report = made(REPORTS[self.report], self.answers, question)
        self.folder.mkdir(parents=True, exist_ok=True)
        text = report_text.markdown(report, dashboard_url=self.dashboard_url)
        # The markdown comes last, whole or not at all: it says that the week is done.
        self._file(end, "json").write_bytes(to_json(report))
        self._file(end, "csv").write_text(report_text.to_csv(report), encoding="utf-8")
        part = self._file(end, "md.part")
        part.write_text(text, encoding="utf-8")
        part.replace(self._file(end, "md"))

    def _file(self, end: datetime, suffix: str) -> Path:
        return self.folder / f"{self.report}-{week_name(end)}.{suffix}"


def last_week_end(now: datetime) -> datetime:
    """
    The end of the last ISO week that is over: a Monday, 00:00 UTC.

    >>> last_week_end(datetime(2026, 11, 4, 12, tzinfo=UTC)).isoformat()
    '2026-11-02T00:00:00+00:00'
    """
    midnight = now.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight - timedelta(days=midnight.weekday())


def week_name(end: datetime) -> str:
    """
    The week that ends at a Monday.

    >>> week_name(datetime(2026, 11, 2, tzinfo=UTC))
    '2026-W44'
    """
    year, week, _ = (end - timedelta(days=1)).isocalendar()
    return f"{year}-W{week:02}"
