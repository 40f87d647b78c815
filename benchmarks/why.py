"""
What it costs to say why everybody waits: `python -m benchmarks.why [--quick]`.

Reasons by placement, quota and order with their blockers, and the priority of each, for all that wait at an
instant, in CPU time of the whole process: the tables are built anew each time. The peer walks over the nodes
for each gang, as a scheduler does, and says only whether there is room. The other figures are answers of the
API after a look at all of them, reads of the store and the HTTP route included: one workload after another,
as a user clicks through a list, in one minute and never the same twice; and the first one of a minute, or
after something was committed, for which what all share is read and searched. The peer of the former is the
latter, whose peer is the same without a look. Exits with 1 where a goal is missed: 10,000 on 2,000 nodes in 2
CPU-seconds, and one in 50 ms after another. The first one has no goal.
"""

import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Final

from starlette.testclient import TestClient

from analytics.why.nodes import Gang, Node, NodeStock
from analytics.why.order import queue_order
from analytics.why.placement import place
from analytics.why.quota import KueueQuota
from analytics.why.reason import Explanation, Reason, explanation
from analytics.why.waterfall import waterfall
from api.app import Api, create_app
from api.auth import NoAuth
from benchmarks.figures import Figure, compared, cpu_seconds, tell
from benchmarks.waiting_city import CLASSES, City, city
from benchmarks.waiting_store import AS_OF_MS, CLUSTER, kept
from domain.placement import Placement
from domain.policy import Policy
from domain.tenant import Tenancy
from service.answers import Answers
from service.wait_reasons import Reasons
from service.why_orders import Orders

_AS_OF_MS: Final = 86_400_000


@dataclass(frozen=True, slots=True)
class Size:
    """How many nodes and workloads, for how many the peer walks, and how often."""

    nodes: int = 2_000
    waiting: int = 10_000
    walked: int = 100
    rounds: int = 3


QUICK: Final = Size(nodes=500, waiting=2_500, walked=50, rounds=1)
# 10,000 on 2,000 nodes in 2 CPU-seconds; smaller sites have less in common.
GOAL: Final = 5_000
# One of them in 50 ms.
ONE_GOAL: Final = 20
# So many are asked for through the API in a round; the minute in which all find the same is not over then.
_ASKED: Final = 20
_STRIDE: Final = 97


def explained(site: City) -> list[Explanation]:
    """The answer for everybody who waits, from the tables as they are read."""
    stock = NodeStock(site.nodes, site.holds)
    quota = KueueQuota(site.site)
    behind = queue_order([one for one, _ in site.waiting], quota, strict=site.strict)
    answers = []
    for one, gang in site.waiting:
        assert one.request
        waterfall("", CLASSES, value=one.priority, waited_ms=_AS_OF_MS - one.since_ms, as_of_ms=_AS_OF_MS,
                  submitted_ms=one.since_ms)  # fmt: skip
        order = [behind[one.uid]] if one.uid in behind else []
        answers.append(explanation([*place(gang, stock), *quota.findings(one.request), *order]))
    return answers


def walked(gang: Gang, nodes: list[Node]) -> bool:
    """Whether a gang has room, node by node: every pod on the first node that takes it."""
    free = {node.name: {**node.free, **node.others_free} for node in nodes}
    for pods in gang.pod_sets:
        placement = pods.placement or Placement()
        asks = {**pods.devices, **pods.others}
        left = pods.pods
        for node in nodes:
            room = free[node.name]
            if not node.schedulable or not placement.allows(node.name, node.labels, node.taints):
                continue
            while left and all(room.get(name, 0) >= count for name, count in asks.items()):
                for name, count in asks.items():
                    room[name] -= count
                left -= 1
        if left:
            return False
    return True


def figures(size: Size) -> list[Figure]:
    """The figure: workloads explained in a CPU-second."""
    site = city(nodes=size.nodes, waiting=size.waiting)
    few = [gang for _, gang in site.waiting[: size.walked]]
    ours, theirs, ratio = compared(
        lambda: cpu_seconds(lambda: explained(site)),
        lambda: cpu_seconds(lambda: [walked(gang, site.nodes) for gang in few]) * size.waiting / len(few),
        rounds=size.rounds,
    )
    looked_at = cpu_seconds(lambda: Counter((one.queue, one.priority) for one, _ in site.waiting))
    return [
        Figure(
            name="workloads explained", product=size.waiting / ours, peer=size.waiting / theirs, ratio=ratio,
            goal=None, limit=size.waiting / looked_at, limit_of="looked at once",
            least=GOAL if size == Size() else 0.0,
        ),
        *through_the_api(site, size),
    ]  # fmt: skip


def through_the_api(site: City, size: Size) -> Iterator[Figure]:
    """The figures: answers of the API in a CPU-second, one after another, and the first."""
    store = kept(site)
    orders = Orders()
    Reasons(store, orders=orders).refresh(CLUSTER, AS_OF_MS)
    # A stride that meets all queues: whoever is asked about was not before.
    uids = (one.uid for one, _ in islice(cycle(site.waiting), 0, None, _STRIDE))

    def new(orders: Orders) -> TestClient:
        return _client(Answers(store, Tenancy(), Policy(), _Passing(AS_OF_MS), orders=orders))

    def asked(client: TestClient, times: int) -> float:
        paths = [f"/api/v1/workloads/{uid}/why" for uid in islice(uids, times)]
        return cpu_seconds(lambda: [client.get(path).raise_for_status() for path in paths]) / times

    def first(orders: Orders) -> float:
        return asked(new(orders), 1)

    client = new(orders)
    asked(client, 1)
    read = cpu_seconds(lambda: store.rows("select * from node_device", {}))
    for name, product, peer, goal in (
        ("one after another through the API", lambda: asked(client, _ASKED), lambda: first(orders), ONE_GOAL),
        ("the first one through the API", lambda: first(orders), lambda: first(Orders()), 0.0),
    ):
        ours, theirs, ratio = compared(product, peer, rounds=size.rounds)
        yield Figure(
            name=name, product=1 / ours, peer=1 / theirs, ratio=ratio, goal=None,
            limit=1 / read, limit_of="reads of all nodes", least=goal if size == Size() else 0.0,
        )  # fmt: skip


@dataclass(slots=True)
class _Passing:
    """A clock that goes on by a fifth of a second each time it is looked at."""

    at_ms: int

    def now_ms(self) -> int:
        """The next instant."""
        self.at_ms += 200
        return self.at_ms


def _client(answers: Answers) -> TestClient:
    api = Api(answers=answers, auth=NoAuth(), metrics_text=bytes)
    return TestClient(create_app(api), base_url="http://127.0.0.1", client=("127.0.0.1", 5000))


def reasons(size: Size) -> Counter[Reason]:
    """How often each reason is given, first or further, so that one sees that no branch is left out."""
    site = city(nodes=size.nodes, waiting=size.waiting)
    return Counter(finding.reason for one in explained(site) for finding in one.findings)


def main(arguments: list[str]) -> int:
    """Run it, and tell how often each reason is given; gives the exit status."""
    size = QUICK if "--quick" in arguments else Size()
    print({str(reason): number for reason, number in reasons(size).most_common()})
    return 0 if tell(figures(size)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
