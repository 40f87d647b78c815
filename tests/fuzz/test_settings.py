"""Whatever stands in the settings: they are taken, or refused with what was given, where, and what to do."""

import datetime as dt
import re
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import yaml
from hypothesis import given
from hypothesis import strategies as st

from domain.errors import SettingsError
from service.settings import Settings, plain
from service.settings_file import load_settings
from tests.fuzz.mutations import places, refused_with
from tests.laws import law

# Sections whose lists and mappings are empty by default, filled so that their members can be wrong too.
FILLED: dict[str, Any] = plain(Settings()) | {
    "clusters": [{"name": "north", "context": "c"}],
    "gpu_metrics": [{"cluster": "north", "prometheus": "http://prometheus:9090"}],
}
FILLED["tenancy"] = {"teams": [{"from_label": "team", "namespace": "ml-*"}], "renamed": {"red": "blue"}}
FILLED["policy"]["targets"] = {"interactive": {"wait": "5m"}}
ODD: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([
        None, True, "", "x", "5m", "1 hour", -1, 0, 1.5, 10**30, float("nan"), float("inf"), [], {},
        [None], {"a": 1},
        [[]], {1: 2}, {None: None}, "9" * 5000, "\x00", "\u202e", "2GB", "0GB", "1e400s", "10.0.0.0/8", "/",
        dt.date(2026, 3, 2), dt.datetime(2026, 3, 2, tzinfo=dt.UTC), b"\xff", {"teams": "x"},
        [{"value": "x", "from_label": "y"}], [{"name": ""}], "interactive", "best_effort", "Europe/Nowhere",
    ]),
    st.text(max_size=6),
)  # fmt: skip
SAYS = re.compile(r"expected|unknown key|not YAML|there is no such|cannot be read")


@law(60)
@given(
    changes=st.lists(
        st.tuples(st.integers(0, 10_000), st.sampled_from(["set", "set", "add", "drop"]), ODD),
        min_size=1,
        max_size=3,
    )
)
def test_any_settings_are_taken_or_refused_with_the_key_and_what_was_expected(
    changes: list[tuple[int, str, Any]],
) -> None:
    values: Any = yaml.safe_load(yaml.safe_dump(FILLED))
    touched = set()
    for number, how, value in changes:
        paths = list(places(values))
        *parents, last = paths[number % len(paths)]
        holder = values
        for key in parents:
            holder = holder[key]
        touched.add(str((*parents, last)[0]))
        if how == "drop":
            del holder[last]
        elif how == "add" and isinstance(holder, dict):
            holder[f"{last}x"] = value
            touched.add(f"{(*parents, f'{last}x')[0]}")
        else:
            holder[last] = value
    with TemporaryDirectory() as folder:
        file = Path(folder) / "gpuledger.yaml"
        file.write_text(yaml.safe_dump(values), encoding="utf-8")
        said = ""
        try:
            load_settings(file).authentication()
        except SettingsError as error:
            said = str(error)
    assert not said or SAYS.search(said), said
    assert not said or any(key in said for key in touched), said


@law(60)
@given(data=st.one_of(st.binary(max_size=60),
st.text(max_size=40).map(lambda text: text.encode(errors="replace")),
                      st.sampled_from([b"[" * 900, b"a: &a [*a]", b"!!python/object:os.system x",
                      b"? [a]\n: b",
                                       b"server: {port: !!float x}", b"? {a: 1}\n: 2", b"a: 2026-99-99",
                                       b"a: !!timestamp x"])))  # fmt: skip
def test_any_bytes_are_settings_or_refused_with_the_file(data: bytes) -> None:
    with TemporaryDirectory() as folder:
        file = Path(folder) / "gpuledger.yaml"
        file.write_bytes(data)
        with refused_with(str(file)):
            load_settings(file)


@given(
    name=st.sampled_from(["SERVER__PORT", "CLUSTERS", "POLICY__WINDOW", "SERVER", "X", "_", "",
    "SERVER__PORT__X"]),
    text=st.one_of(st.sampled_from(["", "x", "[", "{", "[1", "{a: [}", "1e999", "[[[]]]", "{1: 2}"]),
    st.text(max_size=6)),
)  # fmt: skip
def test_any_variable_is_taken_or_refused_with_its_name(name: str, text: str) -> None:
    said = ""
    try:
        load_settings(environment={f"GPULEDGER_{name}": text})
    except SettingsError as error:
        said = str(error)
    assert not said or f"GPULEDGER_{name}" in said or "settings" in said
