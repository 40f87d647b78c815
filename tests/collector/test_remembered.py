"""What is made of an object's repeated parts is made once, and anew when one of them changes."""

import msgspec
import pytest

from collector.remembered import Remembered

ONE, TWO = msgspec.Raw(b'{"a":1}'), msgspec.Raw(b'{"a":2}')


class Counted:
    """Joins the parts, and counts how often."""

    def __init__(self) -> None:
        self.times = 0
        self.before: bytes | None = None

    def __call__(self, before: bytes | None, *written: msgspec.Raw) -> bytes:
        self.times += 1
        self.before = before
        return b"".join(map(bytes, written))


def test_parts_that_are_written_as_before_are_not_read_again() -> None:
    counted = Counted()
    remembered = Remembered(counted)
    again = msgspec.Raw(b'{"a":1}')
    assert remembered.of("u", ONE) == remembered.of("u", again) == b'{"a":1}'
    assert counted.times == 1


def test_a_part_that_is_written_differently_is_read() -> None:
    remembered = Remembered(Counted())
    told = [remembered.of("u", part, ONE) for part in (ONE, TWO, ONE)]
    assert told == [b'{"a":1}{"a":1}', b'{"a":2}{"a":1}', b'{"a":1}{"a":1}']


def test_what_was_made_before_is_there_to_build_on() -> None:
    counted = Counted()
    remembered = Remembered(counted)
    told = []
    for part in (ONE, TWO):
        remembered.of("u", part)
        told.append(counted.before)
    assert told == [None, b'{"a":1}']


def test_two_objects_with_one_uid_are_told_apart_by_their_parts() -> None:
    remembered = Remembered(Counted())
    assert [remembered.of(None, part) for part in (ONE, TWO)] == [b'{"a":1}', b'{"a":2}']


def test_an_object_is_kept_while_it_is_asked_for_and_forgotten_after_so_many_others() -> None:
    counted = Counted()
    remembered = Remembered(counted, objects=2)
    for other in ("b", "c", "d", "e", "f"):
        remembered.of("kept", ONE)
        remembered.of(other, ONE)
    assert counted.times == 6  # each of six objects once
    remembered.of("b", ONE)
    assert counted.times == 7


def test_what_could_not_be_read_is_tried_again() -> None:
    decoder = msgspec.json.Decoder(dict[str, int])
    decode = Remembered(lambda _, part: decoder.decode(part))
    for _ in range(2):
        with pytest.raises(msgspec.ValidationError):
            decode.of("u", msgspec.Raw(b"[]"))
    assert decode.of("u", ONE) == {"a": 1}
