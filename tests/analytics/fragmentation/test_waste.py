"""The ladder and FGD's fragment waste, against their sums written out, and against the published figures."""

from collections import Counter
from fractions import Fraction

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analytics.fragmentation.inventory import Inventory
from analytics.fragmentation.waste import (
    PaperNode,
    PaperTask,
    Shape,
    fgd_paper,
    ladder,
    popular,
    unusable,
)
from tests.shared import shared

GPU, SLICE = "nvidia.com/gpu", "nvidia.com/mig-1g.10gb"
COUNTS = st.dictionaries(st.sampled_from([(GPU, 1), (GPU, 2), (GPU, 8), (SLICE, 1)]), st.integers(1, 30))


@given(st.lists(st.integers(0, 16), min_size=1), st.integers(1, 16))
def test_the_ladder_is_one_less_what_pods_of_that_size_fill(free: list[int], size: int) -> None:
    filled = sum(each // size * size for each in free)
    assert ladder(free, size) == (1 - Fraction(filled, sum(free)) if sum(free) else 0)


@given(st.lists(st.integers(0, 16), min_size=1), st.integers(1, 8), st.integers(1, 4))
def test_a_larger_multiple_leaves_no_less_over(free: list[int], size: int, times: int) -> None:
    assert ladder(free, size) <= ladder(free, size * times)


@given(COUNTS)
def test_the_kept_shapes_cover_the_share_and_without_the_last_would_not(counts: dict[Shape, int]) -> None:
    kept = popular(counts)
    covered = sum(counts[shape] for shape in kept)
    assert covered >= Fraction(95, 100) * sum(counts.values())
    assert sum(kept.values()) == (1 if counts else 0)
    if kept:
        rarest = min(counts[shape] for shape in kept)
        assert covered - rarest < Fraction(95, 100) * sum(counts.values())
        assert all(counts[other] <= rarest for other in counts if other not in kept)


@given(st.lists(st.tuples(st.integers(0, 8), st.integers(0, 7)), min_size=1, max_size=5), COUNTS)
def test_waste_is_the_mean_over_pods_of_what_each_cannot_use(
    free: list[tuple[int, int]], counts: dict[Shape, int]
) -> None:
    inventory = Inventory({f"n{i}": {GPU: gpus, SLICE: slices} for i, (gpus, slices) in enumerate(free)})
    # A slice is taken as a seventh of a GPU, rounded down.
    micro = {
        place: count * (1_000_000 if place[1] == GPU else 142_857) for place, count in inventory.places()
    }
    pods = [shape for shape, count in counts.items() for _ in range(count)]
    shares = {shape: Fraction(count, len(pods)) for shape, count in counts.items()}
    lost = 0
    for resource, size in pods:
        for node, devices in inventory.free.items():
            lost += micro[node, GPU] + micro[node, SLICE]
            if devices[resource] >= size:
                lost -= micro[node, resource]
    assert unusable(inventory, shares, micro) == (Fraction(lost, len(pods)) if pods else 0)


NODE = PaperNode(cpu_milli=8000, gpu_milli=(1000, 500, 0), model="T4")


@pytest.mark.parametrize(
    ("task", "fragments"),
    [
        (PaperTask(cpu_milli=1000, gpus=1), 500),
        (PaperTask(cpu_milli=1000, gpus=1, gpu_milli=500), 0),
        (PaperTask(cpu_milli=1000, gpus=2), 1500),
        (PaperTask(cpu_milli=9000, gpus=1), 1500),
        (PaperTask(cpu_milli=1000, gpus=0), 1500),
        (PaperTask(cpu_milli=1000, gpus=1, models=("V100",)), 1500),
    ],
)
def test_a_fragment_is_what_the_task_cannot_use(task: PaperTask, fragments: int) -> None:
    assert fgd_paper([NODE], {task: Fraction(1)}) == fragments


# Fragmented, % of all GPUs, of the empty openb cluster: the data's README, table row 4, computed figures.
OPENB = {
    "default": 13.945,
    "gpuspec33": 35.415,
    "gpushare100": 13.642,
    "multigpu50": 14.731,
    "cpu250": 25.874,
}


@pytest.mark.parametrize(("pods", "percent"), OPENB.items())
def test_the_papers_form_gives_the_published_fragmentation_of_openb(pods: str, percent: float) -> None:
    folder = shared("data/traces/alibaba-openb-2023")
    nodes = [
        PaperNode(cpu_milli=row["cpu_milli"], gpu_milli=(1000,) * row["gpu"], model=row["model"] or "")
        for row in pl.read_parquet(folder / "nodes.parquet").iter_rows(named=True)
    ]
    tasks = Counter(
        PaperTask(
            cpu_milli=row["cpu_milli"],
            gpus=row["num_gpu"],
            gpu_milli=row["gpu_milli"],
            models=tuple(filter(None, (row.get("gpu_spec") or "").split("|"))),
        )
        for row in pl.read_parquet(folder / f"pods_{pods}.parquet").iter_rows(named=True)
    )
    fragments = fgd_paper(nodes, popular(tasks))
    total = sum(sum(node.gpu_milli) for node in nodes)
    assert total == 6212 * 1000
    assert float(100 * fragments / total) == pytest.approx(percent, abs=0.0005)
