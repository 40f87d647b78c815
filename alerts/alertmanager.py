"""The only door to an Alertmanager: alerts go in by its API v2."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

import requests

from domain.errors import DataError, UnreachableError

Post: TypeAlias = Mapping[str, Any]

# So many alerts in one request: a storm of some thousand stays far below any limit of a proxy.
BATCH: Final = 500
_TOLD: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """
    How to get in.

    Args:
        user: with `password`, basic authentication.
        token: sent as bearer token.
        ca_file: the authority of its certificate; empty: those that the machine trusts.
    """

    user: str = ""
    password: str = ""
    token: str = ""
    ca_file: str = ""


class Alertmanager:
    """
    A line to one Alertmanager.

    Args:
        url: its address, with the path before `/api`.
        timeout_seconds: how long an answer may take.
    """

    def __init__(self, url: str, access: Access, *, timeout_seconds: float) -> None:
        self.url = url.rstrip("/")
        self._timeout_seconds = timeout_seconds
        self._session = requests.Session()
        # A ~/.netrc, or a proxy of the environment, is not what the settings say.
        self._session.trust_env = False
        if access.ca_file:
            self._session.verify = access.ca_file
        if access.user:
            self._session.auth = (access.user, access.password)
        if access.token:
            self._session.headers["Authorization"] = f"Bearer {access.token}"

    @property
    def name(self) -> str:
        """Its address without a password, for people and labels."""
        parts = urlsplit(self.url)
        return f"{parts.netloc.rpartition('@')[2]}{parts.path}"

    def post(self, alerts: Sequence[Post]) -> None:
        """
        Hand over alerts, in batches.

        Raises:
            UnreachableError: it does not answer, or cannot take them now: try again later.
            DataError: it refused some of them, and keeps the others; at once they would be refused again.
        """
        refused = ""
        for first in range(0, len(alerts), BATCH):
            refused = self._batch(alerts[first : first + BATCH]) or refused
        if refused:
            raise DataError(refused)

    def close(self) -> None:
        """Let go of the connection."""
        self._session.close()

    def _batch(self, alerts: Sequence[Post]) -> str:
        """Why some were refused; empty when all were taken."""
        address = f"{self.url}/api/v2/alerts"
        try:
            reply = self._session.post(
                address, json=list(alerts), timeout=self._timeout_seconds, allow_redirects=False
            )
        except (requests.RequestException, OSError) as cause:
            # The library's own words may hold the whole address.
            why = type(cause).__name__
            message = (
                f"Alertmanager {self.name} gives no answer ({why}): is that its address, and does it run?"
            )
            raise UnreachableError(message) from cause
        if reply.status_code < requests.codes.multiple_choices:
            return ""
        said = (
            f"Alertmanager {self.name} answers with status {reply.status_code}: {reply.text[:_TOLD].strip()}"
        )
        if reply.status_code == requests.codes.bad_request:
            return said
        raise UnreachableError(said)
