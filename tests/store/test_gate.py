"""Readers pass a gate together, and nobody while it is closed."""

from store.gate import Gate


def test_whoever_cannot_wait_is_told_that_the_gate_is_closed_and_is_not_counted() -> None:
    gate = Gate()
    with gate.passing(), gate.passing_at_once() as inside:
        assert inside
    with gate.closed(), gate.passing_at_once() as inside:
        assert not inside
    # Nobody is left inside, so it closes at once.
    with gate.closed():
        pass
