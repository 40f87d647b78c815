"""Until what runs was read and cut into lives, a name that is not found is no answer: tell it again."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from starlette.requests import Request

from api.problem import of_product_error
from collector.decoding import Payload
from collector.intake import Intake
from collector.translator import TRANSLATORS
from domain.checkpoint import CheckpointReport, ToldBy
from domain.errors import NotYetError
from domain.facts import Batch, ObjectKind, SourceMark
from domain.policy import Policy
from domain.tenant import Tenancy
from domain.window import FixedClock
from service.books import Books, books_of
from service.checkpoints import Checkpoints
from service.first_cut import FirstCut
from store.embedded import Store
from tests.collector.objects import at
from tests.service.test_checkpoints_told import pod

PODS = next(kind for kind in TRANSLATORS if kind.kind is ObjectKind.POD)
CLUSTER = "north"


@dataclass(frozen=True, slots=True)
class Site:
    """Nothing is read yet; the clocks stand at second 60."""

    store: Store
    books: Books
    first_cut: FirstCut
    checkpoints: Checkpoints
    told: list[Payload]

    def read_pods(self, *, seconds: float) -> None:
        """A pod `a` in the namespace red, seen at that second."""
        intake = Intake(CLUSTER, self.store, self.store.known(CLUSTER))
        body = pod("a", namespace="red", from_ms=at(0))
        body["metadata"]["resourceVersion"] = "5"
        intake.see(PODS, "ADDED", body, at(seconds))
        intake.flush()

    def refuse_pods(self) -> None:
        mark = SourceMark(
            kind=ObjectKind.POD, resource_version="", epoch=0, seen_ms=0, last_error="no_permission: 403"
        )
        self.store.append(Batch(cluster=CLUSTER, marks={ObjectKind.POD: mark}))

    def cut(self) -> None:
        self.first_cut.after(self.books.refresh)

    def tell(self, team: str, name: str = "a") -> bool | None:
        """Whether a checkpoint was kept; None where there is no such pod for this team."""
        report = CheckpointReport(namespace="red", pod=name)
        told = self.checkpoints.take(report, by=ToldBy.PUSH, teams={team})
        return None if told is None else bool(told["new"])


@pytest.fixture
def site() -> Iterator[Site]:
    store, clock, told = Store.open(None), FixedClock(at(60)), list[Payload]()
    books = books_of(store, tenancy=Tenancy(), policy=Policy(), clock=clock)
    first_cut = FirstCut(store, {CLUSTER}, clock)

    def keep(_cluster: str, payload: Payload, _observed_ms: int) -> None:
        told.append(payload)

    checkpoints = Checkpoints(store, {CLUSTER}, keep, clock, first_cut=first_cut)
    yield Site(store, books, first_cut, checkpoints, told)
    store.close()


def test_before_pods_are_read_and_cut_it_is_to_be_told_again_and_then_it_is_kept(site: Site) -> None:
    site.cut()  # of an empty store
    with pytest.raises(NotYetError):
        site.tell("red")
    site.read_pods(seconds=61)
    with pytest.raises(NotYetError):
        site.tell("red")
    site.cut()
    assert (site.tell("red"), site.tell("blue"), site.tell("red", "nobody")) == (True, None, None)
    assert len(site.told) == 1


def test_after_a_rebuild_own_foreign_and_no_work_sound_alike_until_lives_are_cut(site: Site) -> None:
    site.read_pods(seconds=61)
    site.cut()
    site.first_cut.begin_anew()
    said = set()
    for team, name in (("blue", "a"), ("blue", "nobody"), ("red", "nobody")):
        with pytest.raises(NotYetError) as refusal:
            site.tell(team, name)
        said.add(str(refusal.value))
    assert len(said) == 1
    assert site.tell("red") is True  # what is known is not refused
    site.cut()
    assert site.tell("blue") is None


def test_pods_that_were_seen_before_the_start_only_are_not_read_yet(site: Site) -> None:
    site.read_pods(seconds=59)
    site.cut()
    with pytest.raises(NotYetError):
        site.tell("red", "begun meanwhile")


def test_where_pods_may_not_be_read_nobody_waits_for_them(site: Site) -> None:
    site.refuse_pods()
    site.cut()
    assert site.tell("red") is None


def test_over_http_it_is_503_with_the_seconds_after_which_to_ask_again() -> None:
    path = "/api/v1/checkpoints"
    scope = {"type": "http", "method": "POST", "path": path, "headers": [], "query_string": b""}
    reply = of_product_error(Request(scope), NotYetError("tell it again", retry_after_seconds=5))
    assert (reply.status_code, reply.headers["retry-after"]) == (503, "5")
    assert b"tell it again" in bytes(reply.body)
