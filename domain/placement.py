"""
What a pod wants of its node: labels, required affinity, and the taints that it tolerates.

Preferences are left out: they keep no pod from a node. So are tolerations of the taints that Kubernetes
itself puts on nodes, for a node that is not ready or cordoned takes no new pod anyway.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, field

NODE_NAME = "metadata.name"
_KEEPS_AWAY = frozenset({"NoSchedule", "NoExecute"})
SYSTEM_TAINTS = "node.kubernetes.io/"


class Rule(Struct, frozen=True, kw_only=True, gc=False):
    """One expression of node affinity; a field of the node stands as a label of the field's name."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        """
        Whether labels satisfy it, as `nodeaffinity` of component-helpers has it.

        >>> Rule(key="zone", operator="NotIn", values=("a",)).matches({})
        True
        """
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._is_beyond(value)
        return False

    def _is_beyond(self, value: str | None) -> bool:
        try:
            there, bound = int(value or ""), int(self.values[0])
        except (ValueError, IndexError):
            return False
        return there > bound if self.operator == "Gt" else there < bound


class Toleration(Struct, frozen=True, kw_only=True, gc=False):
    """A taint that the pod bears; an empty key with `Exists` is any, an empty effect is all."""

    key: str
    operator: str
    value: str
    effect: str

    def bears(self, key: str, value: str, effect: str) -> bool:
        """Whether it bears that taint."""
        if self.effect and self.effect != effect:
            return False
        if self.operator == "Exists":
            return self.key in ("", key)
        return self.key == key and self.value == value


class Placement(Struct, frozen=True, kw_only=True, gc=False):
    """
    What a pod wants of its node: all of `labels`, and one of the `terms`, of each all rules.

    >>> pod = Placement(labels={"pool": "h100"})
    >>> pod.allows("n1", {"pool": "h100"}, []), pod.allows("n1", {"pool": "h100"}, ["x=:NoSchedule"])
    (True, False)
    """

    labels: dict[str, str] = field(default_factory=dict)
    terms: tuple[tuple[Rule, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()

    def allows(self, node: str, labels: Mapping[str, str], taints: Iterable[str]) -> bool:
        """
        Whether the pod may stand on a node with these labels and taints.

        Args:
            node: its name.
            labels: of the node.
            taints: of the node, as kubectl writes them: `key=value:effect`.
        """
        if any(labels.get(key) != value for key, value in self.labels.items()):
            return False
        known = {**labels, NODE_NAME: node} if self.terms else labels
        if self.terms and not any(all(rule.matches(known) for rule in term) for term in self.terms):
            return False
        return all(self._bears(taint) for taint in taints)

    def _bears(self, taint: str) -> bool:
        key, _, rest = taint.partition("=")
        value, _, effect = rest.rpartition(":")
        if effect not in _KEEPS_AWAY or key.startswith(SYSTEM_TAINTS):
            return True
        return any(toleration.bears(key, value, effect) for toleration in self.tolerations)
