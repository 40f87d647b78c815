"""Samples laid on the stays of pods: hours of devices, stretches of one level, and what makes them anew."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import StoreError
from domain.policy import Policy
from service.activity import Activity
from store.embedded import Store
from store.gpu_samples import Read
from tests.golden.cases import fill, store_of
from tests.laws import law

SECOND, MINUTE, HOUR = 1_000, 60_000, 3_600_000
T0 = 1_790_000_000_000 // HOUR * HOUR
CARD = 1_000_000
TABLES = {
    "activity_span": "select * from activity_span order by all",
    "gpu_hour": "select * from gpu_hour order by all",
}
COLUMNS = {
    "node": pl.String, "device": pl.String, "gpu_model": pl.String, "namespace": pl.String,
    "pod": pl.String, "pod_uid": pl.String, "shares": pl.Int64, "pod_shares": pl.Int64,
    "per_process": pl.Boolean, "at_ms": pl.Int64, "step_ms": pl.Int64, "activity": pl.Float64,
    "engine": pl.Boolean, "memory_mib": pl.Float64, "memory_total_mib": pl.Float64, "micro_gpus": pl.Int64,
}  # fmt: skip


def sample(at_ms: int, activity: float | None, **given: Any) -> dict[str, Any]:
    """A sample of GPU-1 on n1, with pod a on it."""
    usual = {
        "node": "n1", "device": "GPU-1", "gpu_model": "A100", "namespace": "", "pod": "a", "pod_uid": "",
        "shares": 0, "pod_shares": 0, "per_process": False, "step_ms": MINUTE, "engine": True,
        "memory_mib": None, "memory_total_mib": 1000.0, "micro_gpus": CARD,
    }  # fmt: skip
    return usual | {"at_ms": T0 + at_ms, "activity": activity} | given


def append(store: Store, samples: Iterable[Mapping[str, Any]], source: str = "s") -> int:
    frame = pl.DataFrame(list(samples), schema=COLUMNS)
    return store.append_samples("east", source, frame, Read(until_ms=T0, seen_ms=T0))


def stay(pod: str, bound: int, released: int | None, gpus: float = 1) -> dict[str, Any]:
    return {
        "workload_uid": f"w-{pod}", "pod_uid": f"u-{pod}", "pod_name": pod, "gpus": gpus,
        "bound_ms": T0 + bound, "released_ms": None if released is None else T0 + released,
    }  # fmt: skip


@contextmanager
def site(*stays: dict[str, Any]) -> Iterator[Store]:
    """A store with these stays of pods."""
    workloads = [{"workload_uid": uid} for uid in dict.fromkeys(each["workload_uid"] for each in stays)]
    with store_of({"workload": workloads, "holding": list(stays)}) as store:
        yield store


def refresh(store: Store, policy: Policy | None = None) -> int:
    return Activity(store, policy or Policy()).refresh("east", T0 + HOUR)


def spans(store: Store) -> list[tuple[str, int, int]]:
    """Level, start and end in seconds after T0."""
    found = store.rows("select * from activity_span order by pod_uid, device, start_ms")
    return [(row["level"], (row["start_ms"] - T0) / 1000, (row["end_ms"] - T0) / 1000) for row in found]  # type: ignore[operator,misc]


def total(store: Store, what: str, where: str = "true") -> float:
    """A sum over `gpu_hour`, in GPU-seconds."""
    sql = f"select coalesce(sum({what}), 0)::double / 1e9 as v from gpu_hour where {where}"  # noqa: S608
    (row,) = store.rows(sql)
    return float(str(row["v"]))


def test_a_sample_stands_until_the_next_or_for_one_step_where_that_is_too_far_away() -> None:
    with site(stay("a", 0, None)) as store:
        # 0 -> 60 -> 150 (1.5 steps: until it) -> 241 (further: for one step) -> the last: for one step.
        append(store, [sample(at * SECOND, 0.9) for at in (0, 60, 150, 241)])
        refresh(store)
        assert spans(store) == [("high", 0, 210), ("high", 241, 301)]
        assert total(store, "seen") == 270
        assert total(store, "active") == pytest.approx(243)


@pytest.mark.parametrize(
    ("activity", "memory", "level"),
    [
        (0.05, None, "high"),
        (0.049, None, "low"),
        (0.0, 500.0, "low"),
        (0.0, 501.0, "resident"),
        (None, 900.0, None),
    ],
)
def test_the_level_of_a_stretch(activity: float | None, memory: float | None, level: str | None) -> None:
    with site(stay("a", 0, None)) as store:
        append(store, [sample(0, activity, memory_mib=memory)])
        refresh(store)
        assert spans(store) == ([] if level is None else [(level, 0, 60)])


def test_a_blank_value_ends_what_stood_before_it() -> None:
    with site(stay("a", 0, None)) as store:
        append(store, [sample(0, 0.9), sample(MINUTE, None), sample(2 * MINUTE, 0.0)])
        refresh(store)
        assert spans(store) == [("high", 0, 60), ("low", 120, 180)]
        assert total(store, "seen") == 120


def test_stretches_are_cut_at_hours_and_at_the_stay_of_the_pod() -> None:
    with site(stay("a", 10 * SECOND, HOUR + 90 * SECOND)) as store:
        append(store, [sample(at, 0.9) for at in range(0, HOUR + 5 * MINUTE, MINUTE)])
        refresh(store)
        assert spans(store) == [("high", 10, 3600), ("high", 3600, 3690)]
        # What the device did before and after belongs to nobody, and was seen all the same.
        assert total(store, "seen", "pod_uid = ''") == 10 + 210
        assert total(store, "seen") == 3900


def test_a_pod_on_several_devices_has_its_part_of_each() -> None:
    with site(stay("a", 0, None, gpus=8)) as store:
        append(store, [sample(0, 0.9 if card else 0.0, device=f"GPU-{card}") for card in range(8)])
        refresh(store)
        found = store.rows(
            "select level, sum(micro_gpus) as gpus from activity_span group by level order by 1"
        )
        assert found == [{"level": "high", "gpus": 7 * CARD}, {"level": "low", "gpus": CARD}]


def test_two_pods_of_one_name_are_told_apart_by_their_time() -> None:
    second = stay("a", 5 * MINUTE, None) | {"pod_uid": "u-a2"}
    with site(stay("a", 0, 3 * MINUTE), second) as store:
        append(store, [sample(at * MINUTE, 0.9) for at in range(8)])
        refresh(store)
        ends = store.rows(
            "select pod_uid, min(start_ms) as s, max(end_ms) as e from activity_span group by 1 order by 1"
        )
        assert [(row["pod_uid"], row["s"], row["e"]) for row in ends] == [
            ("u-a", T0, T0 + 3 * MINUTE), ("u-a2", T0 + 5 * MINUTE, T0 + 8 * MINUTE),
        ]  # fmt: skip


def test_whose_the_activity_of_a_shared_gpu_is_nobody_knows() -> None:
    quarters = [stay("a", 0, None, gpus=0.25), stay("b", 0, None, gpus=0.5)]
    with site(*quarters) as store:
        both = [
            sample(0, 0.7, pod="a", shares=1, pod_shares=1),
            sample(0, 0.7, pod="b", shares=2, pod_shares=2),
        ]
        alone = [sample(MINUTE, 0.7, pod="a", shares=1, pod_shares=1)]
        append(store, [*both, *alone])
        refresh(store)
        assert spans(store) == [("shared", 0, 60), ("high", 60, 120), ("shared", 0, 60)]
        # The device counts once: 0.7 of a card over two minutes.
        assert total(store, "active") == pytest.approx(84)
        assert total(store, "seen", "pod_uid = ''") == 60 * 0.25 + 60 * 0.75
        assert total(store, "own_seen") == 60 * 0.25


def test_a_share_whose_series_shows_the_newest_pod_only_is_shared() -> None:
    with site(stay("a", 0, None, gpus=0.25)) as store:
        append(store, [sample(0, 0.7)])
        refresh(store)
        assert spans(store) == [("shared", 0, 60)]


def test_values_per_process_are_the_pods_own() -> None:
    with site(stay("a", 0, None, gpus=0.5), stay("b", 0, None, gpus=0.5)) as store:
        own = {"shares": 1, "pod_shares": 1, "per_process": True}
        rows = [sample(0, 0.8, pod=""), sample(0, 0.8, pod="a", **own), sample(0, 0.0, pod="b", **own)]
        append(store, rows)
        refresh(store)
        assert spans(store) == [("high", 0, 60), ("low", 0, 60)]
        assert total(store, "active") == pytest.approx(48)


def test_what_two_sources_read_of_one_instant_counts_once_the_known_and_the_profiler_first() -> None:
    with site(stay("a", 0, None)) as store:
        append(store, [sample(0, 0.3), sample(MINUTE, None)], source="one")
        append(store, [sample(0, 0.9, engine=False), sample(MINUTE, 0.6, engine=False)], source="two")
        refresh(store)
        assert total(store, "seen") == 120
        assert total(store, "active") == pytest.approx(18 + 36)


def test_importing_again_changes_nothing() -> None:
    with site(stay("a", 0, None)) as store:
        rows = [sample(at * MINUTE, 0.9) for at in range(5)]
        assert append(store, rows) == 5
        assert refresh(store) == 1
        assert append(store, rows) == 0
        assert refresh(store) == 0


def test_a_pod_that_is_known_later_gets_its_samples() -> None:
    with site() as store:
        append(store, [sample(0, 0.9)])
        assert refresh(store) == 0
        assert total(store, "seen", "pod_uid = ''") == 60
        put(store, [stay("a", 0, 30 * SECOND)])
        assert refresh(store) == 1
        assert spans(store) == [("high", 0, 30)]
        put(store, [])
        assert refresh(store) == 1
        assert spans(store) == []
        assert total(store, "seen", "pod_uid = ''") == 60


def test_workloads_with_another_activity_are_named_to_what_is_derived_of_it() -> None:
    with site(stay("a", 0, None), stay("b", 0, None)) as store:
        append(store, [sample(0, 0.9), sample(0, 0.9, pod="b", device="GPU-2")])
        refresh(store)
        first = store.rows("select workload_uid, seq from activity_cut")
        assert {row["workload_uid"] for row in first} == {"w-a", "w-b"}
        append(store, [sample(MINUTE, 0.9)])
        refresh(store)
        later = store.rows("select workload_uid, seq from activity_cut")
        assert [row["workload_uid"] for row in later if row not in first] == ["w-a"]


def test_other_thresholds_fold_everything_again() -> None:
    with site(stay("a", 0, None)) as store:
        append(store, [sample(0, 0.06)])
        refresh(store)
        assert refresh(store, Policy(idle_below=0.1)) == 1
        assert spans(store) == [("low", 0, 60)]
        assert refresh(store) == 1
        assert spans(store) == [("high", 0, 60)]


@pytest.mark.parametrize("wrong", [{"activity": float("nan")}, {"step_ms": 0}, {"step_ms": HOUR}])
def test_a_sample_that_would_poison_sums_is_refused(wrong: dict[str, Any]) -> None:
    with site() as store, pytest.raises(StoreError, match="expected finite values or none, and a step"):
        append(store, [sample(0, 0.5) | wrong])


def test_what_was_set_aside_is_added_up_by_cause() -> None:
    frame = pl.DataFrame(schema=COLUMNS)
    with site() as store:
        for at in range(3):
            frame = pl.DataFrame([sample(at * MINUTE, 0.5)], schema=COLUMNS)
            store.append_samples("east", "s", frame, Read(until_ms=1, seen_ms=at), set_aside={"blank": 2})
        assert store.rows("select because, count, observed_ms from set_aside") == [
            {"because": "blank", "count": 6, "observed_ms": 2}
        ]
        # The same import again was counted already.
        store.append_samples("east", "s", frame, Read(until_ms=1, seen_ms=9), set_aside={"blank": 2})
        assert [row["count"] for row in store.set_aside_counts()] == [6]


# ------------------------------------------------------------ any order, any batches


@dataclass(frozen=True, slots=True)
class Deed:
    """What happens to a store: samples of a source arrive, or stays are known as these."""

    samples: tuple[dict[str, Any], ...] = ()
    source: str = "s"
    stays: tuple[dict[str, Any], ...] | None = None


def put(store: Store, stays: Iterable[dict[str, Any]]) -> None:
    """Make these the stays that the lives tell of."""
    with store.transaction() as connection:
        connection.execute("delete from holding")
        connection.execute("delete from workload")
    fill(store, {"workload": [{"workload_uid": f"w-{pod}"} for pod in "ab"], "holding": list(stays)})


@pytest.fixture(scope="module")
def stores() -> Iterator[tuple[Store, Store]]:
    """Two stores for all examples of a law; to open one takes longer than an example."""
    with site() as one, site() as other:
        yield one, other


def emptied(store: Store) -> Store:
    with store.transaction() as connection:
        for table in (*TABLES, "gpu_sample", "activity_holding", "activity_cut", "watermark", "holding"):
            connection.execute(f"delete from {table}")  # noqa: S608 (one of ours)
    return store


INSTANTS = st.sampled_from([*range(-90, 91, 15), *range(3500, 3700, 20), 7190, 7200, 7230]).map(
    lambda s: s * SECOND
)


@st.composite
def samples(draw: st.DrawFn) -> dict[str, Any]:
    shares = draw(st.sampled_from([0, 0, 0, 1, 2]))
    return sample(
        draw(INSTANTS),
        draw(st.sampled_from([None, 0.0, 0.049, 0.05, 1.0])),
        device=draw(st.sampled_from(["GPU-1", "GPU-1/3"])),
        pod=draw(st.sampled_from(["", "a", "a", "b"])),
        shares=shares,
        pod_shares=shares,
        step_ms=draw(st.sampled_from([15, 60, 300])) * SECOND,
        engine=draw(st.booleans()),
        memory_mib=draw(st.sampled_from([None, 100.0, 900.0])),
        micro_gpus=draw(st.sampled_from([CARD, CARD, 428_571])),
    )


STAYS = st.tuples(
    st.builds(
        stay, st.just("a"), INSTANTS, st.none() | st.just(3600 * SECOND), st.sampled_from([0.25, 1, 2])
    ),
    st.builds(stay, st.just("b"), INSTANTS, st.just(7210 * SECOND), st.just(1)),
)
DEEDS = st.lists(
    st.one_of(
        st.builds(
            Deed,
            samples=st.lists(samples(), max_size=6).map(tuple),
            source=st.sampled_from(["one", "two"]),
        ),
        st.builds(Deed, stays=STAYS),
    ),
    min_size=1,
    max_size=6,
)


@law(20)
@given(DEEDS, STAYS, st.randoms(use_true_random=False))
def test_any_order_of_arrival_in_any_batches_gives_what_one_fold_of_all_gives(
    stores: tuple[Store, Store], deeds: list[Deed], last: tuple[dict[str, Any], ...], random: Any
) -> None:
    bit_by_bit, at_once = map(emptied, stores)
    for deed in [*deeds, Deed(stays=last)]:
        if deed.stays is not None:
            put(bit_by_bit, deed.stays)
        append(bit_by_bit, deed.samples, deed.source)
        if random.random() < 0.7:
            refresh(bit_by_bit)
    refresh(bit_by_bit)
    put(at_once, last)
    for deed in random.sample(deeds, len(deeds)):
        append(at_once, random.sample(deed.samples, len(deed.samples)), deed.source)
    refresh(at_once)
    for sql in TABLES.values():
        assert bit_by_bit.rows(sql) == at_once.rows(sql)


@law(25)
@given(st.lists(samples(), max_size=12), STAYS)
def test_a_stretch_lies_within_its_hour_and_its_stay_and_nothing_counts_twice(
    stores: tuple[Store, Store], read: list[dict[str, Any]], stays: tuple[dict[str, Any], ...]
) -> None:
    store = emptied(stores[0])
    put(store, stays)
    append(store, read)
    refresh(store)
    for sql in (OUTSIDE, OVERLAPPING, "select * from gpu_hour where own_active > own_seen or active > seen"):
        assert store.rows(sql) == []


# One row per stretch that is empty, crosses an hour, or lies outside the stay of its pod.
OUTSIDE = """
select * from activity_span as span
inner join pod_stay using (pod_uid)
where
    span.start_ms >= span.end_ms
    or span.start_ms // 3600000 != (span.end_ms - 1) // 3600000
    or span.start_ms < bound_ms
    or span.end_ms > coalesce(released_ms, span.end_ms)
"""
# One row per pair of stretches of one device of a pod that overlap.
OVERLAPPING = """
select * from activity_span as one
inner join activity_span as other
    on one.pod_uid = other.pod_uid and one.device = other.device
    and (one.start_ms, one.end_ms, one.level) < (other.start_ms, other.end_ms, other.level)
    and other.start_ms < one.end_ms
"""


def test_a_fold_that_breaks_off_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    with site(stay("a", 0, None)) as store:
        append(store, [sample(0, 0.9)])
        refresh(store)
        append(store, [sample(MINUTE, 0.9)])
        with monkeypatch.context() as broken:
            broken.setattr("store.activity._FRESH_HOURS", "select error('stopped here')")
            with pytest.raises(Exception, match="stopped here"):
                refresh(store)
        assert refresh(store) == 1
        assert spans(store) == [("high", 0, 120)]
