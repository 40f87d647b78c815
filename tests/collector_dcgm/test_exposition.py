"""The reader of the exposition format, against the stock parser of `prometheus_client`."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from collector.dcgm.exposition import labels_of, readings

NAMES = st.sampled_from(["DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_PROF_GR_ENGINE_ACTIVE", "other_metric"])
LABEL_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name[:2] != "__"
)
# What breaks parsers: quotes, backslashes, newlines, braces, commas, hashes, equal signs.
LABEL_VALUES = st.text(
    alphabet=st.one_of(
        st.sampled_from('"\\\n{},=# \tn'), st.characters(exclude_categories=["Cs", "Cc", "Zl"])
    ),
    max_size=12,
)
SPACES = st.sampled_from(["", " ", "\t", "  "])
VALUES = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.integers(-(2**70), 2**70).map(str),
    st.sampled_from(["NaN", "+Inf", "-Inf", "Inf", "1e3", "1E-3", "-0", "+5", ".5", "5.", "0.985312"]),
)
STAMPS = st.none() | st.integers(0, 2**45)


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


@st.composite
def sample_lines(draw: st.DrawFn) -> str:
    labels = draw(st.dictionaries(LABEL_NAMES, LABEL_VALUES, min_size=1, max_size=4))
    order = draw(st.permutations(sorted(labels)))
    space = draw(SPACES)
    inner = f",{space}".join(f'{name}{space}={space}"{escaped(labels[name])}"' for name in order)
    inner += draw(st.sampled_from(["", ","]))
    stamp = draw(STAMPS)
    end = "" if stamp is None else f" {stamp}"
    return f"{draw(NAMES)}{{{space}{inner}}} {draw(VALUES)}{end}"


OTHER_LINES = st.sampled_from(
    [
        "",
        "# HELP DCGM_FI_DEV_GPU_UTIL use {in} %.",
        "# TYPE DCGM_FI_DEV_GPU_UTIL gauge",
        "# a {comment} 1",
        "up 1",
    ]
)


def same(ours: float, theirs: float) -> bool:
    return ours == theirs or (math.isnan(ours) and math.isnan(theirs))


@given(st.lists(sample_lines() | OTHER_LINES, max_size=8))
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
