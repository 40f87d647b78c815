"""Each translator gives the facts that its golden cases expect, and the same ones twice."""

from pathlib import Path

import pytest
import yaml

from collector.translator import TRANSLATORS
from tests.collector.golden import CASES, FOLDER, facts_of, object_of, read, shown, translator_of


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_a_translator_gives_the_facts_of_its_case(path: Path, golden_rewrite: bool) -> None:  # noqa: FBT001
    case = read(path)
    actual = [shown(fact) for fact in facts_of(case)]
    if golden_rewrite:
        case["expect"] = actual
        path.write_text(yaml.safe_dump(case, sort_keys=False, width=110, allow_unicode=True))
    assert case["expect"] == actual


@pytest.mark.parametrize("path", CASES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_same_object_twice_gives_the_same_facts(path: Path) -> None:
    assert facts_of(read(path)) == facts_of(read(path))


def test_every_kind_has_a_golden_case() -> None:
    covered = {translator_of(object_of(read(path))).kind for path in CASES}
    assert covered == {translator.kind for translator in TRANSLATORS}


def test_a_folder_of_cases_is_named_after_its_kind() -> None:
    for path in CASES:
        assert path.parent.name == translator_of(object_of(read(path))).kind, path.relative_to(FOLDER)
