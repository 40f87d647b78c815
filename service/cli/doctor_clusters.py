"""What `doctor` finds when it asks the clusters of the settings: who answers, credentials, and clocks."""

from collections.abc import Iterator, Sequence
from email.utils import parsedate_to_datetime

import msgspec

from collector.decoding import UNREADABLE
from collector.kube.client import Answer, Connection, is_service_account
from collector.kube.credentials import SERVER_CERTIFICATE, Lifetime
from collector.kube.refusal import refused
from collector.live import uid_of_cluster
from domain.errors import ProductError
from domain.window import MS_PER_SECOND, Clock, format_instant, to_ms
from service import features, words
from service.cli.finding import Finding, Verdict
from service.identity import of_settings, told_twice
from service.settings import ClusterSettings

_VERSION = "/version"
_OK, _UNAUTHORIZED, _FORBIDDEN = 200, 401, 403
_NOBODY = "system:anonymous"
_SHOWN_BYTES = 80
# Where the credentials come from -> what to do where they are refused, and where they end.
_KUBECONFIG, _POD = "the kubeconfig", "the pod's service account"
_RENEW = {
    _KUBECONFIG: (
        "put a new token or certificate into the kubeconfig (of a service account: kubectl create token"
        " NAME), and check that it is of this cluster; a running serve takes it by itself"
    ),
    _POD: (
        "check that the pod's service account is still there and that the pod runs in this cluster; its"
        " kubelet writes a new token by itself, and a new pod has one at once"
    ),
}
_LENGTHEN = {
    _KUBECONFIG: "renew it in the kubeconfig; a running serve takes the new one by itself",
    _POD: (
        "the kubelet of the pod's node should have renewed it: look at the kubelet's log and at the clock of"
        " that node; a new pod has a new one at once"
    ),
}
# A header tells whole seconds, and the answer takes its time.
_SKEW_SECONDS = 5
_ASK_SECONDS = 5.0


class _Version(msgspec.Struct, rename="camel"):
    git_version: str


_VERSION_TOLD = msgspec.json.Decoder(_Version)


def findings(cluster: ClusterSettings, clock: Clock) -> Iterator[Finding]:
    """What is to be said of one cluster."""
    try:
        connection = Connection.open(kubeconfig=cluster.kubeconfig, context=cluster.context)
    except ProductError as error:
        yield Finding(Verdict.WRONG, f"cluster {cluster.name}: {error}", "mend clusters in the settings")
        return
    given_by = _POD if is_service_account(cluster.kubeconfig, cluster.context) else _KUBECONFIG
    try:
        for life in (*connection.lifetimes(), *connection.server_lifetimes()):
            yield from _of_lifetime(cluster.name, life, given_by, clock.now_ms())
        answer = connection.get(_VERSION, {}, read_seconds=_ASK_SECONDS)
        yield from _of_answer(cluster.name, answer, given_by)
        yield from _of_clock(cluster.name, answer.headers.get("date", ""), clock.now_ms())
    except ProductError as error:
        # Here it is asked once, and by a person.
        text = str(error).removesuffix("; trying again")
        yield Finding(Verdict.WRONG, f"cluster {cluster.name}: {text}", features.remedy("", text))
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


def _of_answer(cluster: str, answer: Answer, given_by: str) -> Iterator[Finding]:
    """Whether it is an API server that answered, and takes us for somebody; nothing where all is well."""
    if answer.status == _OK:
        if _is_version(answer.body):
            return
        shown = answer.body[:_SHOWN_BYTES].decode(errors="replace").strip()
        text = f"cluster {cluster}: what answers {_VERSION} is no API server: {shown!r}"
        yield Finding(Verdict.WRONG, text, features.remedy("", text))
        return
    because = refused(f"GET {_VERSION}", answer.status, answer.body, answer.headers).because
    text = f"cluster {cluster}: {because}"
    if answer.status == _UNAUTHORIZED:
        text = f"{text}: the token or certificate of {given_by} is refused"
        yield Finding(Verdict.WRONG, text, _RENEW[given_by])
    elif answer.status == _FORBIDDEN and _NOBODY in because:
        text = f"{text}: the server takes us for nobody, as {given_by} has no credentials that it accepts"
        yield Finding(Verdict.WRONG, text, _RENEW[given_by])
    elif answer.status == _FORBIDDEN:
        # Kinds may be readable all the same, and the sources say so one by one.
        remedy = "bind the account to system:public-info-viewer; the sources below say which kinds are read"
        yield Finding(Verdict.WARNING, text, remedy)
    else:
        yield Finding(Verdict.WRONG, text, features.remedy("", because))


def _is_version(body: bytes) -> bool:
    try:
        return bool(_VERSION_TOLD.decode(body).git_version)
    except msgspec.DecodeError:
        return False


def _of_lifetime(cluster: str, life: Lifetime, given_by: str, now_ms: int) -> Iterator[Finding]:
    left = words.duration(abs(life.end_ms - now_ms) / MS_PER_SECOND)
    until = f"({format_instant(life.end_ms)})"
    theirs = "renew it on the API server; a running serve takes the new one by itself"
    remedy = theirs if life.what == SERVER_CERTIFICATE else _LENGTHEN[given_by]
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
