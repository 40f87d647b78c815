"""What an API server says when it does not do what it was asked: why, and when to come back."""

from collections.abc import Mapping
from email.utils import parsedate_to_datetime

import msgspec

from collector.decoding import UNREADABLE
from collector.kube.watch_steps import Answered, Outcome, outcome_of

_SHOWN_BYTES = 200
_TOO_LARGE = "ResourceVersionTooLarge"


class _Cause(msgspec.Struct, gc=False):
    reason: str = ""


class _Details(msgspec.Struct, gc=False, rename="camel"):
    retry_after_seconds: float = 0.0
    causes: list[_Cause] | None = None


class Refusal(msgspec.Struct, gc=False):
    """A Status object: the body of an error, or what an ERROR line of a watch carries."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: _Details | None = None

    @property
    def wish_seconds(self) -> float:
        """How long the server wishes not to be asked."""
        return 0.0 if self.details is None else self.details.retry_after_seconds

    @property
    def is_ahead(self) -> bool:
        """
        Whether we asked from a version that the server has not reached.

        Then it was restored to an earlier one. Asking again until it gets there would leave out
        all that happens until then.
        """
        causes = (self.details.causes if self.details else None) or ()
        return any(cause.reason == _TOO_LARGE for cause in causes)


_REFUSAL = msgspec.json.Decoder(Refusal)


def refused(what: str, status: int, body: bytes, headers: Mapping[str, str]) -> Answered:
    """What an answer with another status than 200 means to a reader."""
    try:
        said = _REFUSAL.decode(body)
    except UNREADABLE:
        said = Refusal(message=body[:_SHOWN_BYTES].decode(errors="replace"))
    return Answered(
        outcome=Outcome.LOST if said.is_ahead else outcome_of(status),
        because=f"{what}: the API server answered {status}: {said.message}",
        retry_after_seconds=max(retry_after_seconds(headers), said.wish_seconds),
    )


def told_by_line(payload: bytes) -> Answered:
    """
    What an ERROR line of a watch means: whatever it says, only a new list helps.

    Raises:
        msgspec.MsgspecError: it carries no Status.
    """
    said = _REFUSAL.decode(payload)
    because = f"{said.code} {said.reason}: {said.message}"
    return Answered(outcome=Outcome.LOST, because=because, retry_after_seconds=said.wish_seconds)


def retry_after_seconds(headers: Mapping[str, str]) -> float:
    """
    The wish of a Retry-After header: seconds, or a date, which counts from the answer's own.

    >>> retry_after_seconds({"retry-after": "17"}), retry_after_seconds({})
    (17.0, 0.0)
    >>> retry_after_seconds({
    ...     "date": "Mon, 04 May 2026 09:00:00 GMT",
    ...     "retry-after": "Mon, 04 May 2026 09:00:30 GMT",
    ... })
    30.0
    """
    wish = headers.get("retry-after", "").strip()
    if wish.isdecimal():
        return float(wish)
    try:
        until, now = parsedate_to_datetime(wish), parsedate_to_datetime(headers.get("date", ""))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return 0.0  # no wish, or one that nobody can read
