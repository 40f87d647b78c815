"""Where exporters run: the pods with their label, or the endpoints of their service."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from operator import attrgetter
from typing import Final, NamedTuple

import msgspec

from collector.dcgm.exporter_http import ExporterAddress
from collector.decoding import UNREADABLE
from collector.kube.client import Connection
from collector.kube.refusal import refused
from domain.errors import UnreachableError

_PAGE: Final = "500"
_OK: Final = 200
_MOST_PAGES: Final = 1_000


class By(StrEnum):
    """What names the exporters."""

    PODS = "pods"
    SERVICES = "services"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """
    Which exporters of a cluster are meant.

    `selector` is a label selector: of the pods, or of the services whose endpoints count. `namespace` empty
    is every one. `port` is the one to ask; 0 takes the one that the pod or the endpoint names for metrics, or
    its first.
    """

    by: By
    namespace: str
    selector: str
    port: int
    scheme: str = "http"


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    continue_: str = msgspec.field(default="", name="continue")


class _Port(msgspec.Struct, gc=False, rename="camel"):
    container_port: int | None = None
    port: int | None = None
    name: str | None = None
    protocol: str | None = None


class _Container(msgspec.Struct, gc=False):
    ports: list[_Port] | None = None


class _PodSpec(msgspec.Struct, gc=False, rename="camel"):
    node_name: str | None = None
    containers: list[_Container] | None = None


class _PodStatus(msgspec.Struct, gc=False, rename="camel"):
    phase: str | None = None
    pod_ip: str | None = msgspec.field(default=None, name="podIP")


class _Pod(msgspec.Struct, gc=False):
    spec: _PodSpec = msgspec.field(default_factory=_PodSpec)
    status: _PodStatus = msgspec.field(default_factory=_PodStatus)


class _Conditions(msgspec.Struct, gc=False):
    ready: bool | None = None


class _TargetRef(msgspec.Struct, gc=False):
    uid: str | None = None


class _Endpoint(msgspec.Struct, gc=False, rename="camel"):
    addresses: list[str] | None = None
    node_name: str | None = None
    conditions: _Conditions | None = None
    target_ref: _TargetRef | None = None


class _Slice(msgspec.Struct, gc=False, rename="camel"):
    address_type: str | None = None
    endpoints: list[_Endpoint] | None = None
    ports: list[_Port] | None = None


class _Pods(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    items: list[_Pod] | None = None


class _Slices(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    items: list[_Slice] | None = None


def discover(connection: Connection, asked: Asked, *, read_seconds: float = 30.0) -> list[ExporterAddress]:
    """
    The exporters that run now, each once, in the order of their addresses.

    Raises:
        UnreachableError: the API server does not answer, or refuses.
    """
    return exporters_in(_pages(connection, asked, read_seconds), asked)


def exporters_in(pages: Iterable[bytes], asked: Asked) -> list[ExporterAddress]:
    """
    The exporters of all pages of pods, or of endpoint slices, each once, in the order of their addresses.

    A service of two families of addresses has a slice of each: of a pod with both the one of IPv4 is taken.
    """
    read = _of_pods if asked.by is By.PODS else _of_slices
    told = [
        (one._replace(port=asked.port or one.port), ExporterAddress(url, one.node))
        for page in pages
        for one in read(page)
        if (url := _url(one, asked))
    ]
    found: dict[tuple[str, int], ExporterAddress] = {}
    for one, exporter in sorted(told, key=lambda each: (":" in each[0].address, each[1].url)):
        found.setdefault((one.pod_uid or one.address, one.port), exporter)
    return sorted(found.values(), key=attrgetter("url"))


class _Told(NamedTuple):
    """Where an exporter is; the port is 0, and the rest empty, where it is not told."""

    address: str
    port: int
    node: str
    pod_uid: str = ""


def _url(one: _Told, asked: Asked) -> str:
    """Its address; empty where nobody knows the port."""
    port = asked.port or one.port
    return f"{asked.scheme}://{_host(one.address)}:{port}" if port else ""


def _of_pods(body: bytes) -> Iterator[_Told]:
    for pod in msgspec.json.decode(body, type=_Pods).items or ():
        if pod.status.phase == "Running" and pod.status.pod_ip:
            ports = [port for container in pod.spec.containers or () for port in container.ports or ()]
            yield _Told(pod.status.pod_ip, _port(ports), pod.spec.node_name or "")


def _of_slices(body: bytes) -> Iterator[_Told]:
    for one in msgspec.json.decode(body, type=_Slices).items or ():
        if one.address_type not in ("IPv4", "IPv6"):
            continue
        for endpoint in one.endpoints or ():
            ready = endpoint.conditions.ready if endpoint.conditions else None
            # Missing means ready.
            if endpoint.addresses and ready is not False:
                pod_uid = (endpoint.target_ref and endpoint.target_ref.uid) or ""
                port, node = _port(one.ports or ()), endpoint.node_name or ""
                yield _Told(endpoint.addresses[0], port, node, pod_uid)


def _port(ports: "list[_Port] | tuple[()]") -> int:
    named = [port for port in ports if port.name == "metrics"] or list(ports)
    return next((port.container_port or port.port or 0 for port in named), 0)


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _pages(connection: Connection, asked: Asked, read_seconds: float) -> Iterator[bytes]:
    root, resource = (
        ("/api/v1", "pods") if asked.by is By.PODS else ("/apis/discovery.k8s.io/v1", "endpointslices")
    )
    within = f"/namespaces/{asked.namespace}" if asked.namespace else ""
    path = f"{root}{within}/{resource}"
    params = {"limit": _PAGE, "labelSelector": asked.selector}
    for _ in range(_MOST_PAGES):
        answer = connection.get(path, params, read_seconds=read_seconds)
        if answer.status != _OK:
            told = refused(f"list {path}", answer.status, answer.body, answer.headers)
            raise UnreachableError(told.because)
        try:
            token = msgspec.json.decode(answer.body, type=_Continued).metadata.continue_
            yield answer.body
        except UNREADABLE as cause:
            message = f"list {path}: {cause}; expected a list of {resource}"
            raise UnreachableError(message) from cause
        if not token:
            return
        params["continue"] = token


class _Continued(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
