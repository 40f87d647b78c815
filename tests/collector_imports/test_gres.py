"""The older list of generic resources: GPUs per node, as name, model and count."""

from zoneinfo import ZoneInfo

import pytest

from collector.imports.row import Aside, JobRow, Read
from collector.imports.sacct import read_sacct
from collector.imports.slurm_row import NO_GPUS


def in_gres(gres: str, *, nodes: str = "2", node_list: str = "g[01-02]") -> Read:
    """What is read of a job whose GPUs stand in the older list."""
    row = {
        "JobID": "1",
        "State": "COMPLETED",
        "Submit": "2026-03-02T09:00:00",
        "Start": "2026-03-02T09:10:00",
        "End": "2026-03-02T10:10:00",
        "AllocGRES": gres,
        "NNodes": nodes,
        "NodeList": node_list,
    }
    lines = ["|".join(row).encode(), "|".join(row.values()).encode()]
    [found] = read_sacct(lines, name="sacct.txt", zone=ZoneInfo("UTC"))
    return found


@pytest.mark.parametrize(
    ("gres", "gpus", "model"),
    [
        ("gpu", 2, ""),
        ("gpu:2080ti:4", 8, "2080ti"),
        ("gpu:1g.10gb:3", 6, "1g.10gb"),
        ("gpu:3090:1", 2, "3090"),
        ("gpu:2080ti", 2, "2080ti"),
        ("gres/gpu:4", 8, ""),
        ("gpu=3", 6, ""),
        ("craynetwork:1,gpu:tesla:2(IDX:0,1)", 4, "tesla"),
        ("gpu_mem:8,gpu:tesla:2(S:0-1),gpu:a100:1", 6, ""),
    ],
)
def test_a_model_in_the_older_list_may_begin_with_a_digit(gres: str, gpus: int, model: str) -> None:
    found = in_gres(gres)
    assert isinstance(found, JobRow)
    assert (found.gpus, found.gpu_model) == ({"nvidia.com/gpu": gpus}, model)


@pytest.mark.parametrize("gres", ["gpu:3090", "gpu:-2", "gpu:a100:many", "gpu:", "gpu:a:b:3", "gpu:2K"])
def test_what_cannot_be_gpus_of_a_node_is_set_aside(gres: str) -> None:
    found = in_gres(gres)
    assert isinstance(found, Aside)
    assert found.because == NO_GPUS


@pytest.mark.parametrize("nodes", ["", "1.2K", "many"])
def test_gpus_of_each_node_are_not_counted_without_a_count_of_nodes(nodes: str) -> None:
    found = in_gres("gpu:4", nodes=nodes)
    assert isinstance(found, Aside)
    assert found.because == NO_GPUS
    alone = in_gres("gpu:4", nodes=nodes, node_list="g01")
    assert isinstance(alone, JobRow)
    assert alone.gpus == {"nvidia.com/gpu": 4}
    assert isinstance(in_gres("gpu:0", nodes=nodes), JobRow)
