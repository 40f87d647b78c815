"""The reader of the exposition format, against the stock parser of `prometheus_client`."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from collector.dcgm.exposition import labels_of, readings
from tests.collector_dcgm.exposition_lines import OTHER_LINES, same, sample_lines

NAMES = st.sampled_from(["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "other_metric"])


@given(st.lists(sample_lines(NAMES) | OTHER_LINES, max_size=8))
def test_every_line_means_what_it_means_to_the_stock_parser(lines: list[str]) -> None:
    text = "\n".join(lines) + "\n"
    refused: list[str] = []
    ours = list(readings(text, lambda name: name.startswith("DCGM_"), refused.append))
    theirs = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name.startswith("DCGM_")
    ]
    assert refused == []
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        assert (mine.name, labels_of(mine.labels)) == (other.name, other.labels)
        # It keeps whole numbers as such; a value of the format is a float.
        assert same(mine.value, float(other.value))
        stamp_ms = None if other.timestamp is None else round(float(other.timestamp) * 1000)
        assert mine.at_ms == stamp_ms


@pytest.mark.parametrize(
    "line",
    [
        'DCGM_X{gpu="0"} 1_000',
        'DCGM_X{gpu="0"} ninety',
        'DCGM_X{gpu="0"}',
        'DCGM_X{gpu="0" 1',
        'DCGM_X{gpu="0"} 1 2 3',
        'DCGM_X{gpu="0"} 1 soon',
        # No instant of any calendar: nanoseconds.
        'DCGM_X{gpu="0"} 1 1767268800000000000',
    ],
)
def test_a_line_that_cannot_be_read_is_told_and_the_next_one_is_read(line: str) -> None:
    refused: list[str] = []
    read = list(readings(f'{line}\nDCGM_X{{gpu="1"}} 2\n', lambda _: True, refused.append))
    assert refused == [line]
    assert [reading.value for reading in read] == [2.0]


@pytest.mark.parametrize("labels", ["gpu=0", 'gpu="0', '"0"', 'gpu="0" pod="a"', 'gpu="0",,pod="a"'])
def test_labels_that_cannot_be_read_are_an_error(labels: str) -> None:
    with pytest.raises(ValueError, match="expected name="):
        labels_of(labels)
