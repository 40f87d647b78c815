"""Instants as the API server writes them."""

from datetime import UTC, datetime

MS_PER_SECOND = 1000
MS_PER_MINUTE = 60_000


def stamp(at_ms: int) -> str:
    """
    Whole seconds, rounded down: `metav1.Time`.

    >>> stamp(1_999)
    '1970-01-01T00:00:01Z'
    """
    return datetime.fromtimestamp(at_ms // MS_PER_SECOND, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def micro_stamp(at_ms: int) -> str:
    """
    Microseconds: `metav1.MicroTime`, as schedulers write into events.

    >>> micro_stamp(1_999)
    '1970-01-01T00:00:01.999000Z'
    """
    return stamp(at_ms)[:-1] + f".{at_ms % MS_PER_SECOND:03d}000Z"
