"""Where what a workload asks and holds counts: in which pool, since when, and for whom."""

from dataclasses import replace

from analytics.fairness.books.course import Course, Piece, Stretch, pieces
from analytics.fairness.books.site import Site
from domain.facts import ObjectKind
from tests.analytics.fairness.sites import (
    END,
    GPU,
    RESOURCE,
    course,
    flavor,
    history,
    node_body,
    nodes,
    queue,
    queue_body,
    quota,
    site,
)


def asked(where: Site, one: Course) -> list[tuple[str, float, float, float]]:
    """Pool, from, until, GPUs that it asks without holding them."""
    return [
        (p.pool, p.at_ms / 1000, p.until_ms / 1000 if p.until_ms < END else -1, (p.demand - p.held) / GPU)
        for p in pieces(one, where)
        if p.demand > p.held
    ]


ORDER = (flavor("a100"), flavor("h100"), *nodes("n1"), *nodes("h1", pool="h100"))
BOTH = queue("nlp", "all", quota("a100", 8), quota("h100", 8))


def test_what_waits_counts_in_the_first_flavor_of_its_queue() -> None:
    assert asked(site(*ORDER, BOTH), course(waits=((1, 5),))) == [("all/a100", 1, 5, 1)]


def test_an_assigned_flavor_comes_before_the_queues_order() -> None:
    one = course(waits=((1, 9),), flavors=(("h100", 3, 5),))
    assert asked(site(*ORDER, BOTH), one) == [
        ("all/a100", 1, 3, 1),
        ("all/h100", 3, 5, 1),
        ("all/a100", 5, 9, 1),
    ]


def test_a_flavor_whose_nodes_are_too_small_is_passed_over() -> None:
    where = site(flavor("a100"), flavor("h100"), *nodes("n1", gpus=4), *nodes("h1", pool="h100"), BOTH)
    assert asked(where, course(gpus=8, waits=((1, 5),))) == [("all/h100", 1, 5, 8)]


def test_a_flavor_whose_quota_can_never_reach_is_passed_over() -> None:
    where = site(*ORDER, queue("nlp", "", quota("a100", 2, borrow=4), quota("h100", 8)))
    assert asked(where, course(gpus=4, waits=((1, 5),))) == [("nlp/h100", 1, 5, 4)]


def test_a_flavor_that_the_pods_do_not_select_is_passed_over() -> None:
    picky = course(waits=((1, 5),), selector={"pool": "h100"})
    assert asked(site(*ORDER, BOTH), picky) == [("all/h100", 1, 5, 1)]
    assert asked(site(*ORDER, BOTH), course(waits=((1, 5),), selector={"pool": "b200"})) == []


def test_a_label_that_no_flavor_has_is_the_schedulers_business() -> None:
    zoned = course(waits=((1, 5),), selector={"zone": "a"})
    assert asked(site(*ORDER, BOTH), zoned) == [("all/a100", 1, 5, 1)]


def test_what_fits_nowhere_asks_for_nothing() -> None:
    assert asked(site(*ORDER, BOTH), course(gpus=16, waits=((1, 5),))) == []


def test_what_fits_nowhere_asks_from_the_instant_at_which_it_could_fit() -> None:
    late = history(ObjectKind.NODE, "big", (3, node_body(gpus=16)))
    where = site(flavor("a100"), *nodes("n1"), late, queue("nlp", "", quota("a100", 24)))
    assert asked(where, course(gpus=16, waits=((1, 5),))) == [("nlp/a100", 3, 5, 16)]


def test_nothing_is_held_against_work_where_no_node_was_ever_seen() -> None:
    where = site(flavor("a100"), queue("nlp", "", quota("a100", 24)))
    assert asked(where, course(gpus=16, waits=((1, 5),))) == [("nlp/a100", 1, 5, 16)]


def test_work_for_a_queue_that_does_not_exist_asks_for_nothing() -> None:
    assert asked(site(*ORDER, BOTH), course(queue="typo", waits=((1, 5),))) == []


def test_a_partly_bound_gang_counts_once() -> None:
    one = course(gpus=2, pods=4, waits=((1, 9),), stays=(("n1", 3, None),), flavors=(("a100", 1, None),))
    found = pieces(one, site(*ORDER, BOTH))
    assert [(p.at_ms, p.until_ms, p.demand // GPU, p.held // GPU) for p in found] == [
        (1000, 3000, 8, 0),
        (3000, 9000, 6, 0),
        (3000, END, 2, 2),
    ]


def test_a_lost_member_asks_while_the_others_run() -> None:
    one = course(
        pods=2, stays=(("n1", 1, None),), member_waits=[Stretch("member", 4000, 7000, GPU)]
    )  # fmt: skip
    running = [Stretch("running", 1000, END)]
    where = site(*ORDER, BOTH)
    assert asked(where, replace(one, spans=running)) == [("all/a100", 4, 7, 1)]


def test_demand_moves_with_the_queue_to_another_cohort() -> None:
    moving = history(
        ObjectKind.CLUSTER_QUEUE,
        "nlp",
        (0, queue_body("all", quota("a100", 8))),
        (3, queue_body("other", quota("a100", 8))),
    )
    where = site(flavor("a100"), *nodes("n1"), moving)
    assert asked(where, course(waits=((1, 5),))) == [("all/a100", 1, 3, 1), ("other/a100", 3, 5, 1)]


def test_a_record_that_is_set_aside_is_nobodys() -> None:
    one = course(stays=(("n1", 1, None),), waits=((0, 1),), set_aside=True)
    (found,) = pieces(one, site(*ORDER, BOTH))
    assert (found.pool, found.demand, found.held) == ("", 0, GPU)


def test_pieces_of_equal_pods_are_one() -> None:
    one = course(gpus=1, pods=2, stays=(("n1", 1, 5), ("n1", 1, 5)))
    assert pieces(one, site(*ORDER, BOTH)) == [
        Piece(1000, 5000, "all/a100", "nlp", "nlp", "n1", RESOURCE, 1000, 2 * GPU, 2 * GPU)
    ]
