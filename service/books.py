"""The stages that keep what is derived up to date, in their order: each begins where it ended."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from analytics.chargeback.agreement import Agreement
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import Clock
from service.activity import Activity
from service.corrections import Corrections
from service.denials import Denials
from service.eta_told import Etas
from service.fairness import Fairness
from service.node_prices import NodePrices
from service.quota import Proposer
from service.quota_settings import QuotaSettings
from service.refresh import Refresher
from service.wait_reasons import Reasons
from service.wastage import Wastage
from service.why_orders import Orders
from store.embedded import Store


class Stage(Protocol):
    """One derived part of the books, for example the lives, or the debt ledger."""

    def refresh(self, cluster: str, as_of_ms: int) -> int:
        """
        Bring it up to date; gives how many things were made anew.

        What is new it finds by its own watermark, which commits with its result: a stop at any point
        repeats work and loses none.
        """


@dataclass(frozen=True, slots=True)
class Books:
    """All stages over all clusters. A later stage reads what the earlier ones wrote."""

    store: Store
    stages: Sequence[Stage]
    clock: Clock

    def refresh(self) -> int:
        """Bring everything up to date as of now; gives how many things were made anew."""
        return sum(self.kept().values())

    def lives_of(self, cluster: str) -> int:
        """Cut anew the lives of one cluster that have news, and nothing that rests on them."""
        lives = next(stage for stage in self.stages if isinstance(stage, _Lives))
        return lives.refresher.refresh_cluster(cluster)

    def kept(self) -> dict[str, int]:
        """The same, told stage by stage."""
        as_of_ms = self.clock.now_ms()
        made = {_name(stage): 0 for stage in self.stages}
        clusters = self.store.clusters()
        if len(clusters) > 1:
            # What MultiKueue copied has lives in several of them: all are cut before anything rests on one.
            made["lives"] += sum(self.lives_of(cluster) for cluster in clusters)
        for cluster in clusters:
            for stage in self.stages:
                made[_name(stage)] += stage.refresh(cluster, as_of_ms)
        return made


def _name(stage: Stage) -> str:
    return type(stage).__name__.strip("_").lower()


@dataclass(frozen=True, slots=True)
class _Lives:
    """The first stage: lives from facts."""

    refresher: Refresher

    def refresh(self, cluster: str, as_of_ms: int) -> int:  # noqa: ARG002 (facts say when they were)
        """Cut anew the workloads with news."""
        return self.refresher.refresh_cluster(cluster)


def books_of(  # noqa: PLR0913 - what the stages need
    store: Store,
    *,
    tenancy: Tenancy,
    policy: Policy,
    clock: Clock,
    agreement: Agreement | None = None,
    quotas: QuotaSettings | None = None,
    past_looks: int = 0,
    orders: Orders | None = None,
) -> Books:
    """The books of a store, with all stages; `past_looks` and `orders` as in `service.wait_reasons`."""
    return Books(
        store,
        stages=(
            _Lives(Refresher(store=store, tenancy=tenancy, policy=policy)),
            Denials(store, tenancy),
            Reasons(store, past_looks, orders or Orders()),
            Etas(store, replays=past_looks > 0),
            Activity(store, policy),
            Wastage(store, policy),
            Fairness(store, policy),
            Proposer(store, policy, agreement or Agreement(), quotas or QuotaSettings()),
            Corrections(store, tenancy),
            NodePrices(store, policy, agreement or Agreement()),
        ),
        clock=clock,
    )
