"""How translators word facts: instants, owners, conditions, quantities, descriptions."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache

import msgspec

from collector.raw import Condition, Metadata, OwnerReference, Quantities, RawObject, Taint
from domain.errors import FactError, QuantityError, UsageError
from domain.facts import Description, Moment, ObjectKind, Transition
from domain.objects import Body, Owner, Resources
from domain.quantity import Quota, is_gpu_resource, parse_count, parse_quantity
from domain.window import LAST_KEPT_MS, MS_PER_HOUR, parse_instant

# Kubernetes caps a quantity at the largest int64, in whole units.
_LARGEST_MILLI = ((1 << 63) - 1) * 1000
_GO_ZERO_MS = parse_instant("0001-01-01T00:00:00Z")
_FIRST_CREATION_MS = parse_instant("2000-01-01T00:00:00Z")
# Clocks differ, but not by more than a day.
_AHEAD_MS = 24 * MS_PER_HOUR
_MOST_DEVICES = 1_000_000
_STAMPS = 1 << 14
OF_THE_FUTURE = "a container of the future; when it was seen is used"
# To find a member of an enum takes Python as long as to make a fact of it.
_CREATED, _CONDITION = Moment.CREATED, Moment.CONDITION
_BODY = msgspec.json.Encoder(order="deterministic")


def instant(text: str | None) -> int | None:
    """
    Milliseconds since the epoch of a time stamp; None for a missing one, which Go's zero time is too.

    Raises:
        FactError: the text is not RFC 3339.
    """
    return _parsed(text) if text else None


# Objects repeat their stamps in each reading; parsing one again would cost ten times as much. Those of
# some thousand objects: an older one is hardly asked for again, and each is kept with 200 bytes.
@lru_cache(maxsize=_STAMPS)
def _parsed(text: str) -> int | None:
    try:
        at_ms = parse_instant(text)
    except UsageError as cause:
        message = f"time stamp {text!r}: expected RFC 3339, for example 2026-11-29T15:14:06Z"
        raise FactError(message) from cause
    if at_ms > LAST_KEPT_MS:
        message = f"time stamp {text!r}: expected an instant before the year 2263"
        raise FactError(message)
    return None if at_ms == _GO_ZERO_MS else at_ms


def instant_after_epoch(text: str | None) -> int | None:
    """
    As `instant`; the epoch itself is missing as well.

    A container that its runtime has lost started and ended at the epoch.
    """
    return (_parsed(text) or None) if text else None


def past_instant(text: str | None, observed_ms: int) -> int | None:
    """As `instant_after_epoch`, of what has happened; more than a day after we saw it is missing."""
    at_ms = instant_after_epoch(text)
    return None if at_ms is not None and at_ms > observed_ms + _AHEAD_MS else at_ms


def uid_of(raw: RawObject) -> str:
    """
    The object's identity.

    Raises:
        FactError: the object has no uid, so nothing can be said of it.
    """
    uid = raw.metadata.uid
    if not uid:
        message = (
            f"{raw.kind or 'object'} {raw.metadata.namespace or ''}/{raw.metadata.name or ''}"
            " has no metadata.uid: expected an object of an API server"
        )
        raise FactError(message)
    return uid


def created(raw: RawObject, kind: ObjectKind, observed_ms: int) -> Transition:
    """
    The object's creation; one without a stamp was created some time before we saw it.

    Raises:
        FactError: no cluster created anything at that time.
    """
    at_ms = instant_after_epoch(raw.metadata.creation_timestamp)
    if at_ms is not None and not _FIRST_CREATION_MS <= at_ms <= observed_ms + _AHEAD_MS:
        message = (
            f"creationTimestamp {raw.metadata.creation_timestamp!r}:"
            " expected an instant after 2000-01-01 and at most a day after it was seen"
        )
        raise FactError(message)
    return Transition(
        uid=uid_of(raw),
        kind=kind,
        moment=_CREATED,
        at_ms=observed_ms if at_ms is None else at_ms,
        observed_ms=observed_ms,
        earliest_ms=0 if at_ms is None else None,
    )


def seen(of: Transition, moment: Moment, **words: str | int | None) -> Transition:
    """
    A transition of the object of `of` without a stamp of its own: it happened until we saw it.

    The intake narrows `earliest_ms` from the object's creation to our last sight of it.
    """
    earliest_ms = of.at_ms if of.earliest_ms is None else of.earliest_ms
    return Transition(
        uid=of.uid,
        kind=of.kind,
        moment=moment,
        at_ms=of.observed_ms,
        observed_ms=of.observed_ms,
        earliest_ms=min(earliest_ms, of.observed_ms),
        **words,  # type: ignore[arg-type]
    )


def condition(of: Transition, written: Condition, *, amount: int | None = None) -> Transition:
    """A condition of the object of `of`, at its `lastTransitionTime`, which moves with its status only."""
    at_ms = instant(written.last_transition_time)
    if at_ms is None:
        return seen(
            of,
            _CONDITION,
            subject=written.type or "",
            state=written.status or "",
            reason=written.reason or "",
            detail=written.message or "",
            amount=amount,
        )
    return Transition(
        uid=of.uid,
        kind=of.kind,
        moment=_CONDITION,
        at_ms=at_ms,
        observed_ms=of.observed_ms,
        subject=written.type or "",
        state=written.status or "",
        reason=written.reason or "",
        detail=written.message or "",
        amount=amount,
    )


def description(raw: RawObject, of: Transition, body: Body) -> Description:
    """What the object says of itself. The intake moves `from_ms` when it is not the first we hear."""
    return described(raw, of, body_text(body))


def body_text(body: Body) -> bytes:
    """What an object says of itself, as it is kept: the same for two that say the same."""
    return _BODY.encode(body)


def described(raw: RawObject, of: Transition, body: bytes) -> Description:
    """As `description`, where the body was written already."""
    metadata = raw.metadata
    return Description(
        uid=of.uid,
        kind=of.kind,
        namespace=metadata.namespace or "",
        name=metadata.name or "",
        from_ms=of.at_ms,
        observed_ms=of.observed_ms,
        body=body,
    )


def owner(metadata: Metadata) -> Owner | None:
    """The controlling owner; None where no reference has `controller: true`."""
    return next(owners_of(metadata.owner_references, controller_only=True), None)


def owners(metadata: Metadata) -> tuple[Owner, ...]:
    """All owner references."""
    return tuple(owners_of(metadata.owner_references))


def owners_of(
    references: Iterable[OwnerReference] | None, *, controller_only: bool = False
) -> Iterator[Owner]:
    """The owners that these references name, or the controlling one only."""
    for reference in references or ():
        if reference.controller or not controller_only:
            yield Owner(
                api_group=api_group(reference.api_version),
                kind=reference.kind or "",
                name=reference.name or "",
                uid=reference.uid or "",
            )


@lru_cache
def api_group(api_version: str | None) -> str:
    """
    The group of an `apiVersion`; the core group is empty.

    >>> api_group("batch/v1"), api_group("v1")
    ('batch', '')
    """
    return (api_version or "").rpartition("/")[0]


def gpu_counts(written: Quantities | None) -> Resources:
    """The GPU resources of a resource list, zero left out; other resources are not read."""
    counts: Resources = {}
    for name, value in (written or {}).items():
        if _is_gpu(name) and (count := _devices(str(value))):
            counts[name] = count
    return counts


def other_milli(written: Quantities | None) -> Resources:
    """All other resources of a resource list in thousandths of their units, zero left out."""
    found: Resources = {}
    for name, value in (written or {}).items():
        if not _is_gpu(name) and (milli := _milli(str(value))) > 0:
            found[name] = milli
    return found


_is_gpu = lru_cache(is_gpu_resource)


@lru_cache(maxsize=4096)
def _milli(written: str) -> int:
    return min(int(parse_quantity(written) * 1000), _LARGEST_MILLI)


@lru_cache
def _devices(written: str) -> int:
    count = parse_count(written)
    if count > _MOST_DEVICES:
        message = f"device count {written!r}: expected at most {_MOST_DEVICES}"
        raise QuantityError(message)
    return count


def quota(written: str | float | None) -> Quota:
    """
    A quota field; missing is *not set*. Sites write 8Ei for "much": as in Kubernetes, the largest int64.

    Raises:
        QuantityError: not a quantity, or negative.
    """
    read = Quota.of(None if written is None else str(written))
    if read.milli < 0:
        message = f"quota {written!r}: expected at least 0"
        raise QuantityError(message)
    return replace(read, milli=min(read.milli, _LARGEST_MILLI), written=written)


def quotas(written: Quantities | None) -> dict[str, Quota]:
    """Quotas by resource name."""
    return {name: quota(value) for name, value in (written or {}).items()}


def weight_milli(written: str | float | None) -> int:
    """A fair-sharing weight times 1000; missing is 1000."""
    if written is None:
        return 1000
    value = int(parse_quantity(str(written)) * 1000)
    if value < 0:
        message = f"fair-sharing weight {written!r}: expected at least 0"
        raise QuantityError(message)
    return value


def taints(written: list[Taint] | None) -> tuple[str, ...]:
    """Taints as kubectl writes them: `key=value:effect`."""
    return tuple(f"{taint.key or ''}={taint.value or ''}:{taint.effect or ''}" for taint in written or ())
