"""How numbers of things are said."""


def count(number: int, singular: str, plural: str = "") -> str:
    """
    A number with its noun.

    >>> count(1, "preemption"), count(1234, "workload"), count(2, "entry", "entries")
    ('1 preemption', '1,234 workloads', '2 entries')
    """
    return f"{number:,} {singular if number == 1 else plural or singular + 's'}"
