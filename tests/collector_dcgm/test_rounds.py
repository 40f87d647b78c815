"""Answers of many exporters by whole columns: the same as the stock parser reads, and as line by line."""

from collections import Counter

import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from prometheus_client.parser import text_string_to_metric_families

from collector.dcgm.exporter import take_answer
from collector.dcgm.rounds import Answer, Exporters, lines_of
from collector.dcgm.samples import FIELD_PLACES, WANTED, Gathered
from domain.window import MS_PER_HOUR
from tests.collector_dcgm.exposition_lines import OTHER_LINES, same, sample_lines

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
    text = "\n".join(lines) + "\n"
    aside = {"s": Counter[str]()}
    ours = sorted(
        lines_of({7: Answer("s", text, AT_MS)}, aside).iter_rows(named=True),
        key=lambda row: (row["field"], row["labels"]),
    )
    theirs = [
        sample
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name in WANTED
    ]
    assert not aside["s"]
    assert len(ours) == len(theirs)
    left = list(theirs)
    for row in ours:
        labels = _labels(row["labels"])
        at_ms = row["at_ms"]
        found = next(
            other
            for other in left
            if FIELD_PLACES[other.name] == row["field"]
            and other.labels == labels
            and same(row["value"], float(other.value))
            and at_ms == (None if other.timestamp is None else round(float(other.timestamp) * 1000))
        )
        left.remove(found)


def _labels(written: str) -> dict[str, str]:
    from collector.dcgm.exposition import labels_of

    return labels_of(written)


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


def test_label_texts_that_nobody_tells_any_more_are_forgotten_within_the_hour() -> None:
    exporters = Exporters(STEP_MS)
    most = 0
    for minute in range(180):
        text = f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-1",Hostname="n1",pod="p{minute}",namespace="t"}} 5\n'
        exporters.samples([Answer("exporter/n1", text, AT_MS + minute * 60_000)])
        most = max(most, len(exporters))
    assert most <= MS_PER_HOUR // 60_000
