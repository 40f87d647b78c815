"""
How a request tells who is asking.

`none`: everyone is admin, on this machine only. `header`: an authenticating proxy in front says
who it is; its headers count only with the secret that the proxy and we share. A service token
(`Authorization: Bearer`) stands for a program: Prometheus, the command line, an export.
"""

import hmac
import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from api.viewer import Role, Viewer
from domain.errors import ForbiddenError, SettingsError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
# The most powerful first: a viewer in two groups has the first role of these.
_ROLE_ORDER = (Role.ADMIN, Role.OPERATOR, Role.FINANCE, Role.RESEARCHER)


class UnauthenticatedError(ForbiddenError):
    """Nobody, or nobody we can believe, is asking."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What a request says of its sender. `headers` has lower-case names."""

    headers: Mapping[str, str]
    address: str


class Auth(Protocol):
    """Decides who is asking."""

    def viewer(self, caller: Caller) -> Viewer:
        """Who is asking; raises UnauthenticatedError or ForbiddenError."""

    def reporter(self, caller: Caller) -> Viewer:
        """Who tells of a checkpoint; raises as `viewer`."""

    def may_scrape(self, caller: Caller) -> bool:
        """Whether this sender may read `/metrics`."""

    def check_bind(self, host: str) -> None:
        """Refuse an address that this mode cannot protect."""


def is_loopback(host: str) -> bool:
    """
    Whether only this machine can reach that host.

    >>> [is_loopback(host) for host in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "gpu.example")]
    [True, True, True, False, False]
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def host_name(header: str) -> str:
    """
    The name in a Host header, without the port.

    >>> host_name("localhost:8080"), host_name("[::1]:8080")
    ('localhost', '::1')
    """
    if header.startswith("["):
        return header[1:].partition("]")[0]
    return header.partition(":")[0]


@dataclass(frozen=True, slots=True)
class NoAuth:
    """Everyone who reaches this machine's loopback is admin."""

    def viewer(self, caller: Caller) -> Viewer:
        """
        The admin.

        Raises:
            ForbiddenError: the Host header names another host. A web page that points its own
                name at 127.0.0.1 could otherwise read everything through the user's browser.
        """
        self._check_host(caller)
        return Viewer(name="local", role=Role.ADMIN)

    def reporter(self, caller: Caller) -> Viewer:
        """As `viewer`."""
        return self.viewer(caller)

    def may_scrape(self, caller: Caller) -> bool:
        """Everyone on this machine."""
        self._check_host(caller)
        return True

    def check_bind(self, host: str) -> None:
        """
        Loopback only.

        Raises:
            SettingsError: the host can be reached from other machines.
        """
        if not is_loopback(host):
            message = (
                f'server.host = "{host}" with auth.mode = "none": expected a loopback address, for example'
                " 127.0.0.1; to serve other machines put an authenticating proxy in front and set"
                ' auth.mode = "header"'
            )
            raise SettingsError(message)

    @staticmethod
    def _check_host(caller: Caller) -> None:
        host = caller.headers.get("host", "localhost")
        if not is_loopback(host_name(host)):
            message = f"host {host!r}: without authentication only localhost and 127.0.0.1 are answered"
            raise ForbiddenError(message)


@dataclass(frozen=True, slots=True, kw_only=True)
class HeaderAuth:
    """
    An authenticating proxy in front says who is asking.

    Args:
        secret: shared with the proxy, which sends it in `secret_header`; never empty.
        trusted: networks that the proxy may call from; empty means any, as the secret decides.
        roles: group -> role. A viewer without such a group is a researcher.
        team_groups: group -> teams that its members belong to.
        token: the service token, empty for none.
        team_tokens: team -> the token of its jobs, which may tell of checkpoints and read nothing.
    """

    secret: str = field(repr=False)
    user_header: str = "x-forwarded-user"
    groups_header: str = "x-forwarded-groups"
    secret_header: str = "x-gpuledger-proxy-secret"  # noqa: S105 (the header's name)
    trusted: tuple[Network, ...] = ()
    roles: Mapping[str, Role] = field(default_factory=dict)
    team_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    token: str = field(default="", repr=False)
    team_tokens: Mapping[str, str] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        if not self.secret:
            message = 'auth.mode = "header" without a secret: expected auth.header.secret_file with one line'
            raise SettingsError(message)

    def viewer(self, caller: Caller) -> Viewer:
        """
        The proxy's user, or the program with the service token.

        Raises:
            UnauthenticatedError: no secret, a wrong one, a sender outside `trusted`, or no user.
        """
        if self._has_token(caller):
            return Viewer(name="service", role=Role.OPERATOR)
        if not _same(caller.headers.get(self.secret_header.lower(), ""), self.secret):
            message = "no identity: ask through the authenticating proxy, or send a service token"
            raise UnauthenticatedError(message)
        if self.trusted and not self._is_trusted(caller.address):
            message = f"the sender {caller.address} is not one of the trusted proxies"
            raise UnauthenticatedError(message)
        user = caller.headers.get(self.user_header.lower(), "")
        if not user:
            message = f"the proxy sent no {self.user_header}"
            raise UnauthenticatedError(message)
        return self._member(user, caller.headers.get(self.groups_header.lower(), ""))

    def reporter(self, caller: Caller) -> Viewer:
        """
        A job with the token of its team, or whoever `viewer` says.

        Raises:
            UnauthenticatedError: as `viewer`.
        """
        given = _bearer(caller)
        teams = frozenset(team for team, token in self.team_tokens.items() if given and _same(given, token))
        if teams:
            return Viewer(name="job", role=Role.RESEARCHER, teams=teams)
        return self.viewer(caller)

    def may_scrape(self, caller: Caller) -> bool:
        """With the token; without a configured one, direct callers on this machine."""
        if self.token:
            return self._has_token(caller)
        forwarded = {"forwarded", "x-forwarded-for", self.secret_header.lower()} & caller.headers.keys()
        return is_loopback(caller.address) and not forwarded

    def check_bind(self, host: str) -> None:
        """Any address: the secret protects it."""

    def _has_token(self, caller: Caller) -> bool:
        given = _bearer(caller)
        return bool(self.token and given) and _same(given, self.token)

    def _is_trusted(self, address: str) -> bool:
        try:
            sender = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(sender in network for network in self.trusted)

    def _member(self, user: str, groups_text: str) -> Viewer:
        groups = {group.strip() for group in groups_text.split(",")} - {""}
        held = {self.roles[group] for group in groups if group in self.roles}
        role = next((role for role in _ROLE_ORDER if role in held), Role.RESEARCHER)
        teams = (team for group in groups for team in self.team_groups.get(group, ()))
        return Viewer(name=user, role=role, teams=frozenset(teams))


def _bearer(caller: Caller) -> str:
    """The token that a request carries; empty without one."""
    scheme, _, token = caller.headers.get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def _same(given: str, secret: str) -> bool:
    # As bytes: compare_digest refuses texts with other than ASCII letters.
    return hmac.compare_digest(given.encode(), secret.encode())
