"""Answers of many exporters by whole columns: the same as the stock parser reads, and as line by line."""

from collections import Counter
from itertools import zip_longest

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from prometheus_client.parser import text_string_to_metric_families

from collector.dcgm.exporter import take_answer
from collector.dcgm.exposition import labels_of
from collector.dcgm.layout import taken_apart
from collector.dcgm.rounds import Answer, Exporters
from collector.dcgm.samples import FIELD_PLACES, NO_METRICS, OF_THE_FUTURE, WANTED, Gathered
from domain.window import MS_PER_HOUR
from tests.collector_dcgm.exposition_lines import OTHER_LINES, VALUES, escaped, same, sample_lines

AT_MS = 1_790_000_000_000
STEP_MS = 30_000
LINES = st.lists(sample_lines(st.sampled_from([*sorted(WANTED), "other_metric"])) | OTHER_LINES, max_size=8)
# Lines that hide what ends a line, and some that cannot be read.
BROKEN = st.sampled_from(
    [
        'DCGM_FI_DEV_GPU_UTIL{UUID="a"} 1_000',
        'DCGM_FI_DEV_GPU_UTIL{UUID="a"}',
        'DCGM_FI_DEV_GPU_UTIL{UUID="a" 1',
        'DCGM_FI_DEV_GPU_UTIL{UUID="a"} 1 2 3',
        "DCGM_FI_DEV_GPU_UTIL{UUID=a} 1",
        'DCGM_FI_DEV_GPU_UTIL{UUID="a"}  7\r',
        ' DCGM_FI_DEV_GPU_UTIL {UUID="} 3"} 4',
        "DCGM_FI_DEV_GPU_UTIL{} 4",
        'DCGM_FI_DEV_GPU_UTIL{Hostname="n"} 4',
        'DCGM_FI_DEV_GPU_UTIL{UUID="a"} 0x1p3',
        'DCGM_FI_DEV_GPU_UTIL{UUID="a"} infinity',
        'DCGM_FI_DEV_GPU_UTIL{UUID="b"}7',
    ]
)


@given(LINES)
def test_every_line_means_what_it_means_to_the_stock_parser(lines: list[str]) -> None:
    for line in filter(None, lines):
        theirs = [
            sample
            for family in text_string_to_metric_families(f"{line}\n")
            for sample in family.samples
            if sample.name in WANTED
        ]
        written = taken_apart(f"{line}\n")
        if written is None:
            assert any(sample.timestamp is not None for sample in theirs)
            continue
        told = zip(written.form.fields, written.labels, written.values, strict=True)
        for (place, labels, value), sample in zip(told, theirs, strict=True):
            assert (place, labels_of(labels[:-1])) == (FIELD_PLACES[sample.name], sample.labels)
            assert same(value, float(sample.value))
            assert sample.timestamp is None


@settings(max_examples=60)
@given(st.lists(st.lists(LINES | st.lists(BROKEN, max_size=3), max_size=3), min_size=1, max_size=3))
def test_a_round_gives_what_one_answer_after_the_other_gives(rounds: list[list[list[str]]]) -> None:
    together = Exporters(STEP_MS)
    singly: dict[str, Gathered] = {}
    for number, texts in enumerate(rounds):
        answers = [
            Answer(f"exporter/{place}", "\n".join(lines), AT_MS + number * STEP_MS)
            for place, lines in enumerate(texts)
        ]
        read = together.samples(answers)
        for answer in answers:
            gathered = singly.setdefault(answer.source, Gathered())
            take_answer(gathered, answer.text, answer.at_ms)
            expected = gathered.samples(STEP_MS)
            of_it = read.frame.filter(pl.col("source") == answer.source).drop("source")
            assert_frame_equal(of_it, expected.frame, check_row_order=False)
            assert read.set_aside.get(answer.source, Counter()) == expected.set_aside


GPU_LABELS = st.fixed_dictionaries(
    {"UUID": st.sampled_from(["a", "b"])},
    optional={
        "Hostname": st.sampled_from(["n1", "n2"]),
        "pod": st.sampled_from(["", "p", 'q"\\']),
        "vgpu": st.sampled_from(["0", "1"]),
        "GPU_I_ID": st.sampled_from(["", "7"]),
    },
)
NUMBERS = st.sampled_from(["0", "1", "0.5", "0.985312", "97", "1e-1", "2147483632"]) | VALUES


@st.composite
def one_exporters_answers(draw: st.DrawFn) -> list[str]:
    """Answers of an exporter one after the other: mostly as the first, but for the numbers, or some lines."""
    labels = draw(st.lists(GPU_LABELS, min_size=1, max_size=4))
    names = draw(st.lists(st.sampled_from([*sorted(WANTED), "other_metric"]), min_size=1, max_size=4))
    written = [",".join(f'{name}="{escaped(value)}"' for name, value in one.items()) for one in labels]
    starts = [f"{name}{{{text}}}" for name in names for text in written]
    texts = []
    for _ in range(draw(st.integers(1, 4))):
        lines = [f"{start} {draw(NUMBERS)}" for start in starts]
        further = draw(st.lists(BROKEN | OTHER_LINES, max_size=1)) if draw(st.booleans()) else []
        place = draw(st.integers(0, len(lines)))
        lost = draw(st.integers(0, 1)) if further else 0
        lines = [*lines[:place], *further, *lines[place + lost :]]
        texts.append("\n".join(["# TYPE x gauge", *lines]) + "\n")
    return texts


@settings(max_examples=30)
@given(st.lists(one_exporters_answers(), min_size=1, max_size=3))
def test_answers_that_differ_in_numbers_give_what_each_gives_by_itself(exporters: list[list[str]]) -> None:
    together = Exporters(STEP_MS)
    for number, texts in enumerate(zip_longest(*exporters)):
        at_ms = AT_MS + number * STEP_MS
        answers = [
            Answer(f"exporter/{place}", text, at_ms) for place, text in enumerate(texts) if text is not None
        ]
        read = together.samples(answers)
        for answer in answers:
            gathered = Gathered()
            take_answer(gathered, answer.text, at_ms)
            expected = gathered.samples(STEP_MS)
            of_it = read.frame.filter(pl.col("source") == answer.source).drop("source")
            assert_frame_equal(of_it, expected.frame, check_row_order=False)
            assert read.set_aside.get(answer.source, Counter()) == expected.set_aside


def test_label_texts_that_nobody_tells_any_more_are_forgotten_within_the_hour() -> None:
    exporters = Exporters(STEP_MS)
    most = 0
    for minute in range(180):
        text = f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-1",Hostname="n1",pod="p{minute}",namespace="t"}} 5\n'
        exporters.samples([Answer("exporter/n1", text, AT_MS + minute * 60_000)])
        most = max(most, len(exporters))
    assert most <= MS_PER_HOUR // 60_000


UTIL = 'DCGM_FI_DEV_GPU_UTIL{UUID="a",Hostname="n"} 4'


@pytest.mark.parametrize(
    ("text", "aside", "told"),
    [
        ("<html><body>Log in</body></html>\n", {NO_METRICS: 1}, "with a page of HTML"),
        ("", {NO_METRICS: 1}, "answered with nothing"),
        ("up 1\n", {NO_METRICS: 1}, "without a metric of activity"),
        ('DCGM_FI_DEV_XID_ERRORS{UUID="a",Hostname="n"} 0\n', {}, "without a metric of activity"),
        (f"{UTIL} {AT_MS + 60_001}\n", {OF_THE_FUTURE: 1}, OF_THE_FUTURE),
        (f"{UTIL} {AT_MS + 60_000}\n", {}, ""),
        (f"{UTIL}\n", {}, ""),
    ],
)
def test_an_answer_without_a_sample_is_a_trouble_that_says_why(
    text: str, aside: dict[str, int], told: str
) -> None:
    found = Exporters(STEP_MS).samples([Answer("exporter/x", text, AT_MS)])
    assert found.set_aside.get("exporter/x", {}) == aside
    assert bool(found.troubles) == bool(told) == found.frame.is_empty()
    assert told in found.troubles.get("exporter/x", "")
    gathered = Gathered()
    take_answer(gathered, text, AT_MS)
    assert gathered.set_aside == aside
