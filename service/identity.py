"""
Which cluster is which: under two names one cluster would count twice.

The uid of the namespace kube-system is a cluster's identity. An account that may not see it leaves it
unknown, and then nobody can tell.
"""

import threading
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from collector.kube.watch_steps import Outcome

# The alarm about a cluster that has two names; the second one follows.
TWICE: Final = "one_cluster_twice"
# What marks of a cluster say after `gpuledger retire`.
RETIRED: Final = f"{Outcome.NOT_INSTALLED}: the cluster was retired"
# The first of two names waits so long for one that goes before it, which may be unreachable.
_GRACE_SECONDS: Final = 5.0


def names_by_uid(marks: Iterable[Mapping[str, Any]]) -> dict[str, list[str]]:
    """
    The names under which each cluster was read and is not retired, the one that was read last first.

    `marks` are rows of `Store.marks`.
    """
    seen: dict[str, dict[str, int]] = defaultdict(dict)
    newest: dict[str, tuple[int, bool]] = {}
    for mark in marks:
        uid, name, seen_ms = str(mark["cluster_uid"]), str(mark["cluster"]), int(mark["seen_ms"])
        # It may have been read again since; of two that are as new the one counts that says so.
        if uid:
            is_retired = str(mark["last_error"]).startswith(RETIRED)
            newest[name] = max(newest.get(name, (0, False)), (seen_ms, is_retired))
        if uid and seen_ms:
            seen[uid][name] = max(seen_ms, seen[uid].get(name, 0))
    retired = {name for name, (_, is_retired) in newest.items() if is_retired}
    return {
        uid: sorted(left, key=lambda name: (-names[name], name))
        for uid, names in seen.items()
        if (left := names.keys() - retired)
    }


def told_twice(name: str, other: str) -> str:
    """That a name is a second one of a cluster."""
    return f"{name} is the same cluster as {other} (their namespace kube-system has one uid)"


def of_settings(name: str, other: str) -> str:
    """What to do about two names in the settings that are one cluster."""
    return (
        f"take {name} or {other} out of clusters in the settings and start again; if anything was read under"
        " it, give `gpuledger retire` with that name: all of it ends with its last reading"
    )


def of_the_past(earlier: str) -> str:
    """What to do about another name under which a cluster was read before."""
    return (
        f"give `gpuledger retire {earlier}`, which ends all that was read under it with its last reading; or"
        f" call the cluster {earlier} again in the settings, and retire the other name"
    )


class Identities:
    """
    Lets each cluster be read under one name of the settings.

    The name under which a cluster was read before goes before a new one, then the earlier in the settings.
    Safe to use from the threads of all clusters.

    Args:
        names: those of the settings, in their order.
        known: as `names_by_uid` gives it.
        grace_seconds: for how long a name waits for those that go before it.
    """

    def __init__(
        self,
        names: Sequence[str],
        known: Mapping[str, Sequence[str]],
        *,
        grace_seconds: float = _GRACE_SECONDS,
    ) -> None:
        self._names = list(names)
        self._known = known
        self._grace_seconds = grace_seconds
        self._met: dict[str, str] = {}
        self._reading: dict[str, str] = {}
        self._changed = threading.Condition()

    def meet(self, name: str, uid: str) -> str:
        """
        A cluster says who it is, or "" where it does not; gives the name under which it is read already.

        Empty where it may be read under this one.
        """
        with self._changed:
            self._met[name] = uid
            self._reading = {read: by for read, by in self._reading.items() if by != name}
            self._changed.notify_all()
            if not uid:
                return ""
            before = [other for other in self._names if self._rank(other, uid) < self._rank(name, uid)]
            self._changed.wait_for(lambda: self._met.keys() >= set(before), self._grace_seconds)
            same = [other for other in before if self._met.get(other) == uid]
            reader = self._reading.get(uid) or next(iter(same), "")
            if not reader:
                self._reading[uid] = name
            return reader

    def _rank(self, name: str, uid: str) -> tuple[bool, int]:
        return name not in self._known.get(uid, ()), self._names.index(name)
