"""GPU-time by cause in a window: what the causes of many workloads add up to."""

from collections.abc import Mapping
from dataclasses import dataclass

from analytics.wastage.causes import RUNNING_CAUSES, Account, Cause
from analytics.wastage.lost import LossKind
from domain.window import Window


@dataclass(frozen=True, slots=True, kw_only=True)
class Bill:
    """
    GPU-time in a window, integer micro-GPU x milliseconds; bills of any workloads add up.

    Args:
        by_cause: every cause, zero included; they sum to the GPU-time held.
        resident_idle_exempt: the part of resident_idle that is not charged.
        restart_startup: the part of the start-up, within limit and beyond, of attempts that follow
            an own failure.
        own_failure_wait: re-queue wait after own failures times GPUs requested: not held, so in no
            cause. None where the request of one that waited is unknown.
        may_be_lost: by kind of loss, the useful time that is lost too if nothing was saved.
        unmeasured_ms: milliseconds held by pods whose share of a GPU is unknown: in no cause.
    """

    by_cause: Mapping[Cause, int]
    resident_idle_exempt: int = 0
    restart_startup: int = 0
    own_failure_wait: int | None = 0
    may_be_lost: Mapping[LossKind, int]
    unmeasured_ms: int = 0

    @classmethod
    def empty(cls) -> "Bill":
        """Nothing was held."""
        return cls(by_cause=dict.fromkeys(Cause, 0), may_be_lost=dict.fromkeys(LossKind, 0))

    @property
    def held(self) -> int:
        """All GPU-time held, micro-GPU x milliseconds."""
        return sum(self.by_cause.values())

    @property
    def running(self) -> int:
        """The part of it in which the pods ran."""
        return sum(self.by_cause[cause] for cause in RUNNING_CAUSES)

    def __add__(self, other: "Bill") -> "Bill":
        waits = (self.own_failure_wait, other.own_failure_wait)
        known = [wait for wait in waits if wait is not None]
        return Bill(
            by_cause={cause: self.by_cause[cause] + other.by_cause[cause] for cause in Cause},
            resident_idle_exempt=self.resident_idle_exempt + other.resident_idle_exempt,
            restart_startup=self.restart_startup + other.restart_startup,
            own_failure_wait=sum(known) if len(known) == len(waits) else None,
            may_be_lost={kind: self.may_be_lost[kind] + other.may_be_lost[kind] for kind in LossKind},
            unmeasured_ms=self.unmeasured_ms + other.unmeasured_ms,
        )


def bill(of: Account, window: Window) -> Bill:
    """A workload's GPU-time inside a window, each second in the window in which it ran."""
    by_cause = dict.fromkeys(Cause, 0)
    may_be = dict.fromkeys(LossKind, 0)
    unmeasured_ms = restart = 0
    for piece in of.pieces:
        length = _overlap(piece.start_ms, piece.end_ms, window)
        if piece.micro_gpus is None:
            unmeasured_ms += length
            continue
        amount = piece.micro_gpus * length
        by_cause[piece.cause] += amount
        if piece.may_be is not None:
            may_be[piece.may_be] += amount
        if piece.restart and piece.cause in {Cause.STARTUP, Cause.STARTUP_OVER_LIMIT}:
            restart += amount
    waited_ms = sum(_overlap(start, end, window) for start, end in of.own_failure_waits)
    wait = waited_ms * of.requested_micro_gpus if of.requested_micro_gpus is not None else None
    return Bill(
        by_cause=by_cause,
        resident_idle_exempt=by_cause[Cause.RESIDENT_IDLE] if of.resident_idle_exempt else 0,
        restart_startup=restart,
        own_failure_wait=wait if waited_ms else 0,
        may_be_lost=may_be,
        unmeasured_ms=unmeasured_ms,
    )


def _overlap(start_ms: int, end_ms: int, window: Window) -> int:
    return max(0, min(end_ms, window.end_ms) - max(start_ms, window.start_ms))


def loss_adjustment(closed: Bill, restated: Bill) -> Mapping[Cause, int]:
    """
    What a statement books in the open month for a closed day: by cause, restated less closed.

    The day's held time is settled, so the changes sum to zero; causes without a change are left out.

    Source: definitions, section 7: minus useful, plus lost.
    """
    changes = {cause: restated.by_cause[cause] - closed.by_cause[cause] for cause in Cause}
    return {cause: change for cause, change in changes.items() if change}
