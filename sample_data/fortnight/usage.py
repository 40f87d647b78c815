"""What the GPUs of a pod do while its container runs: stretches of one kind of load."""

from collections.abc import Iterator
from enum import StrEnum
from random import Random

from sample_data.fortnight.demand import Work

_MINUTE = 60_000
_HOUR = 60 * _MINUTE


class Load(StrEnum):
    """A device's load; the last two are none, with little and with much of the memory in use."""

    TRAINING = "T"
    INPUT_BOUND = "I"
    BURST = "B"
    NONE = "N"
    RESIDENT = "R"

    @property
    def is_low(self) -> bool:
        """Whether nothing happens on the device."""
        return self in (Load.NONE, Load.RESIDENT)


Stretch = tuple[int, int, Load]
"""From, to (milliseconds of the epoch), and the load between."""


def loads(work: Work, seed: str, *, device: int, start_ms: int, end_ms: int) -> list[Stretch]:
    """
    The loads of a device in one run, without a hole.

    Args:
        work: what the pod does.
        seed: of the run; the same seed gives the same loads, and another end cuts them only.
        device: which of the pod's, from 0.
        start_ms: of the run.
        end_ms: of the run, or of the recording.
    """
    rng = Random(f"{seed}/{device if work is Work.LEAVES_GPUS_IDLE else 0}")
    found: list[Stretch] = []
    now_ms = start_ms
    for length_ms, load in _plan(work, rng, device):
        until_ms = min(now_ms + length_ms, end_ms)
        if found and found[-1][2] is load:
            found[-1] = (found[-1][0], until_ms, load)
        elif until_ms > now_ms:
            found.append((now_ms, until_ms, load))
        now_ms = until_ms
        if now_ms >= end_ms:
            break
    return found


def _plan(work: Work, rng: Random, device: int) -> Iterator[tuple[int, Load]]:
    match work:
        case Work.TRAINS:
            return _trains(rng)
        case Work.INPUT_BOUND:
            return _steady(rng, Load.INPUT_BOUND)
        case Work.EXPLORES:
            return _explores(rng)
        case Work.SLEEPS:
            return _sleeps(rng, Load.NONE)
        case Work.SLEEPS_FULL:
            return _sleeps(rng, Load.RESIDENT)
        case Work.LEAVES_GPUS_IDLE:
            return _steady(rng, Load.INPUT_BOUND) if device == 0 else _steady(rng, Load.NONE)


def _warm_up(rng: Random) -> tuple[int, Load]:
    """Data is read first."""
    return rng.randint(1, 5) * _MINUTE, Load.NONE


def _trains(rng: Random) -> Iterator[tuple[int, Load]]:
    yield _warm_up(rng)
    while True:
        yield rng.randint(100, 400) * _MINUTE, Load.TRAINING
        yield rng.randint(2, 6) * _MINUTE, Load.NONE


def _steady(rng: Random, load: Load) -> Iterator[tuple[int, Load]]:
    yield _warm_up(rng)
    while True:
        yield 24 * _HOUR, load


def _explores(rng: Random) -> Iterator[tuple[int, Load]]:
    yield _warm_up(rng)
    while True:
        yield rng.randint(5, 45) * _MINUTE, Load.BURST
        if rng.random() < 0.7:
            yield rng.randint(2, 9) * _MINUTE, Load.NONE
        else:
            yield rng.randint(25, 110) * _MINUTE, rng.choice((Load.NONE, Load.RESIDENT))


def _sleeps(rng: Random, rest: Load) -> Iterator[tuple[int, Load]]:
    yield rng.randint(6, 25) * _MINUTE, Load.BURST
    while True:
        yield rng.randint(90, 500) * _MINUTE, rest
        yield rng.randint(4, 12) * _MINUTE, Load.BURST
