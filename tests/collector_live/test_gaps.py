"""What a gap hides of a recorded cluster has bounds in which the truth lies; all else is as without it."""

import pytest

from domain.facts import Batch, Moment, ObjectKind, Transition
from tests.collector_live.running import until
from tests.collector_live.schedules import (
    SCENES,
    Scene,
    answers_410_as_a_line,
    batch_of,
    playing,
    undisturbed,
)

pytestmark = pytest.mark.recordings

PODS = "/api/v1/pods"
# What a pod says itself, with its instant: a later reading tells as much as the ones that were hidden.
STAMPED = (Moment.CREATED, Moment.BOUND, Moment.ENDED)


def with_a_gap(scene: Scene) -> Batch:
    """Nothing is told of pods in the first step, and its history is forgotten; the second is told."""
    _, first_ms, second_ms = scene.instants()
    with playing(scene, seed=0) as (play, sink):
        play.settle()
        play.clock.at_ms = first_ms
        with play.cluster.changed:
            play.cluster.silence(PODS)
            for kind in play.kinds:
                play.cluster.let_out(kind.path, first_ms)
            answers_410_as_a_line(play, PODS)
        until(lambda: not play.cluster.has_canned(PODS))
        play.cluster.silence(PODS, silent=False)
        play.settle()
        play.clock.at_ms = second_ms
        for kind in play.kinds:
            play.cluster.let_out(kind.path, second_ms)
        play.settle()
    return batch_of(sink)


def of_pods(batch: Batch, *moments: Moment) -> dict[tuple[str, Moment], Transition]:
    return {
        (one.uid, one.moment): one
        for one in batch.transitions
        if one.kind is ObjectKind.POD and one.moment in moments
    }


@pytest.mark.parametrize("scene", SCENES, ids=str)
def test_an_end_that_was_hidden_lies_within_its_bounds(scene: Scene) -> None:
    found, truth = with_a_gap(scene), undisturbed(scene)
    begin_ms, gap_ends_ms, _ = scene.instants()
    ends, true_ends = of_pods(found, Moment.GONE), of_pods(truth, Moment.GONE)
    never_seen = {uid for uid, state in truth.objects.items() if state.kind is ObjectKind.POD} - set(
        found.objects
    )
    # Nobody can know of a pod that came and went in the gap; every other end is there, once.
    assert set(true_ends) - set(ends) == {(uid, Moment.GONE) for uid in never_seen}
    assert set(ends) <= set(true_ends)
    for key, end in ends.items():
        true_ms = true_ends[key].at_ms
        if end.earliest_ms is None:
            assert end.at_ms == true_ms > gap_ends_ms
        else:
            assert begin_ms <= end.earliest_ms <= true_ms <= end.at_ms
    stamped, true_stamped = of_pods(found, *STAMPED), of_pods(truth, *STAMPED)
    gone = {uid for uid, _ in ends}
    for key, one in true_stamped.items():
        if key[0] not in never_seen and key[0] not in gone and one.earliest_ms is None:
            assert stamped[key].at_ms == one.at_ms
