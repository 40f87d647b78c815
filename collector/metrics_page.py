"""One question to a `/metrics` of anybody, with a limit of time and of size."""

from time import monotonic
from typing import Final

import requests

from collector.addresses import Address
from domain.errors import UnreachableError

_TIMEOUT_SECONDS: Final = (3, 10)
# The time-out of a read begins anew with each byte.
_MOST_SECONDS: Final = 30.0
_MOST_BYTES: Final = 64 << 20
_PATH: Final = "/metrics"


def metrics_page(url: str) -> str:
    """
    The answer of an address, which may leave the path out; a name and password in it are sent, and not shown.

    Raises:
        UnreachableError: it does not answer in time, or not with metrics.
    """
    give_up = monotonic() + _MOST_SECONDS
    address = Address.of(url if url.endswith(_PATH) else url.rstrip("/") + _PATH)
    asked = address.url
    try:
        with requests.get(asked, auth=address.login, timeout=_TIMEOUT_SECONDS, stream=True) as answer:
            answer.raise_for_status()
            body = bytearray()
            for piece in answer.iter_content(1 << 16):
                body += piece
                if monotonic() > give_up:
                    message = f"{asked}: not read to its end in {_MOST_SECONDS:.0f} s"
                    raise UnreachableError(message)
                if len(body) > _MOST_BYTES:
                    message = f"{asked}: an answer of more than {_MOST_BYTES:,} bytes; expected metrics"
                    raise UnreachableError(message)
    except requests.RequestException as cause:
        message = f"{asked} gave no answer: {cause}"
        raise UnreachableError(message) from cause
    return body.decode(errors="replace")
