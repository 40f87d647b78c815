"""CPUs and nodes of jobs, as tables and logs tell them."""

import pytest

from collector.imports.mapping import mapping_of
from collector.imports.row import Aside, JobRow, Read
from collector.imports.swf import Log, read_swf
from collector.imports.table import NO_COUNT, read_csv

MAPPING = mapping_of(
    {"columns": {"submit": "submit", "start": "start", "cpus": "cores", "nodes": "hosts"}}, name="map.yaml"
)


def one(cores: str, hosts: str) -> Read:
    lines = [b"submit,start,cores,hosts", f"10,20,{cores},{hosts}".encode()]
    [found] = read_csv(lines, MAPPING, name="jobs.csv")
    return found


@pytest.mark.parametrize(
    ("cores", "hosts", "size"),
    [
        ("8", "2", (8000, 2)),
        ("0.5", "1", (500, 1)),
        ("-1", "-1", (None, None)),  # tables write so what they do not know
        ("", "", (None, None)),
        ("0", "1", (0, 1)),
    ],
)
def test_a_table_tells_cpus_and_nodes(cores: str, hosts: str, size: tuple[int | None, int | None]) -> None:
    row = one(cores, hosts)
    assert isinstance(row, JobRow)
    assert (row.milli_cpus, row.nodes) == size


@pytest.mark.parametrize(("cores", "hosts"), [("many", "1"), ("8", "inf")])
def test_a_count_that_is_none_sets_the_row_aside(cores: str, hosts: str) -> None:
    row = one(cores, hosts)
    assert isinstance(row, Aside)
    assert row.because == NO_COUNT


def test_the_processors_of_a_log_are_cpus_and_its_nodes_are_not_known() -> None:
    line = b"1 0 5 60 16 -1 -1 16 -1 -1 1 1 1 1 1 -1 -1 -1"
    [row] = read_swf([b"; UnixStartTime: 1000", line], Log(), name="log.swf")
    assert isinstance(row, JobRow)
    assert (row.milli_cpus, row.nodes) == (16_000, None)
