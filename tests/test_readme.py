"""What the README promises is what the project does."""

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from service.cli import app, run
from service.settings_file import load_settings

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_first_two_commands_are_the_demo_and_the_tests() -> None:
    demo, tests = _blocks("sh")[:2]
    assert demo.strip().endswith(".venv/bin/gpuledger demo")
    assert tests.strip().endswith(".venv/bin/python -m pytest -n 2")
    assert all(len(block.strip().splitlines()) == 1 for block in (demo, tests))


@pytest.mark.parametrize("example", range(len(_blocks("yaml"))))
def test_an_example_of_settings_is_accepted(example: int, tmp_path: Path) -> None:
    file = tmp_path / "gpuledger.yaml"
    file.write_text(_blocks("yaml")[example], encoding="utf-8")
    assert load_settings(file) != load_settings(), "the example sets nothing"


def _recipe(target: str) -> str:
    # Under `make check` this make would inherit the outer one's PYTHON.
    env = {name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))}
    command = ["make", "--no-print-directory", "-n", target, "PYTHON=.venv/bin/python"]
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=True)
    return done.stdout


def test_check_runs_the_readmes_test_command() -> None:
    command = _blocks("sh")[1].strip().rsplit(" && ", maxsplit=1)[-1]
    assert command in _recipe("check").splitlines()


def test_ci_runs_check_after_the_same_install() -> None:
    ci = (ROOT / ".ci/run").read_text(encoding="utf-8")
    assert "make check PYTHON=" in ci
    install = re.search(r"pip install (-e '\.\[dev\]')", _blocks("sh")[1])
    assert install is not None
    assert install.group(1) in ci


def _commands() -> list[str]:
    lines = [line.removeprefix("$ ") for block in _blocks("(?:sh|console)") for line in block.splitlines()]
    return [line for line in lines if re.match(r"(\.venv/bin/)?gpuledger |make ", line)]


@pytest.mark.parametrize("line", sorted(set(_commands())))
def test_a_command_of_the_readme_exists(line: str) -> None:
    program, name, *_ = shlex.split(line, comments=True)
    if program == "make":
        assert _recipe(name)
    else:
        assert name.startswith("-") or name in getattr(get_command(app), "commands", {})


def test_the_examples_print_what_the_readme_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    examples = re.split(r"^\$ gpuledger ", "".join(_blocks("console")), flags=re.MULTILINE)[1:]
    assert examples[0].startswith("import k8s sample_data/small")
    for example in examples:
        command, *shown = [line.rstrip() for line in example.strip().splitlines()]
        if command.startswith("rules "):
            continue
        assert run([*shlex.split(command), "--data-dir", str(tmp_path)]) == 0, command
        printed = capsys.readouterr()
        said = [_timeless(line.rstrip()) for line in (printed.out + printed.err).splitlines()]
        missing = [line for line in map(_timeless, shown) if line != "..." and line not in said]
        assert missing == [], command


def _timeless(line: str) -> str:
    return re.sub(r"read in [0-9.]+ s", "read in T", line)
