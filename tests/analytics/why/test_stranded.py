"""GPUs beside too little CPU or memory, in cases small enough to check by hand."""

from dataclasses import replace

from analytics.why.nodes import Gang, Hold, NodeStock, PodSet
from analytics.why.placement import place
from analytics.why.reason import Reason
from tests.analytics.why.clusters import CPU, GPU, Scene, Want
from tests.analytics.why.test_placement import answer, held, machine

R = Reason


def test_gpus_beside_no_cpu_wait_for_the_other_resource() -> None:
    busy = machine(cpus=8, cpus_held=6)
    found = answer(Scene(machines=(busy,), wants=(Want(pods=1, devices={GPU: 4}, cpus=4),)))
    assert list(found) == [R.OTHER_RESOURCE]
    assert found[R.OTHER_RESOURCE].evidence["resources"] == (CPU,)


def test_of_cpu_and_memory_the_one_that_is_short_is_named_or_both() -> None:
    def short_of(cpu: int, memory: int) -> tuple[object, object]:
        (node,) = Scene(machines=(machine(),), wants=()).stock().nodes
        has = {CPU: 8, "memory": 8, "local": 8}
        node = replace(node, others=has, others_free=has | {CPU: cpu, "memory": memory})
        asks = PodSet(pods=2, devices={GPU: 2}, others={CPU: 2, "memory": 2, "local": 1})
        gang = Gang(pod_sets=(asks,))
        told = next(one for one in place(gang, NodeStock([node])) if one.reason is R.OTHER_RESOURCE).evidence
        return told["resources"], told["drop"]

    assert short_of(3, 4) == ((CPU,), "any")
    assert short_of(4, 3) == (("memory",), "any")
    assert short_of(3, 3) == ((CPU, "memory"), "all")


def test_two_sets_of_pods_share_the_cpus_of_a_node() -> None:
    wants = (Want(pods=1, devices={GPU: 4}, cpus=5), Want(pods=1, devices={GPU: 2}, cpus=5))
    one = Scene(machines=(machine(cpus=8),), wants=wants)
    assert list(answer(one)) == [R.NEVER_FITS], "each alone would fit"
    assert list(answer(replace(one, machines=(machine(cpus=10, held=held(2), beside=1),)))) == [
        R.OTHER_RESOURCE
    ]
    assert answer(replace(one, machines=(machine(cpus=10),))) == {}


def test_who_ends_gives_cpus_back_with_gpus() -> None:
    # h1 has 2 GPUs and 6 CPUs of 8; the GPUs that are free lack CPUs.
    busy = machine(cpus=8, held=held(2), beside=3)
    scene = Scene(machines=(busy,), wants=(Want(pods=1, devices={GPU: 4}, cpus=4),))
    assert [one.name for one in answer(scene)[R.OTHER_RESOURCE].blockers] == ["h1"]
    # What others have beside them comes back to nobody who ends here.
    stuck = replace(scene, machines=(replace(busy, held=held(2), beside=1, cpus_held=5),))
    assert answer(stuck)[R.OTHER_RESOURCE].blockers == ()


def test_cpus_that_are_not_known_keep_nobody_away() -> None:
    assert (
        answer(Scene(machines=(machine(cpus=None),), wants=(Want(pods=1, devices={GPU: 4}, cpus=400),))) == {}
    )


def test_what_is_kept_for_pods_is_bounded_and_answers_are_the_same() -> None:
    (node,) = Scene(machines=(machine(held=held(2)),), wants=()).stock().nodes
    holds = [Hold(workload_uid="h1", node="n1", devices={GPU: 2})]
    # Each asks another number of CPUs; every other one is too large for what is free.
    gangs = [
        Gang(pod_sets=(PodSet(pods=1, devices={GPU: 8 - number % 2 * 7}, others={CPU: number}),))
        for number in range(1, 60)
    ]
    few, many = NodeStock([node], holds, most_kept=8), NodeStock([node], holds)
    assert [place(gang, few) for gang in gangs] == [place(gang, many) for gang in gangs]
    assert (len(few.domain_seats) < 60, len(many.domain_seats) > 100) == (True, True)
