"""Whatever exporters, a Prometheus, files and tables hold: no crash, and each thing is counted."""

import gzip
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from collector.dcgm.answers import series_in, take_series
from collector.dcgm.exporter import read_file, take_answer
from collector.dcgm.health import of_answer, of_series
from collector.dcgm.parquet import read_parquet
from collector.dcgm.samples import NO_METRICS, WANTED, Gathered, tells_health
from collector.recording import import_recording
from domain.gpu_fault import HEALTH_FIELDS
from tests.fakes import MemorySink
from tests.fuzz.mutations import refused_with
from tests.laws import law

AT_MS = 1_772_442_000_000
NAMES = st.sampled_from(
    [*sorted(WANTED), *sorted(HEALTH_FIELDS), "DCGM_FI_DEV_GPU_TEMP", "up", "", "#", "x y"]
)
LABELS = st.one_of(
    st.sampled_from([
        "", 'UUID="GPU-1",gpu="0",Hostname="n"', 'UUID="GPU-1",GPU_I_ID="9",GPU_I_PROFILE="1g.10gb"',
        'UUID="GPU-1",GPU_I_PROFILE="x"', 'UUID=""', 'UUID="GPU-2",pod="p",namespace="n"',
        'UUID="\\\\"', 'UUID="',
        "UUID", 'UUID="GPU-3",UUID="GPU-4"', 'UUID="GPU-1",GPU_I_PROFILE="99999999999999999999g.5gb"',
        '="x"', "}",
        'UUID="GPU-1",GPU_I_PROFILE="1g.' + "9" * 400 + 'gb"',
    ]),
    st.text(max_size=12),
)  # fmt: skip
VALUES = st.one_of(
    st.sampled_from([
        "0", "97", "0.985312", "1e308", "1e999", "-1", "NaN", "+Inf", "-Inf", "1_0", "x", "", "0x1", "\u0661",
        "140737488355330", "9223372036854775793", "9" * 400, "79",
    ]),
    st.floats().map(repr),
)  # fmt: skip
STAMPS = st.sampled_from(
    ["", "", " 1772442000000", " -5", " 1e3", f" {2**63}", f" {'9' * 5000}", " x", " 1 2"]
)
LINES = st.one_of(st.builds("{}{{{}}} {}{}".format, NAMES, LABELS, VALUES, STAMPS), st.text(max_size=30))


def counted(gathered: Gathered) -> int:
    """What became samples or was set aside; a sample stands for one reading at least."""
    made = gathered.samples(15_000)
    assert made.frame["at_ms"].is_null().sum() == 0
    return len(made.frame) + made.set_aside.total()


@given(lines=st.lists(LINES, max_size=8))
def test_each_line_of_an_exporter_becomes_a_sample_or_is_counted(lines: list[str]) -> None:
    text = "\n".join(lines)
    wanted = sum("{" in line and line[: line.find("{")].strip(" \t") in WANTED for line in text.split("\n"))
    gathered = Gathered(node="n")
    take_answer(gathered, text, AT_MS)
    # An answer of which nothing is a metric of GPUs counts once, as a whole.
    whole = gathered.set_aside.pop(NO_METRICS, 0)
    assert whole == (not wanted and not tells_health(text))
    fields = len(gathered)
    assert fields <= wanted
    assert fields + gathered.set_aside.total() == wanted
    assert (counted(gathered) > 0) == (wanted > 0)
    assert all(reading.at_ms >= 0 or reading.at_ms == -5 for reading in of_answer(text, AT_MS))


@given(head=st.one_of(st.binary(max_size=60), st.sampled_from([
    b'#scrape {"t": 1e300, "status": 200, "bytes": 0}\n', b'#scrape {"t": 1, "status": 200, "bytes": -9}\nx',
    b'#scrape {"t": -1e300, "status": 0}\n',
    b'#scrape {"t": 1, "status": 200, "bytes": 1000000000000000000}\n',
    b'#scrape {"t": 1}\n', b'#scrape {"t": 1, "status": 200, "same": true}\n#scrape', b"#scrape \xff\n",
])), rest=st.binary(max_size=40), packed=st.booleans())  # fmt: skip
def test_any_file_of_scrapes_is_read_or_refused_with_words(head: bytes, rest: bytes, packed: bool) -> None:  # noqa: FBT001
    with TemporaryDirectory() as folder:
        file = Path(folder) / ("n.prom.gz" if packed else "n.prom")
        data = gzip.compress(head) + rest if packed else head + rest
        file.write_bytes(data[:-3] if packed and rest else data)
        with refused_with(str(file)):
            read_file(file, step_ms=None, single_at_ms=AT_MS)


@law(150)
@given(
    result=st.one_of(
        st.recursive(
            st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=5)), st.lists, max_leaves=8
        ),
        st.lists(
            st.fixed_dictionaries(
                {
                    "metric": st.dictionaries(
                        st.sampled_from(["__name__", "UUID", "GPU_I_ID", "GPU_I_PROFILE", "Hostname", "pod"]),
                        st.one_of(NAMES, st.sampled_from(["GPU-1", "1g.10gb", "n"])),
                    )
                },
                optional={
                    "values": st.lists(
                        st.tuples(
                            st.one_of(st.integers(0, 2 * 10**9), st.sampled_from([1e300, -1e300, 1e18, 0.5])),
                            VALUES,
                        ).map(list),
                        max_size=3,
                    ),
                    "histograms": st.just([[1, {}]]),
                },
            ),
            max_size=4,
        ),
    )
)
def test_any_result_of_a_prometheus_is_counted_or_refused_with_words(result: Any) -> None:
    with refused_with("expected the result of a range query"):
        answered = series_in(result)
        gathered = Gathered()
        take_series(gathered, answered)
        kept = [one for one in answered if one.metric.get("__name__", "") not in HEALTH_FIELDS]
        assert (counted(gathered) > 0) >= any(one.values for one in kept)
        list(of_series(answered))


_TEXTS: list[Any] = ["x", "", None, 7, b"\xff", ["x"]]
_AMOUNTS: list[Any] = [0.5, 1, "97", None, float("inf"), float("nan"), [1], 2**62, -1.0]
# The first of each is as it should be.
COLUMNS: Mapping[str, list[Any]] = {
    "at_ms": [AT_MS, "x", None, 2**62, float("nan"), True, -1, "1772442000000"],
    **dict.fromkeys(("node", "uuid", "instance", "profile", "gpu_model", "namespace", "pod"), _TEXTS),
    **dict.fromkeys(("activity", "fb_used_mib", "fb_total_mib"), _AMOUNTS),
    "copies": [0, 2, "x", None, -1, 2**62],
}


@law(60)
@given(
    odd=st.dictionaries(st.sampled_from(sorted(COLUMNS)), st.integers(0, 9), max_size=3),
    missing=st.one_of(st.none(), st.sampled_from(sorted(COLUMNS))),
    broken=st.one_of(st.none(), st.none(), st.integers(1, 60)),
)
def test_any_table_is_read_or_refused_with_words(
    odd: dict[str, int], missing: str | None, broken: int | None
) -> None:
    frame = pl.DataFrame(
        {
            name: [values[odd.get(name, 0) % len(values)]]
            for name, values in COLUMNS.items()
            if name != missing
        }
    )
    with TemporaryDirectory() as folder:
        file = Path(folder) / "samples.parquet"
        frame.write_parquet(file)
        if broken is not None:
            file.write_bytes(file.read_bytes()[broken:])
        with refused_with(str(file)):
            parts = list(read_parquet(file, source="x"))
            assert sum(len(part.samples.frame) for part in parts) == 1


@law(60)
@given(
    listed=st.one_of(st.none(), st.binary(max_size=40), st.sampled_from([
        b'{"apiVersion":"v1","kind":"PodList","metadata":{"resourceVersion":"1"},"items":[{},null,7,{"metadata":{}}]}',
        b'{"apiVersion":"v1","kind":"PodList","items":{}}', b'{"kind":7}', b"{}", b"null",
    ])),
    lines=st.lists(st.one_of(st.binary(max_size=30), st.sampled_from([
        b'{"type":"ADDED","object":{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u"}}}',
        b'{"type":7}', b"{}",
    ])), max_size=4),
    times=st.lists(st.one_of(st.binary(max_size=8), st.just(b"1772442000.5")), max_size=4),
    cut=st.integers(0, 12),
)  # fmt: skip
def test_any_recording_is_read_with_each_thing_counted_or_refused_with_words(
    listed: bytes | None, lines: list[bytes], times: list[bytes], cut: int
) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        if listed is not None:
            (folder / "pods.list.json").write_bytes(listed)
        packed = gzip.compress(b"".join(line + b"\n" for line in lines))
        (folder / "pods.watch.ndjson.gz").write_bytes(packed[: len(packed) - cut])
        (folder / "pods.times").write_bytes(b"\n".join(times))
        sink = MemorySink()
        with refused_with(str(folder)):
            told = import_recording(folder, "c", sink)
            counted = sum(told.set_aside.values())
            assert counted == sum(one.count for one in sink.set_aside)
            assert told.not_read or counted + len(sink.objects) > 0 or told.lines == 0
