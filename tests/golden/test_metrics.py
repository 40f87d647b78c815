"""Each metric's golden cases, run through its own SQL on the store."""

from pathlib import Path

import pytest

from analytics.metrics import REGISTRY
from tests.golden.cases import FOLDER, answer, case_files, read, rewrite


@pytest.mark.parametrize("file", case_files(), ids=lambda file: f"{file.parent.name}/{file.stem}")
def test_a_case_gives_what_it_expects(file: Path, *, golden_rewrite: bool) -> None:
    case = read(file)
    rows = answer(case, file.parent.name)
    if golden_rewrite:
        rewrite(file, rows)
    else:
        assert rows == case["expect"], case["shows"]


@pytest.mark.parametrize("name", sorted(REGISTRY))
def test_a_metric_has_a_case(name: str) -> None:
    assert list((FOLDER / name).glob("*.yaml")), f"{name}: write a case in {FOLDER.name}/{name}/"
