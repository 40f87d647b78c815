"""A person who is forgotten: closed months stay as they are signed, and no correction comes of a name."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from analytics.chargeback.canonical import decode_lines
from service import unbooked
from service.corrections import note_left
from service.keeping import Keeper
from service.settings import Settings
from service.settings_file import load_settings
from store import statements as kept
from store.embedded import Store
from store.retention import drop_before
from tests.service.closing_world import closed, learn, look, read, site
from tests.service.test_chargeback import hours
from tests.service.test_closing import MONTH, NEXT


def settings_in(folder: Path) -> Settings:
    return load_settings(overrides={"store.data_dir": folder, "tenancy.users": [{"from_label": "user"}]})


@pytest.fixture
def books(tmp_path: Path) -> Iterator[Store]:
    """October is closed; a file, for it is written anew when somebody is forgotten."""
    made = site()
    closed(made, "2026-10", MONTH + 5)
    made.copy_to(settings_in(tmp_path).store_file)
    made.close()
    store = Store.open(settings_in(tmp_path).store_file)
    yield store
    store.close()


def keeper(folder: Path, store: Store) -> Keeper:
    return Keeper(settings_in(folder), store)


def learnt(store: Store) -> list[tuple[str, int]]:
    """Users and GPU-hours of all corrections."""
    return [
        (line.row.user, line.row.micro_gpu_ms // (10**6 * 3_600_000))
        for each in kept.corrections(store)
        for line in decode_lines(each.content)
        if line.row.team != "__idle__"
    ]


def test_a_name_that_is_forgotten_corrects_nothing_and_stays_in_what_is_signed(
    books: Store, tmp_path: Path
) -> None:
    signed = kept.closed_month(books, "2026-10")
    told = keeper(tmp_path, books).forget("rita")
    assert "1 closed months are signed with it and keep it" in told
    assert look(books, MONTH + 30) == []
    assert kept.corrections(books) == []
    assert kept.closed_month(books, "2026-10") == signed
    # What is learnt later of the same person is a difference to what was said of her.
    instead = keeper(tmp_path, books).forgotten.add("rita")
    learn(books, "late", 40, 45, team="red", user_name=instead)
    look(books, MONTH + 31)
    assert learnt(books) == [(instead, 5)]


def test_a_correction_that_is_no_month_yet_has_the_word_and_not_the_name(
    books: Store, tmp_path: Path
) -> None:
    learn(books, "late", 40, 45, team="red", user_name="rita")
    look(books, MONTH + 30)
    assert learnt(books) == [("rita", 5)]
    keeping = keeper(tmp_path, books)
    keeping.forget("rita")
    instead = keeping.forgotten.add("rita")
    assert learnt(books) == [(instead, 5)]
    assert "rita" not in {line.row.user for line in read(books, "2026-11", NEXT + 5).lines}
    look(books, MONTH + 31)
    assert len(kept.corrections(books)) == 1
    # Nor is it told when the month that books it is settled anew.
    closed(books, "2026-11", NEXT + 5)
    look(books, NEXT + 6)
    assert len(kept.corrections(books)) == 1


def test_where_facts_were_dropped_a_name_that_is_forgotten_is_nothing_that_was_learnt(
    books: Store, tmp_path: Path
) -> None:
    drop_before(books, ["north"], hours(100))
    note_left(books)
    learn(books, "late", 200, 202, team="red", user_name="rita")
    keeper(tmp_path, books).forget("rita")
    look(books, MONTH + 30)
    [words] = unbooked.untold(books)
    assert "something was learnt once after" in words
    assert "+2.00 GPU-hours" in words


def test_a_name_of_which_a_backup_has_corrections_only_is_forgotten_in_it_too(
    books: Store, tmp_path: Path
) -> None:
    learn(books, "late", 40, 45, team="red", user_name="rita")
    look(books, MONTH + 30)
    # As retention leaves it.
    with books.transaction() as connection:
        connection.execute("delete from workload where user_name = 'rita'")
    keeping = keeper(tmp_path, books)
    keeping.backup(tmp_path / "older.duckdb")
    keeping.forget("rita")
    assert "1 names that were forgotten since" in keeping.restore(tmp_path / "older.duckdb")
    assert learnt(books) == [(keeping.forgotten.add("rita"), 5)]
