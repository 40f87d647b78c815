"""Answers that are kept between two commits."""

from collections.abc import Sequence

import polars as pl
import pytest

from store.embedded import Store
from store.kept import Kept

COUNT = "select count(*) as clusters from closed_until where until_ms < $before_ms"


def closed(store: Store, cluster: str, until_ms: int) -> None:
    with store.transaction() as connection:
        connection.execute("insert into closed_until values ($1, $2)", [cluster, until_ms])


def test_an_unchanged_store_is_asked_once(store: Store) -> None:
    first = store.kept_rows(COUNT, {"before_ms": 10})
    assert first == [{"clusters": 0}]
    assert store.kept_rows(COUNT, {"before_ms": 10}) is first


def test_other_parameters_are_another_question(store: Store) -> None:
    closed(store, "east", 5)
    assert store.kept_rows(COUNT, {"before_ms": 5}) == [{"clusters": 0}]
    assert store.kept_rows(COUNT, {"before_ms": 6}) == [{"clusters": 1}]


def test_after_a_commit_everything_is_read_anew(store: Store) -> None:
    assert store.kept_rows(COUNT, {"before_ms": 10}) == [{"clusters": 0}]
    closed(store, "east", 5)
    assert store.kept_rows(COUNT, {"before_ms": 10}) == [{"clusters": 1}]


def test_what_is_not_committed_yet_is_not_seen(store: Store) -> None:
    with store.transaction() as connection:
        connection.execute("insert into closed_until values ('east', 5)")
        assert store.kept_rows(COUNT, {"before_ms": 10}) == [{"clusters": 0}]
    assert store.kept_rows(COUNT, {"before_ms": 10}) == [{"clusters": 1}]


def test_an_answer_that_was_read_across_a_commit_is_not_kept() -> None:
    kept: Kept[Sequence[object]] = Kept()

    def read() -> list[object]:
        kept.forget()  # somebody commits meanwhile
        return ["old"]

    assert kept.answer("question", read) == ["old"]
    assert kept.answer("question", lambda: ["new"]) == ["new"]


@pytest.mark.parametrize(("asked_again", "anew"), [("a", "b"), ("", "a")])
def test_the_longest_unused_answer_goes_first(asked_again: str, anew: str) -> None:
    # Each answer of one row counts two: the fifth one is too many.
    kept: Kept[Sequence[object]] = Kept(most_rows=8)

    def known(question: str) -> bool:
        return kept.answer(question, lambda: ["read anew"]) == ["kept"]

    for question in "abcd":
        kept.answer(question, lambda: ["kept"])
    if asked_again:
        assert known(asked_again)
    kept.answer("e", lambda: ["kept"])
    assert not known(anew)


def test_an_answer_that_would_push_out_all_others_is_not_kept() -> None:
    kept: Kept[Sequence[object]] = Kept(most_rows=8)
    kept.answer("small", lambda: ["kept"])
    assert kept.answer("large", lambda: ["kept", "kept"]) == ["kept", "kept"]
    assert kept.answer("large", lambda: ["read anew"]) == ["read anew"]
    assert kept.answer("small", lambda: ["read anew"]) == ["kept"]


def test_what_stands_in_lists_of_an_answer_counts_too() -> None:
    kept: Kept[pl.DataFrame] = Kept(most_rows=40)

    def is_kept(lists: list[list[int] | None]) -> bool:
        kept.answer(len(lists), lambda: pl.DataFrame({"label": "a", "of": lists}))
        return not kept.answer(len(lists), pl.DataFrame).is_empty()

    assert is_kept([[1] * 9])
    assert not is_kept([[1] * 9, [2], None])
