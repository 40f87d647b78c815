"""A store that took an instant of the year 2300 in, when nobody refused it yet, heals when it is opened."""

from pathlib import Path
from typing import Any

from collector.intake import Intake
from domain.policy import Policy
from domain.window import parse_instant
from service.clocks import EndOfData
from service.fairness import Fairness
from service.refresh import Refresher
from store.embedded import Store
from tests.collector.objects import POD
from tests.service.test_multikueue import NINE, Read, node, pod, read, when

FAR = parse_instant("2300-06-01T00:00:00Z")
BECAUSE = "an instant after the year 2262"


def alone(uid: str) -> dict[str, Any]:
    made = pod(uid, 8)
    made["metadata"]["ownerReferences"] = []
    return made


def test_what_tells_of_it_is_set_aside_and_the_rest_is_what_it_would_be_without(tmp_path: Path) -> None:
    path = tmp_path / "facts.duckdb"
    told: list[Read] = [("east", -60, node("n-east")), ("east", 9, alone("p1")), ("east", 9, alone("p2"))]
    store = Store.open(path)
    read(store, told)
    now_ms, holdings = EndOfData(store).now_ms(), "select * from holding order by pod_uid"
    before = store.rows(holdings)
    with store.transaction() as connection:
        connection.execute("delete from schema_migration where number = 37")
        for poison in (
            """
            insert into transition select * replace ($far as at_ms, 'ended' as moment) from transition
            where uid = 'p1' and moment = 'bound'
            """,
            "insert into queue_state values ('east', 'q', 0, $far, 1, 1, 1, 1, 1, 1)",
            "update source_mark set seen_ms = $far where kind = 'Pod'",
            "update object_state set seen_ms = $far where uid = 'p2'",
            "insert into gpu_sample_mark values ('east', 'prometheus', $far, $far, '', null, $far)",
            "update holding set released_ms = $far where pod_uid = 'p1'",
        ):
            connection.execute(poison, {"far": FAR})
    assert EndOfData(store).now_ms() > FAR
    store.close()

    store = Store.open(path)
    assert EndOfData(store).now_ms() == now_ms
    counts = {(row["source"], row["count"]) for row in store.set_aside_counts() if row["because"] == BECAUSE}
    # The transition, the mark and the state of pods; the counts of the queue; the mark of samples.
    assert counts == {("Pod", 3), ("q", 1), ("prometheus", 1)}
    Refresher(store=store).refresh()
    assert Fairness(store, Policy()).refresh("east", 0) == 2
    assert store.rows(holdings) == before
    store.close()
    store = Store.open(path)
    again = [row["count"] for row in store.set_aside_counts() if row["because"] == BECAUSE]
    assert sorted(map(str, again)) == ["1", "1", "3"]
    store.close()


def test_an_object_that_tells_of_one_is_set_aside_and_its_next_reading_is_taken() -> None:
    store = Store.open(None)
    intake = Intake("east", store, store.known("east"))
    for version, stamp in (("1", "2263-01-01T00:00:00Z"), ("2", "2026-05-04T09:08:00Z")):
        made = alone("p1")
        made["metadata"]["resourceVersion"] = version
        made["status"]["conditions"][0]["lastTransitionTime"] = stamp
        intake.see(POD, "MODIFIED", made, when(9))
    intake.flush()
    [aside] = store.set_aside_counts()
    assert aside["because"] == "time stamp '2263-01-01T00:00:00Z': expected an instant before the year 2263"
    bound = store.rows("select at_ms from transition where moment = 'bound'")
    assert [row["at_ms"] for row in bound] == [NINE + 8 * 60_000]
    store.close()
