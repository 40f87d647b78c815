"""Addresses with a name and a password in them: these get in, and are never shown."""

import re
from base64 import b64encode
from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import unquote

import requests
from requests.auth import AuthBase
from typing_extensions import override

# Gives the token as it is now: whoever renews one writes its file anew.
Token = Callable[[], str]
# Whatever the rest of it is: an address that is none is told by whoever asks it, and shown too.
_LOGIN: Final = re.compile(r"^(?P<scheme>\w+://)(?P<login>[^/?#]*)@")


class Login(NamedTuple):
    """A name and its password, for basic authentication."""

    user: str
    password: str

    @property
    def header(self) -> str:
        """What the header `Authorization` says, as in RFC 7617."""
        return f"Basic {b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


class Address(NamedTuple):
    """An address that may be shown, and how to get in there."""

    url: str
    login: Login | None = None

    @classmethod
    def of(cls, written: str) -> "Address":
        """
        Of an address as the settings have it.

        >>> Address.of("http://me:se%40cret@prometheus:9090/p")
        Address(url='http://prometheus:9090/p', login=Login(user='me', password='se@cret'))
        """
        found = _LOGIN.match(written)
        if found is None:
            return cls(written)
        user, _, password = found["login"].partition(":")
        return cls(found["scheme"] + written[found.end() :], Login(unquote(user), unquote(password)))


def shown(written: str) -> str:
    """
    An address without a name and password in it.

    >>> shown("http://me:secret@exporter:9400"), shown("http://exporter:9400")
    ('http://exporter:9400', 'http://exporter:9400')
    """
    return Address.of(written).url


class Bearer(AuthBase):
    """Sends a bearer token, asked for anew with each question."""

    def __init__(self, token: Token) -> None:
        self._token = token

    @override
    def __call__(self, r: requests.PreparedRequest) -> requests.PreparedRequest:
        r.headers["Authorization"] = f"Bearer {self._token()}"
        return r
