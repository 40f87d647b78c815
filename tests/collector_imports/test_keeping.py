"""Which rows add facts: each is counted once, whatever it says and however often it comes."""

from collections import Counter
from collections.abc import Collection

from hypothesis import given
from hypothesis import strategies as st

from collector.imports.facts import JOB
from collector.imports.keeping import Keeper, Kept
from collector.imports.row import Aside, Ending, JobRow, contradiction
from domain.facts import Batch, Description, Moment, ObjectState, Transition

NOW_MS = 1_000_000


class Facts:
    """A sink in memory, as the store keeps them: facts are added, states replaced."""

    def __init__(self) -> None:
        self.transitions: list[Transition] = []
        self.descriptions: list[Description] = []
        self.states: dict[str, ObjectState] = {}
        self.aside: Counter[str] = Counter()
        self.aside_ms: list[int] = []
        self.told: list[dict[str, object]] = []

    def append(self, batch: Batch) -> int:
        self.transitions += batch.transitions
        self.descriptions += batch.descriptions
        self.states |= batch.objects
        for one in batch.set_aside:
            self.aside[one.because] += one.count
            self.aside_ms.append(one.observed_ms)
        return len(batch)

    def states_of(self, cluster: str, uids: Collection[str]) -> list[ObjectState]:
        assert cluster == "c"
        return [self.states[uid] for uid in uids if uid in self.states]

    def facts_of(
        self,
        cluster: str,
        uids: Collection[str] | None = None,
    ) -> tuple[list[Transition], list[Description]]:
        assert cluster == "c"
        return [fact for fact in self.transitions if uids is None or fact.uid in uids], self.descriptions

    def marks(self) -> list[dict[str, object]]:
        return self.told


@st.composite
def rows(draw: st.DrawFn) -> JobRow:
    """Rows about few jobs, so that they repeat, complete and contradict each other."""
    submit_ms = draw(st.sampled_from([0, 40]))
    start_ms = draw(st.sampled_from([None, submit_ms, submit_ms + 10]))
    ending = draw(st.sampled_from(Ending))
    end_ms = None if ending is Ending.OPEN else draw(st.sampled_from([submit_ms + 10, submit_ms + 20]))
    return JobRow(
        line=1,
        job=draw(st.sampled_from("ab")),
        submit_ms=submit_ms,
        eligible_ms=draw(st.sampled_from([None, submit_ms])),
        start_ms=start_ms,
        end_ms=end_ms,
        ending=ending,
        team=draw(st.sampled_from(["red", "blue"])),
    )


PARTS = st.lists(st.lists(rows().filter(lambda row: not contradiction(row)), max_size=6), max_size=4)


def total(kept: list[Kept]) -> int:
    return sum(one.new + one.updated + one.known + len(one.refused) for one in kept)


@given(parts=PARTS)
def test_each_row_is_new_an_update_known_or_refused(parts: list[list[JobRow]]) -> None:
    sink = Facts()
    keeper = Keeper("c", sink, source="jobs.txt", now_ms=NOW_MS)
    kept = [keeper.keep(part) for part in parts]
    assert total(kept) == sum(map(len, parts))
    assert sink.aside.total() == sum(len(one.refused) for one in kept)
    # Whatever the rows said, a stay has each of its moments once.
    once = Counter((fact.uid, fact.moment, fact.subject) for fact in sink.transitions if "@" in fact.uid)
    assert set(once.values()) <= {1}


@given(parts=PARTS)
def test_what_was_taken_in_adds_nothing_when_it_comes_again(parts: list[list[JobRow]]) -> None:
    sink = Facts()
    keeper = Keeper("c", sink, source="jobs.txt", now_ms=NOW_MS)
    taken = [row for part in parts for row in keeper.keep(part).taken]
    before = list(sink.transitions), list(sink.descriptions), dict(sink.states)
    again = Keeper("c", sink, source="jobs.txt", now_ms=NOW_MS, known_aside=sink.aside)
    kept = [again.keep([row]) for row in taken]
    assert all(one.new == one.updated == 0 for one in kept)
    assert before == (sink.transitions, sink.descriptions, sink.states)


def test_a_stay_ends_once_though_two_rows_tell_other_ends() -> None:
    sink = Facts()
    keeper = Keeper("c", sink, source="jobs.txt", now_ms=NOW_MS)
    row = JobRow(line=1, job="a", submit_ms=0, eligible_ms=0, start_ms=5, end_ms=10, ending=Ending.SUCCEEDED)
    other = JobRow(
        line=2, job="a", submit_ms=0, eligible_ms=0, start_ms=5, end_ms=20, ending=Ending.SUCCEEDED
    )
    kept = keeper.keep([row, other])
    assert (kept.new, len(kept.refused)) == (1, 1)
    assert len([fact for fact in sink.transitions if fact.moment is Moment.ENDED]) == 1


def test_what_is_set_aside_is_dated_by_the_newest_stamp_else_by_the_import() -> None:
    sink = Facts()
    keeper = Keeper("c", sink, source="jobs.txt", now_ms=NOW_MS)
    keeper.keep([], [Aside(line=1, because="alone")])
    row = JobRow(line=2, job="a", submit_ms=0, eligible_ms=0, start_ms=5, end_ms=10, ending=Ending.SUCCEEDED)
    keeper.keep([row], [Aside(line=3, because="beside a row")])
    keeper.keep([], [Aside(line=4, because="after it")])
    assert sink.aside_ms == [NOW_MS, 10, 10]


def test_what_is_set_aside_alone_is_dated_by_what_was_told_before() -> None:
    sink = Facts()
    sink.told = [{"cluster": "c", "kind": JOB, "seen_ms": 70}, {"cluster": "d", "kind": JOB, "seen_ms": 90}]
    Keeper("c", sink, source="jobs.txt", now_ms=NOW_MS).keep([], [Aside(line=1, because="alone")])
    assert sink.aside_ms == [70]
