"""Signals to real processes: any number of them ends one, and a child does not outlive its parent."""

import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from time import monotonic, sleep

import pytest

from service.stopping import Stop, on_signals

ROUNDS = 15
END_SECONDS = 60.0
# It looks as often as it can: with a lock in it, a signal finds it locked within some rounds.
_WAITS = """
from service.stopping import Stop, on_signals
with on_signals(Stop()) as stop:
    print("waiting", flush=True)
    while not stop.wait(1e-6):
        pass
print("ended", flush=True)
"""
_HAS_A_CHILD = """
import sys, time
from service import children
child = children.start([sys.executable, "-c", "import time; print('here', flush=True); time.sleep(300)"])
print(child.pid, flush=True)
time.sleep(300)
"""


def test_a_storm_of_signals_ends_a_process_that_waits() -> None:
    for _ in range(ROUNDS):
        with subprocess.Popen([sys.executable, "-c", _WAITS], stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"waiting\n"
            give_up = monotonic() + END_SECONDS
            while not select.select([process.stdout], [], [], 0)[0] and monotonic() < give_up:
                process.send_signal(signal.SIGINT)
                process.send_signal(signal.SIGTERM)
            ended = monotonic() < give_up
            if not ended:
                process.kill()
            assert (process.stdout.read(), ended) == (b"ended\n", True)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent is gone")
def test_a_child_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _HAS_A_CHILD], stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        said = {parent.stdout.readline().strip(), parent.stdout.readline().strip()}
        (child,) = (int(word) for word in said - {b"here"})
        parent.kill()
    give_up = monotonic() + END_SECONDS
    while _lives(child) and monotonic() < give_up:
        sleep(0.05)
    lived = _lives(child)
    if lived:
        os.kill(child, signal.SIGKILL)
    assert not lived


def test_a_wait_ends_with_its_time_or_with_the_wish() -> None:
    stop = Stop()
    assert (stop.wait(0), stop.wait(0.01), stop.is_set()) == (False, False, False)
    stop.set()
    assert (stop.wait(), stop.wait(60), stop.is_set()) == (True, True, True)


def test_handlers_are_given_back_where_nobody_wished_an_end() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with on_signals(Stop()):
        assert signal.getsignal(signal.SIGTERM) is not before
    assert signal.getsignal(signal.SIGTERM) is before


def _lives(pid: int) -> bool:
    """Whether the process runs; one that ended and that nobody waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
