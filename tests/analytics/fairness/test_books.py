"""From lives and quotas to pools: where demand counts, what capacity is, how debts grow."""

from datetime import timedelta

import pytest

from analytics.fairness.books.accounts import Accounts, Book, Entry, FiguresT, PoolFigures, Share, TeamShare
from analytics.fairness.books.course import Course, pieces
from analytics.fairness.books.layout import layouts
from analytics.fairness.books.site import Site
from analytics.fairness.books.sweep import Sweep
from domain.facts import ObjectKind
from domain.objects import LocalQueue, ResourceQuota, VolcanoQueue
from domain.quantity import Quota
from tests.analytics.fairness.sites import (
    END,
    GPU,
    RESOURCE,
    cohort_body,
    course,
    flavor,
    history,
    node_body,
    nodes,
    queue,
    queue_body,
    quota,
    site,
    volcano_body,
)

HALF_LIFE = timedelta(days=7)
HOUR = 3600


def swept(where: Site, *courses: Course) -> Accounts:
    accounts = Accounts.of(HALF_LIFE)
    found = [piece for one in courses for piece in pieces(one, where)]
    Sweep(where, accounts).run(found, 0)
    return accounts


def at(book: list[Entry[Share]], key: tuple[str, ...], seconds: float) -> Entry[Share]:
    (found,) = (e for e in book if e.key == key and e.start_ms <= seconds * 1000 < e.until_ms)
    return found


def share(accounts: Accounts, pool: str, entity: str, seconds: float = 1) -> Share:
    return at(list(accounts.shares.entries()), (pool, entity), seconds).figures


def pool(accounts: Accounts, name: str, seconds: float = 1) -> PoolFigures:
    (found,) = (
        e for e in accounts.pools.entries() if e.key == (name,) and e.start_ms <= seconds * 1000 < e.until_ms
    )
    return found.figures


def team(accounts: Accounts, *key: str, seconds: float = 1) -> TeamShare:
    (found,) = (
        e for e in accounts.teams.entries() if e.key == key and e.start_ms <= seconds * 1000 < e.until_ms
    )
    return found.figures


TWO_QUEUES = (
    flavor("a100"),
    queue("nlp", "all", quota("a100", 8)),
    queue("vision", "all", quota("a100", 8)),
)


# ------------------------------------------------------------ pools and capacity


def test_cohort_trees_in_a_circle_are_cut() -> None:
    where = site(
        flavor("a100"),
        history(ObjectKind.COHORT, "a", (0, cohort_body("b"))),
        history(ObjectKind.COHORT, "b", (0, cohort_body("a"))),
        queue("nlp", "a", quota("a100", 8)),
        queue("vision", "b", quota("a100", 8)),
    )
    found = layouts(where, where.versions[-1], 0)
    assert {entity.name for layout in found.values() for entity in layout.tree.members()} == {"nlp", "vision"}


def test_the_cohorts_own_quota_and_tree_are_in_the_pool() -> None:
    where = site(
        flavor("a100"),
        history(ObjectKind.COHORT, "all", (0, cohort_body("", quota("a100", 16)))),
        history(ObjectKind.COHORT, "org", (0, cohort_body("all", quota("a100", 2, borrow=4), weight=3000))),
        queue("nlp", "org", quota("a100", 8)),
        *nodes("n1"),
    )
    layout = layouts(where, where.versions[-1], 1)["all/a100"]
    assert layout.tree.total_quota == 26 * GPU
    (org,) = layout.tree.cohorts
    assert (org.weight_milli, org.borrowing_limit, org.quota) == (3000, 4 * GPU, 2 * GPU)


def test_shares_and_slices_are_counted_in_parts_of_a_card() -> None:
    slices = quota("mig", 4, resource="nvidia.com/mig-1g.10gb")
    larger = quota("mig", 2, resource="nvidia.com/mig-3g.40gb")
    where = site(flavor("mig"), queue("nlp", "", slices, larger))
    # Four sevenths and six sevenths, each rounded as a set.
    assert layouts(where, where.versions[-1], 0)["nlp/mig"].tree.total_quota == 571_429 + 857_143


def test_capacity_leaves_out_cordoned_nodes_but_not_what_is_held_there() -> None:
    cordoned = history(ObjectKind.NODE, "n2", (0, node_body()), (2, node_body(cordoned=True)))
    where = site(*TWO_QUEUES, *nodes("n1"), cordoned)
    accounts = swept(where, course(gpus=4, stays=(("n2", 1, 5),)))
    assert [pool(accounts, "all/a100", s).capacity // GPU for s in (0.5, 1, 2, 5)] == [16, 16, 12, 8]


def test_capacity_leaves_out_what_others_hold() -> None:
    where = site(*TWO_QUEUES, *nodes("n1", "n2"))
    other = course("bare", gpus=4, manager="", queue="", stays=(("n1", 1, 5),))
    accounts = swept(where, other)
    assert [pool(accounts, "all/a100", s).capacity // GPU for s in (0, 1, 5)] == [16, 12, 16]
    assert pool(accounts, "north/A100").capacity == 16 * GPU


def test_cohorts_that_share_a_flavor_see_each_other_as_others() -> None:
    where = site(*TWO_QUEUES, queue("lab", "", quota("a100", 4)), *nodes("n1", "n2"))
    accounts = swept(where, course(gpus=4, queue="lab", stays=(("n1", 1, None),)))
    assert pool(accounts, "all/a100").capacity == 12 * GPU
    assert pool(accounts, "lab/a100").capacity == 16 * GPU


def test_whole_gpus_held_beside_the_slices_of_a_pool_are_not_taken_from_it() -> None:
    name = "nvidia.com/mig-3g.40gb"
    mixed = history(ObjectKind.NODE, "m1", (0, node_body("mig", gpus=4, more={name: 2})))
    where = site(flavor("mig"), queue("nlp", "", quota("mig", 2, resource=name)), mixed)
    bare = course("bare", gpus=4, manager="", queue="", model="MIG", stays=(("m1", 1, None),))
    assert pool(swept(where, bare), "nlp/mig").capacity == 857_143


# ------------------------------------------------------------ shares


def test_unused_quota_goes_to_whoever_asks_and_comes_back() -> None:
    where = site(*TWO_QUEUES, *nodes("n1", "n2"))
    greedy = course("a", gpus=8, pods=2, waits=((1, None),))
    late = course("b", gpus=8, queue="vision", team="vision", waits=((2, None),))
    accounts = swept(where, greedy, late)
    assert [share(accounts, "all/a100", "nlp", s).entitled // GPU for s in (1, 2)] == [16, 8]
    assert share(accounts, "all/a100", "vision", 2).entitled == 8 * GPU


def test_an_edited_quota_changes_the_share_at_its_instant() -> None:
    edited = history(
        ObjectKind.CLUSTER_QUEUE,
        "vision",
        (0, queue_body("all", quota("a100", 8))),
        (3, queue_body("all", quota("a100", 4))),
    )
    where = site(flavor("a100"), queue("nlp", "all", quota("a100", 8)), edited, *nodes("n1"))
    both = [course(name, gpus=8, queue=name, team=name, waits=((1, None),)) for name in ("nlp", "vision")]
    accounts = swept(where, *both)
    # 8 GPUs for quotas of 8 and 8, then of 8 and 4.
    assert [share(accounts, "all/a100", "vision", s).entitled for s in (1, 3)] == [4 * GPU, 2_666_667]
    assert share(accounts, "all/a100", "vision", 3).quota == 4 * GPU


def test_teams_of_one_queue_split_it_by_the_weights_of_their_local_queues() -> None:
    doors = (
        history(
            ObjectKind.LOCAL_QUEUE,
            "main",
            (0, LocalQueue(cluster_queue="nlp", stop_policy="None", weight_milli=3000)),
            namespace="heavy",
        ),
        history(
            ObjectKind.LOCAL_QUEUE,
            "main",
            (0, LocalQueue(cluster_queue="nlp", stop_policy="None", weight_milli=1000)),
            namespace="light",
        ),
    )
    where = site(*TWO_QUEUES, *doors, *nodes("n1"))
    both = [
        course(name, gpus=8, team=name, namespace=name, local_queue="main", waits=((1, None),))
        for name in ("heavy", "light")
    ]
    accounts = swept(where, *both)
    assert team(accounts, "all/a100", "nlp", "heavy").entitled == 6 * GPU
    assert team(accounts, "all/a100", "nlp", "light").entitled == 2 * GPU
    assert share(accounts, "all/a100", "nlp").team == ""


def test_without_any_quota_teams_share_a_model_equally() -> None:
    where = site(*nodes("n1"))
    both = [
        course(name, gpus=8, team=name, manager="", queue="", waits=((1, None),))
        for name in ("nlp", "vision")
    ]
    accounts = swept(where, *both)
    assert {e.key[1]: e.figures.entitled // GPU for e in accounts.shares.open.values()} == {
        "team/nlp": 4,
        "team/vision": 4,
    }
    assert pool(accounts, "north/A100").without_quota == 0


def test_a_namespace_with_a_resource_quota_is_entitled_to_no_more() -> None:
    limit = history(
        ObjectKind.RESOURCE_QUOTA, "gpus", (0, ResourceQuota(hard={RESOURCE: Quota.of("3")})), namespace="nlp"
    )
    where = site(limit, *nodes("n1"))
    both = [
        course(name, gpus=8, team=name, namespace=name, manager="", queue="", waits=((1, None),))
        for name in ("nlp", "vision")
    ]
    accounts = swept(where, *both)
    assert share(accounts, "north/A100", "namespace/nlp").entitled == 3 * GPU
    assert share(accounts, "north/A100", "team/vision").entitled == 5 * GPU


def test_one_resource_quota_for_two_models_counts_where_it_is_used() -> None:
    limit = history(
        ObjectKind.RESOURCE_QUOTA, "gpus", (0, ResourceQuota(hard={RESOURCE: Quota.of("6")})), namespace="nlp"
    )
    where = site(limit, *nodes("n1"), *nodes("h1", pool="h100"))
    one = course(gpus=4, manager="", queue="", model="H100", stays=(("h1", 1, 5),))
    accounts = swept(where, one)
    quotas = [
        [share(accounts, f"north/{model}", "namespace/nlp", s).quota / GPU for model in ("A100", "H100")]
        for s in (0.5, 1)
    ]
    assert quotas == [[3, 3], [1, 5]]


def volcano(*bodies: VolcanoQueue) -> Accounts:
    """Two queues, nlp and vision, that each want all of 8 GPUs."""
    queues = [
        history(ObjectKind.VOLCANO_QUEUE, name, (0, body))
        for name, body in zip(("nlp", "vision"), bodies, strict=True)
    ]
    both = [
        course(name, gpus=8, queue=name, team=name, manager="volcano", waits=((1, None),))
        for name in ("nlp", "vision")
    ]
    return swept(site(*queues, *nodes("n1")), *both)


def entitled(accounts: Accounts) -> list[float]:
    return [share(accounts, "north/A100", name).entitled / GPU for name in ("nlp", "vision")]


def test_volcanos_queues_share_by_weight() -> None:
    assert entitled(volcano(volcano_body(3), volcano_body(1))) == [6, 2]


def test_a_capability_is_a_limit_where_another_queue_has_none() -> None:
    assert entitled(volcano(volcano_body(3, capability=2), volcano_body(1))) == [2, 6]


def test_where_all_queues_have_a_capability_the_rest_is_capacity_without_quota() -> None:
    accounts = volcano(volcano_body(capability=2), volcano_body(capability=3))
    assert entitled(accounts) == [2, 3]
    assert pool(accounts, "north/A100").without_quota == 3 * GPU


def test_what_a_volcano_queue_deserves_comes_before_weights() -> None:
    # 6, and of the 2 that are left a quarter.
    assert entitled(volcano(volcano_body(1, deserved=6), volcano_body(3))) == [6.5, 1.5]


# ------------------------------------------------------------ debts


def test_a_debt_grows_while_less_is_held_than_entitled_and_fades_afterwards() -> None:
    where = site(*TWO_QUEUES, *nodes("n1", "n2"))
    starved = course(gpus=8, waits=((0, HOUR),), stays=(("n1", HOUR, None),))
    accounts = swept(where, starved)
    entry = at(list(accounts.shares.entries()), ("all/a100", "nlp"), HOUR)
    # 8 GPUs for an hour, of which a thousandth fades: ln 2 / 168 / 2.
    assert entry.opening_debt == pytest.approx(8 * (1 - 0.00206), rel=1e-4)


def test_debts_do_not_depend_on_changes_of_others() -> None:
    where = site(*TWO_QUEUES, *nodes("n1", "n2"))
    starved = course(gpus=8, waits=((0, HOUR),), stays=(("n1", HOUR, None),))
    busy = [
        course(f"b{i}", gpus=1, queue="vision", team="vision", stays=(("n2", i * 60, i * 60 + 30),))
        for i in range(59)
    ]
    one, other = (
        at(list(swept(where, starved, *more).shares.entries()), ("all/a100", "nlp"), HOUR)
        for more in ((), busy)
    )
    assert one == other


def test_a_sweep_begun_anywhere_gives_the_same_accounts() -> None:
    where = site(*TWO_QUEUES, *nodes("n1", "n2"))
    found = [
        piece
        for i in range(6)
        for piece in pieces(
            course(f"w{i}", gpus=3, waits=((i, i + 2),), stays=(("n1", i + 2, i + 7),)), where
        )
    ]
    whole = Accounts.of(HALF_LIFE)
    Sweep(where, whole).run(found, 0)
    for since_ms in range(0, 14_000, 500):
        again = _resumed(whole, since_ms)
        Sweep(where, again).run([p for p in found if p.until_ms >= since_ms], since_ms)
        before = {e for e in whole.shares.entries() if e.until_ms < since_ms}
        assert {*again.shares.entries()} | before == {*whole.shares.entries()}


def _resumed(whole: Accounts, since_ms: int) -> Accounts:
    def reopened(book: Book[FiguresT]) -> list[Entry[FiguresT]]:
        return [e._replace(until_ms=END) for e in book.entries() if e.start_ms < since_ms <= e.until_ms]

    return Accounts.of(
        HALF_LIFE,
        shares=reopened(whole.shares),
        teams=reopened(whole.teams),
        pools=reopened(whole.pools),
    )
