"""Why a gang has no place, against every way to place it; and that it finds one without what is named."""

from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given, settings

from analytics.why.nodes import Gang, Hold, NodeStock, PodSet
from analytics.why.placement import place
from analytics.why.reason import Blocker, BlockerKind, Finding, Reason
from domain.placement import Placement
from tests.analytics.why.clusters import (
    CPU,
    GPU,
    MEMORY,
    TAINTS,
    Machine,
    Scene,
    Want,
    scenes,
    toleration,
)

R = Reason
HELD = {R.OTHER_RESOURCE, R.FRAGMENTATION, R.GPU_SHORTAGE}


def machine(name: str = "n1", **differs: object) -> Machine:
    plain = Machine(
        name=name, zone="a", model="a100", taints=frozenset(), up=True, devices={GPU: 8}, held=(), cpus=None,
        cpus_held=0,
    )  # fmt: skip
    return replace(plain, **differs)  # type: ignore[arg-type]


def held(gpus: int, uid: str = "h1") -> tuple[tuple[str, str, int], ...]:
    return ((uid, GPU, gpus),)


def answer(scene: Scene) -> dict[Reason, Finding]:
    found = place(scene.gang(), scene.stock())
    assert [one.order for one in found] == sorted({one.order for one in found})
    assert not any(one.is_coarse for one in found)
    return {one.reason: one for one in found}


# ------------------------------------------------------------ what must come out, by trying everything


def dropped(scene: Scene) -> dict[BlockerKind, dict[str, Scene]]:
    """The scene without each of its constraints, by kind and name."""
    models = {want.model: None for want in scene.wants if want.model}
    selectors = {
        f"model={model}": replace(
            scene, wants=tuple(replace(w, model="" if w.model == model else w.model) for w in scene.wants)
        )
        for model in models
    }
    affinity = scene.changed(zones=None)
    return {
        BlockerKind.TAINT: {taint: scene.bearing(frozenset({taint})) for taint in TAINTS},
        BlockerKind.SELECTOR: selectors,
        BlockerKind.AFFINITY: {"zone": affinity} if affinity != scene else {},
        BlockerKind.TOPOLOGY: {"zone": replace(scene, one_zone=False)} if scene.one_zone else {},
    }


def all_dropped(scene: Scene, kind: BlockerKind) -> Scene:
    if kind is BlockerKind.TAINT:
        return scene.bearing(frozenset(TAINTS))
    return scene.changed(model="") if kind is BlockerKind.SELECTOR else scene


def is_constrained(scene: Scene, *, never: bool, stays: bool) -> bool:
    def as_seen(one: Scene, *, empty: bool) -> bool:
        if not empty:
            return one.places()
        return (one.bearing(frozenset(TAINTS)).up() if never else one).emptied().places()

    for empty in (False, True) if never or stays else (False,):
        for kind, scenes_without in dropped(scene).items():
            others = [all_dropped(scene, kind)] if scenes_without else []
            if any(as_seen(one, empty=empty) for one in [*scenes_without.values(), *others]):
                return True
    return False


def expected(scene: Scene) -> set[Reason]:
    if scene.places():
        return set()
    if not scene.bearing(frozenset(TAINTS)).up().emptied().places():
        return {R.NEVER_FITS} | ({R.CONSTRAINT} if is_constrained(scene, never=True, stays=True) else set())
    stays = not scene.emptied().places()
    found = set()
    if scene.up().places() or (stays and scene.up().emptied().places()):
        found.add(R.NODE_UNAVAILABLE)
    if is_constrained(scene, never=False, stays=stays):
        found.add(R.CONSTRAINT)
    if stays and not found:
        found = {R.NODE_UNAVAILABLE, R.CONSTRAINT}
    if scene.changed(cpus=0, memory=0).places():
        found.add(R.OTHER_RESOURCE)
    elif any(want.devices for want in scene.wants):
        found.add(R.GPU_SHORTAGE if is_short(scene) else R.FRAGMENTATION)
    return found or {R.OTHER_RESOURCE}


def is_short(scene: Scene) -> bool:
    """Whether the free devices of some kind, where all or one of the sets of pods may stand, are too few."""
    for resource in (GPU, "nvidia.com/mig-1g.10gb"):
        asking = [want for want in scene.wants if want.devices.get(resource)]
        # Of one set all pods go to the same flavor; the sets together may use all flavors of any.
        for choices in [[asking], *(([one] for one in want.one_flavor()) for want in asking)]:
            groups = [list(group) for group in choices]
            free = max(
                sum(m.free().get(resource, 0) for m in scene.machines if any(want.takes(m) for want in group))
                for group in groups
            )
            if free < sum(want.pods * want.devices[resource] for want in groups[0]):
                return True
    return False


# ------------------------------------------------------------ that it helps


def without(scene: Scene, blockers: tuple[Blocker, ...], *, kept: int | None = None) -> Scene:
    """The scene without all that is named, or without one of it."""
    for number, one in enumerate(blockers):
        if kept is not None and number != kept:
            continue
        match one.kind:
            case BlockerKind.NODE:
                scene = scene.up({one.name})
            case BlockerKind.TAINT:
                scene = scene.bearing(frozenset({one.name}))
            case BlockerKind.SELECTOR:
                scene = dropped(scene)[one.kind].get(one.name, scene)
            case BlockerKind.AFFINITY:
                scene = scene.changed(zones=None)
            case BlockerKind.TOPOLOGY:
                scene = replace(scene, one_zone=False)
            case _:
                scene = scene.after({one.name})
    return scene


def ways_out(scene: Scene, finding: Finding) -> Iterator[Scene]:
    """The scene after each of the ways out that a finding names."""
    if finding.evidence.get("drop") == "any" and finding.blockers:
        yield from (without(scene, finding.blockers, kept=n) for n in range(len(finding.blockers)))
    else:
        yield without(scene, finding.blockers)


def check_lacking(scene: Scene, finding: Finding) -> None:
    """Without what is named there is room: without any one of it, or without all, and not without less."""
    if "resources" not in finding.evidence:
        # No GPUs are asked, and all that could be missing is.
        assert not any(want.devices for want in scene.wants)
        return
    names, drop = finding.evidence["resources"], finding.evidence["drop"]
    assert isinstance(names, tuple)
    fields = {CPU: "cpus", MEMORY: "memory"}
    each = [scene.changed(**{fields[name]: 0}).places() for name in fields]
    assert names == tuple(n for n, helps in zip(fields, each, strict=True) if helps or drop == "all")
    assert any(each) == (drop == "any")
    told = finding.evidence
    if "node" in told:
        (node,) = [one for one in scene.machines if one.name == told["node"]]
        free, short = node.free(), str(told["short_of"])
        assert free[str(told["device"])] == told["free_devices"] != 0
        per_unit = 1000 if short == CPU else 1
        assert free[short] == float(str(told["short_free"])) * per_unit
        assert node.others()[short] == float(str(told["short_has"])) * per_unit
        assert any(
            want.asks().get(short) == float(str(told["asked_each"])) * per_unit and want.takes(node)
            for one in scene.wants
            for want in one.one_flavor()
        )


def check(scene: Scene) -> None:
    found = answer(scene)
    assert set(found) == expected(scene), found
    for reason, finding in found.items():
        if reason in {R.NODE_UNAVAILABLE, R.CONSTRAINT} and finding.evidence.get("drop") != "both":
            for way in ways_out(scene, finding):
                is_now = finding.evidence["when"] == "now"
                never = R.NEVER_FITS in found
                seen = way.bearing(frozenset(TAINTS)).up() if never and not is_now else way
                assert seen.places() if is_now else seen.emptied().places(), (finding, scene)
        if finding.evidence.get("drop") == "both":
            both = found[R.NODE_UNAVAILABLE].blockers + found[R.CONSTRAINT].blockers
            assert without(scene, both).emptied().places(), (finding, scene)
        if reason is R.OTHER_RESOURCE:
            check_lacking(scene, finding)
        if reason in HELD and finding.blockers:
            assert without(scene, finding.blockers).places(), (finding, scene)
            named = {blocker.name for blocker in finding.blockers}
            # At most five hold anything: so few that none is named in vain.
            assert not any(scene.after(named - {one}).places() for one in named), (finding, scene)
        if reason in HELD and not finding.blockers:
            # Nobody's end helps: something else is in the way as well.
            assert not scene.after({"h1", "h2", "h3", "h4", "h5"}).places(), (finding, scene)


@given(scenes())
@settings(max_examples=150)
def test_reasons_are_those_that_trying_every_placement_gives(scene: Scene) -> None:
    check(scene)


@pytest.mark.long
@pytest.mark.timeout(1_200)
@given(scenes())
@settings(max_examples=4_000)
def test_reasons_of_thousands_of_clusters_are_those_of_trying_everything(scene: Scene) -> None:
    check(scene)


# ------------------------------------------------------------ small enough to check by hand


def test_a_gang_that_has_room_waits_for_nothing() -> None:
    assert answer(Scene(machines=(machine(),), wants=(Want(pods=2, devices={GPU: 4}),))) == {}


def test_what_no_node_is_large_enough_for_never_fits() -> None:
    two = (machine(held=held(8), taints=frozenset(TAINTS)), machine("n2", up=False))
    found = answer(Scene(machines=two, wants=(Want(pods=1, devices={GPU: 16}),)))
    assert set(found) == {R.NEVER_FITS}
    told = found[R.NEVER_FITS].evidence
    # All 16 GPUs of the cluster would be enough in sum, were it empty, but no node has more than 8.
    assert (told["asked"], told["free"], told["largest_free"], told["fits_pods"]) == (16, 16, 8, 0)


def test_a_label_that_no_node_has_is_named_beside_never() -> None:
    found = answer(Scene(machines=(machine(),), wants=(Want(pods=1, devices={GPU: 1}, model="h200"),)))
    assert list(found) == [R.NEVER_FITS, R.CONSTRAINT]
    selector = Blocker(kind=BlockerKind.SELECTOR, name="model=h200")
    assert found[R.NEVER_FITS].blockers == found[R.CONSTRAINT].blockers == (selector,)
    assert found[R.NEVER_FITS].evidence["nodes_selector"] == 1


def test_a_taint_is_named_whether_or_not_gpus_are_free_behind_it() -> None:
    want = Want(pods=1, devices={GPU: 8}, model="h100")
    for free, also in ((8, []), (0, [R.GPU_SHORTAGE])):
        tainted = machine(model="h100", taints=frozenset(TAINTS[:1]), held=held(8 - free) if free < 8 else ())
        found = answer(Scene(machines=(tainted, machine("n2")), wants=(want,)))
        # Without the selector it would stand on n2: that helps now, and is a way out as well.
        first = found[R.CONSTRAINT]
        assert list(found) == [R.CONSTRAINT, R.GPU_SHORTAGE]
        assert first.evidence["waiting"] == "never"
        taint = Blocker(kind=BlockerKind.TAINT, name=TAINTS[0])
        assert (taint in first.blockers) == (free == 8), also


def test_a_cordoned_node_with_room_is_what_it_waits_for() -> None:
    down = (machine(held=held(8)), machine("n2", up=False), machine("n3", up=False, devices={GPU: 2}))
    found = answer(Scene(machines=down, wants=(Want(pods=1, devices={GPU: 4}),)))
    assert list(found) == [R.NODE_UNAVAILABLE, R.GPU_SHORTAGE]
    assert found[R.NODE_UNAVAILABLE].blockers == (Blocker(kind=BlockerKind.NODE, name="n2"),)


def test_enough_in_sum_is_fragmentation_and_who_would_have_to_end_is_named() -> None:
    # 4 free on each of two nodes: 8 wanted at once. Of those who hold n1, ended alone, none makes room.
    n1 = (("h1", GPU, 2), ("h2", GPU, 2))
    found = answer(
        Scene(
            machines=(machine(held=n1), machine("n2", held=held(4, "h3"))),
            wants=(Want(pods=1, devices={GPU: 8}),),
        )
    )
    assert set(found) == {R.FRAGMENTATION}
    told = found[R.FRAGMENTATION]
    assert told.blockers == (Blocker(kind=BlockerKind.WORKLOAD, name="h3", node="n2", devices=4),)
    assert [told.evidence[name] for name in ("asked", "free", "missing", "largest_free")] == [8, 8, 0, 4]
    assert told.evidence["nodes_full"] == 2


def test_where_nobody_alone_makes_room_those_of_one_node_are_named_together() -> None:
    shared = (machine(held=(("h1", GPU, 4), ("h2", GPU, 4))), machine("n2", devices={GPU: 4}))
    found = answer(Scene(machines=shared, wants=(Want(pods=1, devices={GPU: 8}),)))
    assert {blocker.name for blocker in found[R.GPU_SHORTAGE].blockers} == {"h1", "h2"}


def test_nobody_is_named_in_vain() -> None:
    # h1 would make room for the large pod. But h2 has to end for the small ones, and leaves 7: room for all.
    large = machine("n2", model="h100", devices={GPU: 7}, held=held(7, "h2"))
    machines = (machine(devices={GPU: 4}, held=held(4)), large)
    wants = (Want(pods=1, devices={GPU: 4}), Want(pods=3, devices={GPU: 1}, model="h100"))
    found = answer(Scene(machines=machines, wants=wants))
    assert [blocker.name for blocker in found[R.GPU_SHORTAGE].blockers] == ["h2"]


def test_a_sick_gpu_comes_back_to_nobody_when_its_holder_ends() -> None:
    (node,) = Scene(machines=(machine(held=held(8)),), wants=()).stock().nodes
    sick = NodeStock(
        [replace(node, allocatable={GPU: 6})], [Hold(workload_uid="h1", node="n1", devices={GPU: 8})]
    )

    def named(gpus: int) -> list[str]:
        (found,) = place(Gang(pod_sets=(PodSet(pods=1, devices={GPU: gpus}),)), sick)
        return [blocker.name for blocker in found.blockers]

    assert (named(6), named(8)) == (["h1"], [])


def test_a_taint_and_a_cordon_on_all_there_is_are_told_together() -> None:
    down = machine(up=False, taints=frozenset(TAINTS[:1]))
    found = answer(Scene(machines=(down,), wants=(Want(pods=1, devices={GPU: 1}),)))
    assert list(found) == [R.NODE_UNAVAILABLE, R.CONSTRAINT, R.GPU_SHORTAGE]
    both = [found[reason].blockers[0].name for reason in (R.NODE_UNAVAILABLE, R.CONSTRAINT)]
    assert (both, found[R.CONSTRAINT].evidence["drop"]) == (["n1", TAINTS[0]], "both")


def test_too_few_in_sum_are_a_shortage() -> None:
    full = (machine(held=held(8)), machine("n2", held=held(6, "h2")))
    found = answer(Scene(machines=full, wants=(Want(pods=2, devices={GPU: 2}),)))
    assert set(found) == {R.GPU_SHORTAGE}
    assert [found[R.GPU_SHORTAGE].evidence[name] for name in ("free", "missing", "fits_pods")] == [2, 2, 1]
    # Either of the two who hold something makes room by itself.
    assert len(found[R.GPU_SHORTAGE].blockers) == 1


def test_pods_of_one_domain_do_not_stand_in_two() -> None:
    apart = Scene(
        machines=(machine(), machine("n2", zone="b")), wants=(Want(pods=2, devices={GPU: 8}),), one_zone=True
    )
    found = answer(apart)
    assert list(found) == [R.NEVER_FITS, R.CONSTRAINT]
    assert found[R.CONSTRAINT].blockers == (Blocker(kind=BlockerKind.TOPOLOGY, name="zone"),)
    assert answer(replace(apart, machines=(machine(), machine("n2")))) == {}


def test_a_flavor_leads_where_the_pods_alone_would_not_go() -> None:
    h100 = machine(model="h100", taints=frozenset(TAINTS[:1]))
    scene = Scene(machines=(machine(held=held(8)), h100), wants=(Want(pods=1, devices={GPU: 8}),))
    (plain,) = scene.gang().pod_sets
    led = replace(plain, flavors=(Placement(labels={"model": "h100"}, tolerations=(toleration(TAINTS[0]),)),))
    assert {one.reason for one in place(Gang(pod_sets=(plain,)), scene.stock())} == {
        R.CONSTRAINT,
        R.GPU_SHORTAGE,
    }
    assert place(Gang(pod_sets=(led,)), scene.stock()) == ()
    # Two sets may go to two flavors; all pods of one set go to one.
    free = (machine(), machine("n2", model="h100"))
    both = tuple(Placement(labels={"model": model}) for model in ("a100", "h100"))
    stock = Scene(machines=free, wants=()).stock()
    one = PodSet(pods=2, devices={GPU: 8}, flavors=both)
    halves = (replace(one, pods=1), replace(one, pods=1))
    assert [bool(place(Gang(pod_sets=sets), stock)) for sets in ((one,), halves)] == [True, False]


def test_a_search_that_is_given_up_is_told_as_one() -> None:
    # 90 of 91 GPUs are asked by pods of four sizes, on ten nodes most of which are unlike.
    odd = tuple(
        machine(f"n{n}", devices={GPU: g}) for n, g in enumerate([10, 10, 7, 8, 10, 9, 11, 10, 6, 10])
    )
    wants = tuple(Want(pods=pods, devices={GPU: each}) for pods, each in ((16, 2), (5, 5), (5, 3), (3, 6)))
    found = place(Scene(machines=(), wants=wants).gang(), Scene(machines=odd, wants=()).stock())
    assert [(one.reason, one.is_coarse) for one in found] == [(R.FRAGMENTATION, True)]


def test_equal_gangs_are_searched_once() -> None:
    scene = Scene(machines=(machine(held=held(8)),), wants=(Want(pods=1, devices={GPU: 1}),))
    stock = scene.stock()
    assert place(scene.gang(), stock) is place(scene.gang(), stock)
