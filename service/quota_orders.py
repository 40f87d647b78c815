"""What people do with proposals, also while the store is served: make a week's anew, and reject one."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Final

from analytics.chargeback.agreement import Agreement
from domain import calendar
from domain.errors import UsageError
from domain.policy import Policy
from domain.window import Clock
from domain.words import count
from service import quota
from service.orders import Handler
from service.quota import Proposer
from service.quota_settings import QuotaSettings
from service.quota_site import pools
from store.embedded import Store

PROPOSE: Final = "quota propose"
REJECT: Final = "quota reject"


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaOrders:
    """
    Acts on the proposals of an open store.

    `alone`: while it is entered nobody else makes proposals.
    """

    store: Store
    policy: Policy
    agreement: Agreement
    terms: QuotaSettings
    clock: Clock
    alone: Callable[[], AbstractContextManager[object]] = nullcontext

    def handlers(self) -> Mapping[str, Handler]:
        """What can be ordered, by name; each takes its one argument as JSON and says what it did."""
        return {PROPOSE: self._propose, REJECT: self._reject}

    def _propose(self, argument: str) -> str:
        """
        Make the proposals of a finished week, anew where there are some.

        Raises:
            UsageError: the week is none, or not over, or a later one has proposals.
        """
        asked = json.loads(argument)
        as_of_ms = self.clock.now_ms()
        zone = self.agreement.zone
        period = (
            calendar.week(asked["week"], zone) if asked["week"] else calendar.finished_week(as_of_ms, zone)
        )
        proposer = Proposer(self.store, self.policy, self.agreement, self.terms)
        told = []
        with self.alone():
            known = self.store.clusters()
            for name in asked["clusters"]:
                if name not in known:
                    message = f"cluster {name!r}: there is none in this store; known are {', '.join(known)}"
                    raise UsageError(message)
            for name in asked["clusters"] or known:
                made = proposer.propose(name, period, as_of_ms, again=True)
                shown = count(len(made), "proposal")
                told.append(f"{name}, week {period.label}: {shown} {' '.join(made)}".rstrip())
            told += self._agreed_in_vain(known, as_of_ms)
        return "\n".join(told)

    def _agreed_in_vain(self, clusters: Iterable[str], as_of_ms: int) -> Iterator[str]:
        """What the settings say of pools and holders that are not there: mostly a name that is mistyped."""
        holders: dict[str, set[str]] = {}
        for cluster in clusters:
            for site in pools(self.store, cluster, as_of_ms):
                holders.setdefault(site.pool, set()).update(site.holders)
        for name, said in (("agreed", self.terms.agreed), ("units", self.terms.units)):
            for pool in sorted(said.keys() - holders.keys()):
                there = ", ".join(sorted(holders)) or "none"
                yield f"settings, quota.{name}: there is no pool {pool}; the pools are {there}"
        for pool in sorted(self.terms.agreed.keys() & holders.keys()):
            there = ", ".join(sorted(holders[pool]))
            for holder in sorted(self.terms.agreed[pool].keys() - holders[pool]):
                yield f"settings, quota.agreed: pool {pool} has no holder {holder}; those are {there}"

    def _reject(self, argument: str) -> str:
        """Reject an open proposal; raises UsageError where it is none."""
        asked = json.loads(argument)
        with self.alone():
            quota.reject(
                self.store, asked["id"], who=asked["who"], note=asked["note"], at_ms=self.clock.now_ms()
            )
        return f"{asked['id']} is rejected"
