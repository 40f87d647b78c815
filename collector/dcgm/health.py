"""Readings of GPUs' health in the answers of exporters and of a Prometheus. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from collector.dcgm.exposition import labels_of
from domain.gpu_fault import HEALTH_FIELDS, FaultKind, HealthReading, code_of, xid_words
from domain.gpu_sample import Owner, device_of, owner_of
from domain.window import CLOCK_SKEW_MS, instant_of_seconds, is_instant

if TYPE_CHECKING:
    from collector.dcgm.answers import Series

_DRIVER: Final = "DCGM_FI_DRIVER_VERSION"
# Few of an answer's lines: they are looked for, and the others are not read.
_LINE: Final = re.compile(
    rf"^({'|'.join(HEALTH_FIELDS)})[ \t]*\{{(.*)\}}[ \t]*(\S+)(?:[ \t]+(\d+))?[ \t]*$", re.MULTILINE
)


class _Said(NamedTuple):
    """What labels say; `words` are the exporter's own for the XID."""

    node: str
    uuid: str
    words: str
    driver: str
    owner: Owner


def of_answer(text: str, at_ms: int, *, node: str = "") -> Iterator[HealthReading]:
    """
    What an exporter's answer says of the health of its GPUs; a value that is none says nothing.

    Args:
        text: the answer.
        at_ms: when it was asked for; a line with an instant of its own counts at that one.
        node: of series that name none.
    """
    drivers: dict[str, HealthReading] = {}
    for name, labels, value, own_ms in _LINE.findall(_about_health(text)):
        said = _said(labels)
        if said is None:
            continue
        when_ms = _instant_ms(own_ms) if own_ms else at_ms
        # Samples of the same answer are counted as set aside.
        if when_ms is None or when_ms > at_ms + CLOCK_SKEW_MS:
            continue
        yield from _readings(HEALTH_FIELDS[name], said, _float(value), when_ms, node)
        driver = _driver(said, when_ms, node)
        if driver is not None:
            drivers[driver.node] = driver
    yield from drivers.values()


def forget() -> None:
    """Forget what label texts mean: pods come and go, and each leaves some behind."""
    _said.cache_clear()


def _about_health(text: str) -> str:
    """The lines with the name of a family of health: finding those takes a tenth of matching every line."""
    found: dict[str, None] = {}
    for name in HEALTH_FIELDS:
        place = text.find(name)
        while place >= 0:
            end = text.find("\n", place)
            found[text[text.rfind("\n", 0, place) + 1 : end if end >= 0 else len(text)]] = None
            place = text.find(name, end) if end >= 0 else -1
    return "\n".join(found)


def of_series(answered: "Iterable[Series]") -> Iterator[HealthReading]:
    """What the answers to range queries say; in no order."""
    for series in answered:
        kind = HEALTH_FIELDS.get(series.metric.get("__name__", ""))
        said = None if kind is None else _meaning(series.metric)
        if kind is None or said is None:
            continue
        values = {
            at_ms: value for at, value in series.values if (at_ms := instant_of_seconds(at)) is not None
        }
        instants = list(values)
        for at_ms, value in values.items():
            yield from _readings(kind, said, _float(value), at_ms, "")
        # Another driver is another series.
        for at_ms in {instants[0], instants[-1]} if instants else ():
            driver = _driver(said, at_ms, "")
            if driver is not None:
                yield driver


def _readings(kind: FaultKind, said: _Said, value: float, at_ms: int, node: str) -> Iterator[HealthReading]:
    code = code_of(value)
    if code is not None:
        words = (said.words or xid_words(code)) if kind is FaultKind.XID and code else ""
        yield HealthReading(
            kind=kind,
            node=said.node or node,
            uuid=said.uuid,
            at_ms=at_ms,
            code=code,
            words=words,
            owner=said.owner,
        )


def _driver(said: _Said, at_ms: int, node: str) -> HealthReading | None:
    if not said.driver:
        return None
    return HealthReading(
        kind=FaultKind.DRIVER, node=said.node or node, uuid="", at_ms=at_ms, code=0, words=said.driver
    )


# Exporters repeat their label sets word for word in every answer.
@lru_cache(maxsize=1 << 17)
def _said(labels: str) -> _Said | None:
    try:
        return _meaning(labels_of(labels))
    except ValueError:
        return None


def _meaning(labels: Mapping[str, str]) -> _Said | None:
    """All instances of a GPU share its health: what one of them says is said of the GPU."""
    device = device_of(dict(labels))
    if device is None:
        return None
    owner = owner_of(dict(labels))
    whose = Owner(namespace=owner.namespace, pod=owner.pod, pod_uid=owner.pod_uid)
    return _Said(device.node, device.uuid, labels.get("err_msg", ""), labels.get(_DRIVER, ""), whose)


def _instant_ms(text: str) -> int | None:
    try:
        at_ms = int(text)
    except ValueError:
        return None
    return at_ms if is_instant(at_ms) else None


def _float(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return float("nan")
