"""The house keeps its rules: who imports whom, how long a file is, what things are called."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = (
    "domain",
    "collector",
    "analytics",
    "store",
    "api",
    "dashboard",
    "alerts",
    "enforcer",
    "service",
    "sample_data",
)
LONGEST_FILE = 400
VAGUE_NAMES = {"utils", "util", "helpers", "helper", "manager", "common", "misc", "base", "data2"}
TEXT_SUFFIXES = {".py", ".md", ".sql", ".toml", ".yaml", ".yml", ".json", ".css", ".cfg", ""}


def _files(*folders: str) -> Iterator[Path]:
    for folder in folders:
        for path in (ROOT / folder).rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                yield path


def _modules(*folders: str) -> list[Path]:
    return [path for path in _files(*folders) if path.suffix == ".py"]


def _written() -> Iterator[Path]:
    """Every text of the project: what is at the top, and what lies in its folders."""
    yield from (path for path in ROOT.iterdir() if path.is_file() and path.suffix in TEXT_SUFFIXES)
    for path in _files(*PACKAGES, "tests", "docs", "deploy", "benchmarks", ".ci"):
        if path.suffix in TEXT_SUFFIXES:
            yield path


def test_a_package_imports_only_what_the_contracts_allow() -> None:
    lint = "import sys; from importlinter.cli import lint_imports; sys.exit(lint_imports(no_cache=True))"
    done = subprocess.run([sys.executable, "-c", lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_file_is_longer_than_a_reader_can_hold() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in _written()
        if path.suffix in {".py", ".sql", ".css"}
        and (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST_FILE
    }
    assert long == {}


def test_a_file_is_called_after_what_is_in_it() -> None:
    vague = [
        str(path.relative_to(ROOT))
        for path in _modules(*PACKAGES, "tests")
        if {path.stem, *path.relative_to(ROOT).parts[:-1]} & VAGUE_NAMES
    ]
    assert vague == []


def test_nothing_in_the_dashboard_can_hide_a_package() -> None:
    # streamlit puts the folder of its script first on the import path: a file `alerts.py` there
    # would be imported as `alerts` by all code of the process.
    beside = {path.name for path in (ROOT / "dashboard").iterdir()} - {"__pycache__"}
    assert beside <= {"__init__.py", "app.py", "views", "shared"}


def test_a_wrapper_is_not_called_like_the_library_that_it_wraps() -> None:
    libraries = {"duckdb", "kubernetes", "streamlit", "plotly", "polars", "starlette", "prometheus_client"}
    called_alike = [
        str(path.relative_to(ROOT))
        for path in _modules(*PACKAGES)
        if {path.stem, *path.relative_to(ROOT).parts[:-1]} & libraries
    ]
    assert called_alike == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_module_says_what_it_is(package: str) -> None:
    silent = [
        str(path.relative_to(ROOT))
        for path in _modules(package)
        if ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) is None
    ]
    assert silent == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_folder_of_modules_is_a_package(package: str) -> None:
    # Without `__init__.py` an installed copy would miss the folder.
    bare = {
        str(path.parent.relative_to(ROOT))
        for path in _modules(package)
        if not (path.parent / "__init__.py").exists()
    }
    assert bare == set()


def test_a_metric_has_at_least_one_golden_case() -> None:
    declared = {path.stem for path in (ROOT / "analytics/metrics").glob("*.py")} - {"__init__"}
    cases = ROOT / "tests/golden/metrics"
    with_case = {folder.name for folder in cases.iterdir() if any(folder.glob("*.yaml"))}
    assert declared - with_case == set()
    assert with_case - declared == set(), "a case without its metric"


def test_no_text_names_the_machine_that_it_was_written_on() -> None:
    # Put together here, so that this file does not contain them.
    machine = ["/" + folder + "/" for folder in ("work", "tmp/w", "home")] + [".pyenv" + "/"]
    told = {
        f"{path.relative_to(ROOT)}: {word}"
        for path in _written()
        for word in machine
        if word in path.read_text(encoding="utf-8")
    }
    assert told == set()


def test_no_mark_says_that_something_is_unfinished() -> None:
    marks = re.compile(r"\b(TO" r"DO|FIX" r"ME|Not" r"ImplementedError)\b")
    unfinished = {
        f"{path.relative_to(ROOT)}: {found.group()}"
        for path in _modules(*PACKAGES, "tests", "benchmarks")
        if (found := marks.search(path.read_text(encoding="utf-8")))
    }
    assert unfinished == set()
