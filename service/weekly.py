"""
The weekly reports: files that lie in the data folder, one per week that is over.

A week is an ISO week of the billing zone, as quota proposals have it. Which files are there says what
is done, so that a week is neither written twice nor skipped, however long nobody ran.
"""

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, timedelta, tzinfo
from pathlib import Path

from api.answers import Answers, ReportQuestion
from api.formats import to_json
from api.reports import REPORTS
from api.reports.report import made
from domain.calendar import Period, finished_week
from domain.errors import ProductError
from domain.window import Clock
from service import report_text

log = logging.getLogger("gpuledger.weekly")


@dataclass(frozen=True, slots=True, kw_only=True)
class WeeklyReports:
    """
    Writes what is due.

    Args:
        folder: where the files lie; made when the first one is written.
        first_ms: gives the instant of the first thing known, None while nothing is.
        dashboard_url: where the figures' pages are.
        zone: the billing zone, in which weeks begin.
        report: which one.
        weeks: how many weeks back are written at most.
    """

    answers: Answers
    clock: Clock
    folder: Path
    first_ms: Callable[[], int | None]
    dashboard_url: str
    zone: tzinfo = UTC
    report: str = "waste"
    weeks: int = 8

    def write_due(self) -> int:
        """Write the weeks that are over and have no file; gives how many were written."""
        written = 0
        for week in self._due():
            try:
                self._write(week)
            except ProductError:
                log.exception("weekly report failed", extra={"week": week.label})
                continue
            written += 1
        return written

    def _due(self) -> Iterator[Period]:
        first_ms = self.first_ms()
        if first_ms is None:
            return
        week = finished_week(self.clock.now_ms(), self.zone)
        for _ in range(self.weeks):
            if week.end_ms <= first_ms:
                return
            if not self._file(week, "md").exists():
                yield week
            week = finished_week(week.start_ms, self.zone)

    def _write(self, week: Period) -> None:
        # Where the clock changes a week has 167 or 169 hours.
        length = timedelta(milliseconds=week.end_ms - week.start_ms)
        report = made(REPORTS[self.report], self.answers, ReportQuestion(as_of_ms=week.end_ms, window=length))
        self.folder.mkdir(parents=True, exist_ok=True)
        report = report_text.addressed(report, dashboard_url=self.dashboard_url)
        text = report_text.markdown(report)
        # The markdown comes last, whole or not at all: it says that the week is done.
        self._file(week, "json").write_bytes(to_json(report))
        self._file(week, "csv").write_text(report_text.to_csv(report), encoding="utf-8")
        part = self._file(week, "md.part")
        part.write_text(text, encoding="utf-8")
        part.replace(self._file(week, "md"))

    def _file(self, week: Period, suffix: str) -> Path:
        return self.folder / f"{self.report}-{week.label}.{suffix}"
