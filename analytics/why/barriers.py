"""What a gang wants of its nodes, taken apart into constraints that may be dropped one by one."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from msgspec import structs

from analytics.why.nodes import Class, NodeStock, Wish
from analytics.why.reason import Blocker, BlockerKind
from analytics.why.search import Asked
from domain.placement import Rule, Toleration

_ANY_TAINT: Final = Toleration(key="", operator="Exists", value="", effect="")


@dataclass(frozen=True, slots=True)
class Barrier:
    """One constraint, and the gang without it."""

    blocker: Blocker
    dropped: Callable[[Asked], Asked]


def barriers(asked: Asked, stock: NodeStock) -> Iterator[Barrier]:
    """
    The constraints of a gang's pods, one by one.

    Those are taints of nodes where they might stand otherwise, labels that they select, their required
    affinity, and the domain that they share. What a Kueue flavor demands is the queue's, not theirs to drop.
    """
    for taint in _taints(asked, stock):
        yield Barrier(Blocker(kind=BlockerKind.TAINT, name=taint), _wishing(_bearing(taint)))
    selected = {
        label: None
        for part in asked.parts
        for wish in part.wishes
        for label in sorted(wish.placement.labels.items())
    }
    for key, value in selected:
        name = f"{key}={value}"
        yield Barrier(Blocker(kind=BlockerKind.SELECTOR, name=name), _wishing(_unselected(key, value)))
    terms = [wish.placement.terms for part in asked.parts for wish in part.wishes[:1] if wish.placement.terms]
    if terms:
        name = "; ".join(dict.fromkeys(map(_in_words, terms)))
        yield Barrier(Blocker(kind=BlockerKind.AFFINITY, name=name), _wishing(_without_affinity))
    if asked.domain:
        together = Blocker(kind=BlockerKind.TOPOLOGY, name=asked.domain)
        yield Barrier(together, lambda one: replace(one, domain=""))


def everything_borne(wish: Wish) -> Wish:
    """The wish of a pod that every taint is borne by."""
    return _tolerating(wish, _ANY_TAINT)


def _taints(asked: Asked, stock: NodeStock) -> list[str]:
    """Taints that keep pods of the gang from nodes on which they might stand without them."""
    found: set[str] = set()
    for part in asked.parts:
        for wish, name in zip(part.wishes, part.name, strict=True):
            key = (name, asked.keys)
            if key not in stock.in_taints:
                stock.in_taints[key] = list(_taints_for(wish, stock.division(asked.keys).classes))
            found.update(stock.in_taints[key])
    return sorted(found)


def _taints_for(wish: Wish, classes: Iterable[Class]) -> Iterator[str]:
    for one in classes:
        if one.taints and one._replace(taints=()).takes(wish):
            yield from (taint for taint in one.taints if not one._replace(taints=(taint,)).takes(wish))


def _wishing(change: Callable[[Wish], Wish]) -> Callable[[Asked], Asked]:
    return lambda asked: asked.wishing(change)


def _bearing(taint: str) -> Callable[[Wish], Wish]:
    key, _, rest = taint.partition("=")
    value, _, effect = rest.rpartition(":")
    borne = Toleration(key=key, operator="Equal", value=value, effect=effect)
    return lambda wish: _tolerating(wish, borne)


def _tolerating(wish: Wish, borne: Toleration) -> Wish:
    tolerations = (*wish.placement.tolerations, borne)
    return wish._replace(placement=structs.replace(wish.placement, tolerations=tolerations))


def _unselected(key: str, value: str) -> Callable[[Wish], Wish]:
    def without(wish: Wish) -> Wish:
        kept = {k: v for k, v in wish.placement.labels.items() if (k, v) != (key, value)}
        return wish._replace(placement=structs.replace(wish.placement, labels=kept))

    return without


def _without_affinity(wish: Wish) -> Wish:
    return wish._replace(placement=structs.replace(wish.placement, terms=()))


def _in_words(terms: tuple[tuple[Rule, ...], ...]) -> str:
    """
    Required affinity as one reads it.

    >>> _in_words(((Rule(key="zone", operator="In", values=("a", "b")),),))
    'zone in a, b'
    """
    return " or ".join(" and ".join(map(_rule, term)) for term in terms)


def _rule(rule: Rule) -> str:
    words = {
        "In": "in", "NotIn": "not in", "Exists": "exists", "DoesNotExist": "does not exist",
        "Gt": ">", "Lt": "<",
    }  # fmt: skip
    return " ".join([rule.key, words.get(rule.operator, rule.operator), ", ".join(rule.values)]).strip()
