"""Why quota admits a workload or not, against the sums of every cohort after it was added."""

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from analytics.fairness.kueue_tree import QueueQuota, QuotaTree
from analytics.why.quota import Demand, PodSetAsk, Request, check, takes
from analytics.why.reason import Finding, Reason
from domain.objects import ResourceFlavor
from domain.placement import Placement, Rule, Toleration
from tests.analytics.why.queues import GPU, Site, Terms, requests, sites

R = Reason
ROUNDS = 4


def single(site: Site, queue: str, flavor: str, asked: int) -> tuple[Finding, ...]:
    demand = Demand(queue=queue, resource=GPU, flavor=flavor, asked=asked)
    return check(demand, site.site().tree((flavor, GPU)))


def expected(site: Site, queue: str, flavor: str, asked: int) -> set[Reason]:
    """By adding it up: whose sums are broken, where nobody used anything and where they do."""
    kind = (flavor, GPU)
    if site.emptied().with_use(queue, {kind: asked}).broken(queue, kind):
        return {R.NEVER_FITS}
    found = set()
    for name in site.with_use(queue, {kind: asked}).broken(queue, kind):
        may_borrow = bool(site.parent(name) and site.own(name, kind).borrow)
        own = R.QUOTA_EXHAUSTED if name == queue else R.COHORT_EXHAUSTED
        found.add(R.BORROWING_LIMIT if may_borrow else own)
    return found


def without(site: Site, findings: tuple[Finding, ...], more: int) -> Site:
    """The site where every limit that is named is gone, and what is used up is more."""
    for finding in findings:
        kinds = finding.evidence["kinds"]
        assert isinstance(kinds, tuple)
        for blocker in finding.blockers:
            for kind in (tuple(one.split("/", 1)) for one in kinds):
                flavor, resource = kind
                before = site.own(blocker.name, (flavor, resource))
                if site.parent(blocker.name) and before.borrow is not None:
                    after = replace(before, borrow=None)
                else:
                    after = replace(before, nominal=before.nominal + more)
                site = site.with_terms(blocker.name, (flavor, resource), after)
    return site


def agrees(site: Site, flavor: str, asked: int) -> None:
    for queue in site.parents:
        if flavor not in site.flavors(queue):
            continue
        found = single(site, queue, flavor, asked)
        assert [one.reason.rank for one in found] == sorted({one.reason.rank for one in found})
        assert {one.reason for one in found} == expected(site, queue, flavor, asked), found
        if found and found[0].reason is R.NEVER_FITS:
            # With so much more of its own it is never no longer, and with a unit less it still is.
            missing = int(str(found[0].evidence["missing"]))
            for more, is_never in ((missing, False), (missing - 1, True)):
                own = site.own(queue, (flavor, GPU))
                raised = site.with_terms(queue, (flavor, GPU), replace(own, nominal=own.nominal + more))
                reasons = {one.reason for one in single(raised, queue, flavor, asked)}
                assert (R.NEVER_FITS in reasons) == is_never, found
        if found and found[0].reason is not R.NEVER_FITS:
            assert single(without(site, found, asked), queue, flavor, asked) == (), found
            for number in range(len(found)):
                others = found[:number] + found[number + 1 :]
                assert single(without(site, others, asked), queue, flavor, asked), "named in vain"


def admits(site: Site, request: Request) -> None:
    quota = site.quota()
    assert quota.admits(request) == site.assigned(request)
    findings = quota.findings(request)
    assert (findings == ()) == (site.assigned(request) is not None)
    # Several sets on several flavors: with more of one the first set may take what the second needs of CPUs,
    # which are short only then. Once nothing that is named is in the way, it is let in.
    rounds = 1 if len(request.pod_sets) == 1 or len(site.flavors(request.queue)) == 1 else ROUNDS
    for _ in range(rounds):
        if findings and findings[0].reason is not R.NEVER_FITS:
            site = without(site, findings, 20)
            assert (site.quota().findings(request) == ()) == (site.assigned(request) is not None)
            findings = site.quota().findings(request)
            if not findings:
                break
    else:
        assert not findings or findings[0].reason is R.NEVER_FITS, findings


@given(sites(), st.sampled_from(["a100", "h100"]), st.integers(1, 9))
@settings(max_examples=60)
def test_a_limit_is_named_where_adding_up_finds_it_and_nowhere_else(
    site: Site, flavor: str, asked: int
) -> None:
    agrees(site, flavor, asked)


@given(st.data(), sites())
@settings(max_examples=40)
def test_a_workload_is_admitted_where_some_flavor_has_enough_for_each_set(
    data: st.DataObject, site: Site
) -> None:
    admits(site, data.draw(requests(site)))


@pytest.mark.long
@pytest.mark.timeout(1_200)
@given(sites(), st.sampled_from(["a100", "h100"]), st.integers(1, 9))
@settings(max_examples=2_000)
def test_limits_of_thousands_of_sites_are_those_of_adding_up(site: Site, flavor: str, asked: int) -> None:
    agrees(site, flavor, asked)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@given(st.data(), sites())
@settings(max_examples=2_000)
def test_thousands_of_workloads_are_admitted_as_by_adding_up(data: st.DataObject, site: Site) -> None:
    admits(site, data.draw(requests(site)))


# ------------------------------------------------------------ small enough to check by hand


def told(tree: QuotaTree, asked: int, queue: str = "q") -> list[tuple[Reason, str, object]]:
    demand = Demand(queue=queue, resource=GPU, flavor="a100", asked=asked)
    return [(one.reason, one.blockers[0].name, one.evidence["missing"]) for one in check(demand, tree)]


def test_who_may_not_borrow_has_what_is_its_own() -> None:
    alone = QuotaTree([QueueQuota(name="q", parent="", nominal=8, used=6)])
    # `climate` of the recorded city: 24 of its own, all in use, and a borrowing limit of 0 in its cohort.
    kept = QuotaTree(
        [
            QueueQuota(name="q", parent="c", nominal=24, borrowing_limit=0, used=24),
            QueueQuota(name="other", parent="c", nominal=48),
        ]
    )
    assert told(alone, 4) == [(R.QUOTA_EXHAUSTED, "q", 2)]
    assert told(kept, 8) == [(R.QUOTA_EXHAUSTED, "q", 8)]
    assert [told(alone, 2), told(alone, 9)] == [[], [(R.NEVER_FITS, "q", 1)]]


def test_a_borrowing_limit_and_an_empty_cohort_are_told_apart() -> None:
    def tree(lender_uses: int) -> QuotaTree:
        return QuotaTree(
            [
                QueueQuota(name="q", parent="c", nominal=8, borrowing_limit=4, used=10),
                QueueQuota(name="lender", parent="c", nominal=16, used=lender_uses),
            ]
        )

    # 10 + 4 is 2 above 8 + 4. The cohort has 24: with 13 of the lender's in use 1 is left.
    assert told(tree(0), 4) == [(R.BORROWING_LIMIT, "q", 2)]
    assert told(tree(13), 2) == [(R.COHORT_EXHAUSTED, "c", 1)]
    assert told(tree(13), 4) == [(R.BORROWING_LIMIT, "q", 2), (R.COHORT_EXHAUSTED, "c", 3)]


def test_a_quota_that_was_cut_below_its_use_lets_nobody_in() -> None:
    cut = QuotaTree([QueueQuota(name="q", parent="", nominal=4, used=8)])
    assert told(cut, 2) == [(R.QUOTA_EXHAUSTED, "q", 6)]
    # As Kueue counts: what the cohort is overdrawn by is taken off what the queue keeps for itself.
    overdrawn = QuotaTree(
        [
            QueueQuota(name="q", parent="c", nominal=8, lending_limit=4),
            QueueQuota(name="other", parent="c", nominal=4, used=12),
        ]
    )
    assert told(overdrawn, 2) == [(R.COHORT_EXHAUSTED, "c", 4)]


def test_quota_that_is_lent_out_is_told() -> None:
    # `robotics` of the recorded city: 32 of its own, unused, and all of the cohort in use by others.
    tree = QuotaTree(
        [
            QueueQuota(name="q", parent="c", nominal=32, used=4),
            QueueQuota(name="ads", parent="c", nominal=16, used=40),
        ]
    )
    (found,) = check(Demand(queue="q", resource=GPU, flavor="a100", asked=16), tree)
    assert found.reason is R.COHORT_EXHAUSTED
    assert (found.evidence["lent_out"], found.evidence["cohort_unused"], found.evidence["missing"]) == (
        24,
        4,
        12,
    )


def test_a_queue_and_a_cohort_may_have_one_name() -> None:
    tree = QuotaTree(
        [
            QueueQuota(name="ml", parent="ml", nominal=4, used=4),
            QueueQuota(name="ml", parent="", nominal=2, is_cohort=True),
        ]
    )
    assert [told(tree, asked, "ml") for asked in (2, 3)] == [[], [(R.COHORT_EXHAUSTED, "ml", 1)]]


def test_a_circle_of_cohorts_is_cut() -> None:
    tree = QuotaTree(
        [
            QueueQuota(name="q", parent="a", nominal=1),
            QueueQuota(name="a", parent="b", nominal=2, is_cohort=True),
            QueueQuota(name="b", parent="a", nominal=3, is_cohort=True),
        ]
    )
    assert tree.queues["q"].potential == 6


def test_a_gpu_that_the_queue_has_no_quota_of_is_never_admitted_and_cpus_are_left_out() -> None:
    quota = Site(parents={"q": ""}, cohorts={}, terms={"q": {("a100", GPU): Terms(nominal=8)}}).quota()

    def asking(**amounts: int) -> list[Reason]:
        named = {"gpu": GPU, "cpu": "cpu", "slices": "nvidia.com/mig-1g.10gb"}
        ask = PodSetAsk(amounts={named[name]: amount for name, amount in amounts.items()})
        return [one.reason for one in quota.findings(Request(queue="q", pod_sets=(ask,)))]

    assert asking(gpu=8, cpu=99) == []
    assert asking(slices=1) == [R.NEVER_FITS]
    elsewhere = PodSetAsk(amounts={GPU: 1}, flavors=frozenset({"h100"}))
    assert [one.reason for one in quota.findings(Request(queue="q", pod_sets=(elsewhere,)))] == [R.NEVER_FITS]


def test_an_answer_does_not_outlive_what_it_was_made_of() -> None:
    quota = Site(parents={"q": ""}, cohorts={}, terms={"q": {("a100", GPU): Terms(nominal=8)}}).quota()
    request = Request(queue="q", pod_sets=(PodSetAsk(amounts={GPU: 8}),))
    taken = quota.admits(request)
    assert taken == {("a100", GPU): 8}
    quota.take("q", taken)
    assert [one.reason for one in quota.findings(request)] == [R.QUOTA_EXHAUSTED]
    quota.take("q", {kind: -amount for kind, amount in taken.items()})
    assert quota.findings(request) == ()


def test_a_flavor_takes_pods_by_the_labels_that_it_has() -> None:
    flavor = ResourceFlavor(node_labels={"pool": "h100"}, taints=("pool=h100:NoSchedule",), topology="")
    bears = (Toleration(key="pool", operator="Exists", value="", effect=""),)

    def pod(**wants: object) -> bool:
        return takes(Placement(**{"tolerations": bears, **wants}), flavor)  # type: ignore[arg-type]

    assert takes(None, flavor) is False
    assert [pod(), pod(labels={"pool": "h100"}), pod(labels={"pool": "a100"})] == [True, True, False]
    # What the flavor says nothing of does not matter to Kueue.
    assert pod(labels={"zone": "z1"})
    here, there = (
        Rule(key="pool", operator="In", values=("h100",)),
        Rule(key="pool", operator="In", values=("t4",)),
    )
    zone = Rule(key="zone", operator="In", values=("z1",))
    assert [pod(terms=((here, zone),)), pod(terms=((there, zone),)), pod(terms=((there,), (zone,)))] == [
        True, False, True,
    ]  # fmt: skip
    own = ResourceFlavor(node_labels={}, taints=("pool=h100:NoSchedule",), topology="", tolerations=bears)
    assert takes(None, own)
