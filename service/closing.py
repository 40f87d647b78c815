"""Closing a month: its reconciliation, and the statement that never changes."""

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

from analytics.chargeback.agreement import Agreement
from analytics.chargeback.canonical import encode
from analytics.chargeback.month_statement import Check, Closing, MonthStatement
from analytics.chargeback.reconcile import forced
from domain.calendar import month
from domain.errors import RefusedError, UsageError
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import Clock, format_instant
from service import unbooked
from service.corrections import behind, find_corrections, note_basis
from service.statements import foreign_corrections, statement_of
from store import statements as kept
from store.embedded import Store
from store.statements import ClosedMonth


@dataclass(frozen=True, slots=True, kw_only=True)
class Closer:
    """
    Closes months of an open store.

    Args:
        alone: while it is entered nobody else brings the books up to date.
    """

    store: Store
    agreement: Agreement
    policy: Policy
    tenancy: Tenancy
    clock: Clock
    alone: Callable[[], AbstractContextManager[object]] = nullcontext

    def close(self, label: str, *, who: str, reason: str = "") -> MonthStatement:
        """
        Close a month; gives its statement, which never changes from now on.

        What is known of earlier closed months is looked at first, so that this one books all of it.

        Args:
            label: such as 2026-10.
            reason: why it may be closed although little was observed, or causes are missing; recorded.

        Raises:
            UsageError: there is no such month.
            RefusedError: it is closed, not over, or does not balance; nothing was written.
        """
        with self.alone():
            now_ms = self.clock.now_ms()
            self._check_open(label, now_ms)
            trouble = find_corrections(self.store, self.tenancy, now_ms=now_ms)
            trouble += foreign_corrections(self.store, self.agreement, label) + unbooked.untold(self.store)
            found = statement_of(
                self.store, self.agreement, self.policy,
                label=label, as_of_ms=now_ms, tenancy=self.tenancy,
            )  # fmt: skip
            checks = (
                *found.checks,
                _of_books(behind(self.store, found.whole_end_ms)),
                *_of_corrections(found, trouble),
            )
            _refuse(label, checks, reason)
            statement = replace(found, checks=forced(checks))
            needed = reason.strip() if any(each.forced for each in statement.checks) else ""
            closing = encode(statement, closed_ms=now_ms, closed_by=who, reason=needed)
            statement = replace(statement, closing=closing)
            kept.close(self.store, _row(statement, closing), books=statement.corrected)
            note_basis(self.store, statement, now_ms)
        return statement

    def _check_open(self, label: str, now_ms: int) -> None:
        whole = month(label, self.agreement.zone)
        for head in kept.closed_months(self.store):
            if head.month == label:
                message = (
                    f"month {label} was closed at {format_instant(head.closed_ms)} by {head.closed_by}, with"
                    f" sha256 {head.sha256}: it is never closed twice; what is learnt later is a correction"
                )
                raise RefusedError(message)
        if whole.end_ms > now_ms:
            message = (
                f"month {label} is not over: in {self.agreement.zone_name} it ends at"
                f" {format_instant(whole.end_ms)}, and it is {format_instant(now_ms)}; close it then"
            )
            raise RefusedError(message)


def _of_books(because: str) -> Check:
    return Check(
        name="books", left=because or "all cut", right="all cut", holds=not because,
        words="all that was read of the month is in the books"
        + (f": {because}; `gpuledger serve` brings them up to date" if because else ""),
    )  # fmt: skip


def _of_corrections(found: MonthStatement, trouble: list[str]) -> tuple[Check, ...]:
    booked = ", ".join(f"{number} of {label}" for label, number in found.corrected)
    told = "; ".join(trouble)
    return (
        Check(
            name="corrections", left=told or booked or "none", right=booked or "none", holds=not trouble,
            words=f"all that was learnt of closed months is booked{f': {told}' if told else ''}",
            may_be_forced=True,
        ),
    )  # fmt: skip


def _refuse(label: str, checks: tuple[Check, ...], reason: str) -> None:
    wrong = [each for each in checks if not each.holds and not (each.may_be_forced and reason.strip())]
    if not wrong:
        return
    told = "; ".join(f"{each.name}: {each.words}" for each in wrong)
    hint = "; give a reason to close it all the same" if all(each.may_be_forced for each in wrong) else ""
    message = f"month {label} is not closed, for its reconciliation does not hold: {told}{hint}"
    raise RefusedError(message)


def _row(statement: MonthStatement, closing: Closing) -> ClosedMonth:
    return ClosedMonth(
        month=statement.month,
        sha256=closing.sha256,
        closed_ms=closing.closed_ms,
        closed_by=closing.closed_by,
        as_of_ms=statement.as_of_ms,
        reason=closing.reason,
        start_ms=statement.start_ms,
        end_ms=statement.whole_end_ms,
        content=closing.content,
    )


def record(statement: MonthStatement) -> dict[str, Any]:
    """What a close tells: the month, its fingerprint, and the reconciliation."""
    closing = statement.closing
    if closing is None:
        message = f"month {statement.month} is open"
        raise UsageError(message)
    return {
        "month": statement.month,
        "sha256": closing.sha256,
        "closed_at": format_instant(closing.closed_ms),
        "closed_by": closing.closed_by,
        "reason": closing.reason,
        "checks": [
            {"name": each.name, "words": each.words, "holds": each.holds, "forced": each.forced}
            for each in statement.checks
        ],
    }
