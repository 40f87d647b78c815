"""The file of forgotten names: whole after a loss of power, for without it each name would come back."""

import os
from pathlib import Path

import pytest

from service.forgotten import Forgotten


def test_a_forgotten_name_is_on_the_disk_before_and_after_its_file_takes_the_place_of_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []

    def note(handle: int) -> None:
        told.append(Path(f"/proc/self/fd/{handle}").readlink().name)

    monkeypatch.setattr(os, "fsync", note)
    file = tmp_path / "forgotten.json"
    word = Forgotten(file, ("user",)).add("ada")
    assert told == ["forgotten.new", tmp_path.name, "forgotten.json", tmp_path.name]
    again = Forgotten(file, ("user",))
    assert (again.add("ada"), again.instead_of("bob"), len(told)) == (word, None, 4)
    assert "ada" not in file.read_text(encoding="utf-8")
