"""What `doctor` finds when it asks the clusters of the settings: credentials that end, and clocks."""

from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime

from collector.decoding import UNREADABLE
from collector.kube.client import Connection
from collector.kube.credentials import SERVER_CERTIFICATE, Lifetime
from collector.live import uid_of_cluster
from domain.errors import ProductError
from domain.window import MS_PER_SECOND, Clock, format_instant, to_ms
from service import words
from service.cli.finding import Finding, Verdict
from service.identity import of_settings, told_twice
from service.settings import ClusterSettings

# A header tells whole seconds, and the answer takes its time.
_SKEW_SECONDS = 5
_ASK_SECONDS = 5.0


def findings(cluster: ClusterSettings, clock: Clock) -> Iterator[Finding]:
    """What is to be said of one cluster."""
    try:
        connection = Connection.open(kubeconfig=cluster.kubeconfig, context=cluster.context)
    except ProductError as error:
        yield Finding(Verdict.WRONG, f"cluster {cluster.name}: {error}", "mend clusters in the settings")
        return
    try:
        for life in (*connection.lifetimes(), *connection.server_lifetimes()):
            yield from _of_lifetime(cluster.name, life, clock.now_ms())
        answer = connection.get("/version", {}, read_seconds=_ASK_SECONDS)
        yield from _of_clock(cluster.name, answer.headers.get("date", ""), clock.now_ms())
    except ProductError as error:
        remedy = "does the server of the kubeconfig answer from this machine?"
        yield Finding(Verdict.WRONG, f"cluster {cluster.name}: {error}", remedy)
    finally:
        connection.close()


def second_names(clusters: Sequence[ClusterSettings]) -> Iterator[Finding]:
    """Names of the settings that are one cluster; one that does not say which it is may be any."""
    first: dict[str, str] = {}
    for cluster in clusters if len(clusters) > 1 else ():
        uid = _uid(cluster)
        if uid and (other := first.setdefault(uid, cluster.name)) != cluster.name:
            text = f"cluster {told_twice(cluster.name, other)}; one of them is not read"
            yield Finding(Verdict.WRONG, text, of_settings(other, cluster.name))


def _uid(cluster: ClusterSettings) -> str:
    try:
        connection = Connection.open(kubeconfig=cluster.kubeconfig, context=cluster.context)
    except ProductError:
        return ""  # `findings` tells of it
    try:
        return uid_of_cluster(connection, read_seconds=_ASK_SECONDS)
    except (ProductError, *UNREADABLE):
        return ""
    finally:
        connection.close()


def _of_lifetime(cluster: str, life: Lifetime, now_ms: int) -> Iterator[Finding]:
    left = words.duration(abs(life.end_ms - now_ms) / MS_PER_SECOND)
    until = f"({format_instant(life.end_ms)})"
    place = "on the API server" if life.what == SERVER_CERTIFICATE else "in the kubeconfig"
    remedy = f"renew it {place}; a running serve takes the new one by itself"
    if life.end_ms <= now_ms:
        yield Finding(Verdict.WRONG, f"cluster {cluster}: the {life.what} ended {left} ago {until}", remedy)
    elif life.is_near_its_end(now_ms):
        yield Finding(Verdict.WARNING, f"cluster {cluster}: the {life.what} ends in {left} {until}", remedy)


def _of_clock(cluster: str, date: str, now_ms: int) -> Iterator[Finding]:
    try:
        ahead = (to_ms(parsedate_to_datetime(date)) - now_ms) / MS_PER_SECOND
    except ValueError:
        return  # it does not say what time it has
    if abs(ahead) <= _SKEW_SECONDS:
        return
    way = "ahead of" if ahead > 0 else "behind"
    text = f"cluster {cluster}: the API server's clock is {words.duration(abs(ahead))} {way} ours"
    yield Finding(Verdict.WARNING, text, "let both follow NTP: waits would be wrong by that much")
