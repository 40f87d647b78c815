"""
When the credentials for a cluster end: certificates and tokens, read without a library for them.

Kubelets, plug-ins and administrators renew both. One that is near its end was not renewed, and
somebody should hear of it before the cluster stops answering.
"""

import base64
import binascii
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from domain.window import MS_PER_SECOND

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----(.+?)-----END CERTIFICATE-----", re.DOTALL)
# The tags of X.690 that stand before and at the validity of a certificate.
_UTC_TIME, _GENERALIZED_TIME, _VERSION = 0x17, 0x18, 0xA0
# The certificate that is not ours: somebody else renews it.
SERVER_CERTIFICATE = "server certificate"
# How much of its life may be left before one that is renewed in time would have been.
_LAST_PART = 10
_LONGEST_WARNING_MS = 7 * 24 * 3600 * MS_PER_SECOND


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifetime:
    """From when to when a credential is good; `what` says which one."""

    what: str
    from_ms: int
    end_ms: int

    def is_near_its_end(self, now_ms: int) -> bool:
        """Whether the last tenth of its life has begun, and the last seven days."""
        last_ms = min((self.end_ms - self.from_ms) // _LAST_PART, _LONGEST_WARNING_MS)
        return now_ms >= self.end_ms - last_ms


def of_certificates(pem: bytes, what: str) -> list[Lifetime]:
    """Lifetimes of the certificates in a PEM file; those that cannot be read are left out."""
    found = []
    for body in _PEM.findall(pem):
        try:
            from_ms, end_ms = _validity(base64.b64decode(body))
        except (binascii.Error, ValueError, IndexError):
            continue
        found.append(Lifetime(what=what, from_ms=from_ms, end_ms=end_ms))
    return found


class _Claims(msgspec.Struct, gc=False):
    exp: float
    iat: float = 0.0


def of_token(token: str, what: str) -> list[Lifetime]:
    """
    The lifetime of a token, if it is one that says so (JWT).

    >>> of_token("an opaque one", "the token")
    []
    """
    parts = token.split(".")
    if len(parts) != 3:
        return []
    try:
        claims = msgspec.json.decode(
            base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)), type=_Claims
        )
    except (binascii.Error, ValueError, msgspec.MsgspecError):
        return []
    from_ms, end_ms = round(claims.iat * MS_PER_SECOND), round(claims.exp * MS_PER_SECOND)
    return [Lifetime(what=what, from_ms=from_ms, end_ms=end_ms)]


# ------------------------------------------------------------ just enough of DER


def _parts(der: bytes) -> Iterator[tuple[int, bytes]]:
    """Tag and content of each value."""
    at = 0
    while at < len(der):
        tag, length, at = der[at], der[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(der[at : at + size]), at + size
        if at + length > len(der):
            message = "a value is cut off"
            raise ValueError(message)
        yield tag, der[at : at + length]
        at += length


def _validity(der: bytes) -> tuple[int, int]:
    (_, certificate), *_ = _parts(der)
    (_, to_be_signed), *_ = _parts(certificate)
    fields = [content for tag, content in _parts(to_be_signed) if tag != _VERSION]
    # serial number, signature, issuer, validity
    begin, end = _parts(fields[3])
    return _instant_ms(*begin), _instant_ms(*end)


def _instant_ms(tag: int, content: bytes) -> int:
    text = content.decode("ascii")
    if tag == _UTC_TIME:
        text = ("20" if int(text[:2]) < 50 else "19") + text
    elif tag != _GENERALIZED_TIME:
        message = f"tag {tag}: expected a time"
        raise ValueError(message)
    instant = datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    return round(instant.timestamp()) * MS_PER_SECOND
