"""What a GPU-hour of each node costs, kept for budgets of money: figures price what is held now by it."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Final

from analytics.budgets import NANO
from analytics.chargeback.agreement import Agreement
from analytics.chargeback.stays import NodeStretch
from domain.calendar import Unit, running
from domain.errors import PolicyError
from domain.money import PriceBook
from domain.policy import Policy
from domain.window import MS_PER_SECOND, Window
from service.held_time import node_stretches
from store.derived import Replacement
from store.embedded import Store

# How often nodes are priced anew; one that joined meanwhile makes figures lower bounds.
EVERY_MS: Final = 300 * MS_PER_SECOND
_KEPT: Final = """
select cluster, node, start_ms, end_ms, nano_price from node_price
where cluster = $cluster
order by node, start_ms
"""


@dataclass(slots=True)
class NodePrices:
    """The stage that prices nodes, where a budget of money is set: of this month and the one before."""

    store: Store
    policy: Policy
    agreement: Agreement
    _priced_ms: int | None = field(default=None, init=False)

    def refresh(self, cluster: str, as_of_ms: int) -> int:
        """Price the nodes of all clusters anew, after the last of them; gives how many clusters changed."""
        clusters = self.store.clusters()
        if not self.policy.money_budgets or not self.agreement.book.prices or cluster != clusters[-1]:
            return 0
        if self._priced_ms is not None and 0 <= as_of_ms - self._priced_ms < EVERY_MS:
            return 0
        book = self.agreement.book
        this_month = running(as_of_ms, self.agreement.zone, Unit.MONTH)
        before = running(this_month.start_ms, self.agreement.zone, Unit.MONTH)
        window = Window(start_ms=before.start_ms, end_ms=as_of_ms)
        labels = {key for price in book.prices for key, _ in price.node_labels}
        stretches = node_stretches(self.store, window, labels)
        changed = 0
        for name in clusters:
            rows = list(_priced([each for each in stretches if each.cluster == name], book))
            if rows != self.store.rows(_KEPT, {"cluster": name}):
                self.store.replace(name, [Replacement(table="node_price", rows=rows)])
                changed += 1
        self._priced_ms = as_of_ms
        return changed


def _priced(stretches: list[NodeStretch], book: PriceBook) -> Iterator[dict[str, object]]:
    """Stretches of one price, by node and time; where the book has no price there is none."""
    ordered = sorted(stretches, key=lambda each: (each.node, each.start_ms))
    for node, of_node in groupby(ordered, key=lambda each: each.node):
        last: dict[str, object] = {}
        for each in of_node:
            for start_ms, end_ms in _cut(each, book):
                try:
                    price = book.price(each.sku, start_ms).effective_price
                except PolicyError:
                    continue
                nano = int(price * NANO)
                if last and last["end_ms"] == start_ms and last["nano_price"] == nano:
                    last["end_ms"] = end_ms
                    continue
                if last:
                    yield last
                last = {
                    "cluster": each.cluster,
                    "node": node,
                    "start_ms": start_ms,
                    "end_ms": end_ms,
                    "nano_price": nano,
                }
        if last:
            yield last


def _cut(stretch: NodeStretch, book: PriceBook) -> Iterator[tuple[int, int | None]]:
    inside = [
        at
        for at in book.changes_ms()
        if stretch.start_ms < at and (stretch.end_ms is None or at < stretch.end_ms)
    ]
    edges: list[int] = [stretch.start_ms, *inside]
    yield from pairwise(edges)
    yield edges[-1], stretch.end_ms
