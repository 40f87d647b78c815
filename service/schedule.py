"""The ticker: does what is due every so many seconds. Watermarks decide what there is to do."""

import logging
from collections.abc import Callable
from datetime import UTC, datetime

from apscheduler.events import EVENT_JOB_MAX_INSTANCES, JobSubmissionEvent
from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.schedulers.background import BackgroundScheduler

log = logging.getLogger("gpuledger.schedule")
_OURS, _OTHERS = "default", "others"


class Ticker:
    """
    Calls functions from a thread at fixed intervals.

    In UTC: a zone with daylight saving would skip runs. A late run is done late, several late runs
    are done once, and none overlaps itself. An error in a run is logged with its cause; the next
    run is a new try.
    """

    def __init__(self) -> None:
        self._scheduler = BackgroundScheduler(
            timezone=UTC,
            executors={_OURS: ThreadPoolExecutor(10), _OTHERS: ThreadPoolExecutor(64)},
            job_defaults={"misfire_grace_time": None, "coalesce": True, "max_instances": 1},
        )
        # Its only warnings say that a run was left out because the last one still runs: we want that.
        logging.getLogger("apscheduler.scheduler").setLevel(logging.ERROR)
        self._scheduler.add_listener(_left_out, EVENT_JOB_MAX_INSTANCES)

    def every(self, seconds: int, do: Callable[[], object], *, name: str, asks_others: bool = False) -> None:
        """
        Call `do` now and then every `seconds`.

        What `asks_others` may wait for them, and has threads of its own: however slow they are, what is
        ours to do is done in time.
        """
        self._scheduler.add_job(
            do,
            "interval",
            seconds=seconds,
            id=name,
            name=name,
            next_run_time=datetime.now(UTC),
            executor=_OTHERS if asks_others else _OURS,
        )

    def start(self) -> None:
        """Begin to tick."""
        self._scheduler.start()

    def stop(self) -> None:
        """Let a run in progress end, then stop. Stopping what never started does nothing."""
        if self._scheduler.running:
            self._scheduler.shutdown(wait=True)


def _left_out(event: JobSubmissionEvent) -> None:
    log.debug("a run was left out, the last one still runs", extra={"job": event.job_id})
