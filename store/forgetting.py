"""
Take a person's name out of the store: where it stands as a label's value, and wherever it says who.

Who: the user of a workload, and who moved a proposal. Stages write names of teams, queues and pods only.
"""

import re
from collections.abc import Iterable
from typing import Final

import msgspec

from store import counted, dimensions, held_days
from store.engine import Engine

_BODIES: Final = """
update description set body = replace(body, $said, $instead) where contains(body, $said)
"""
_USERS: Final = "update workload set user_name = $instead where user_name = $name"
_CLUSTERS: Final = "select distinct cluster from dimensions_seen"
_MOVERS: Final = "update proposal_audit set who = $instead where who = $name"
_NAMES: Final = """
select distinct user_name as name from workload
union
select distinct who as name from proposal_audit
"""
# One row per value of a label.
_VALUES: Final = """
select distinct unnest(regexp_extract_all(body, $said, 1)) as value from description
"""
_COUNT: Final = "select count(*)::bigint as rows from description where contains(body, $said)"
# One row per kind of place in which the name stands within something else: nobody can say whose it is.
_ELSEWHERE: Final = """
select 'names of objects' as place, count(*)::bigint as rows
from object_state where contains(name, $name) or contains(namespace, $name)
union all
select 'notes of Events' as place, count(*)::bigint as rows
from event_sighting where contains(note, $name) or contains(regarding_name, $name)
union all
select 'samples of what was set aside' as place, count(*)::bigint as rows
from set_aside where contains(sample, $name)
union all
select 'notes on proposals' as place, count(*)::bigint as rows
from proposal_audit where contains(note, $name)
union all
select 'GPU samples' as place, count(*)::bigint as rows
from gpu_sample where contains(pod, $name) or contains(namespace, $name)
order by place
"""


def said(label: str, value: str) -> str:
    """
    How a label stands in an object, here and in what an API server sends.

    >>> said("user", "dirk")
    '"user":"dirk"'
    """
    return f"{msgspec.json.encode(label).decode()}:{msgspec.json.encode(value).decode()}"


def said_within(label: str, value: str) -> str:
    r"""
    The same in a JSON text that is itself a string: kubectl keeps what it applied in an annotation.

    >>> print(said_within("user", "dirk"))
    \"user\":\"dirk\"
    """
    return msgspec.json.encode(said(label, value)).decode()[1:-1]


def forget(engine: Engine, name: str, instead: str, *, labels: Iterable[str]) -> int:
    """
    Put another word for a name wherever one of these labels has it; gives the descriptions changed.

    Facts stay what they are otherwise: whose waits and GPUs they were can still be added up.
    """
    changed = 0
    with engine.transaction() as connection:
        for label in labels:
            for written in (said, said_within):
                asked = {"said": written(label, name), "instead": written(label, instead)}
                (rows,) = connection.execute(_COUNT, {"said": asked["said"]}).fetchone() or (0,)
                connection.execute(_BODIES, asked)
                changed += rows if written is said else 0
        for statement in (_USERS, _MOVERS):
            connection.execute(statement, {"name": name, "instead": instead})
        for (cluster,) in connection.execute(_CLUSTERS).fetchall():
            dimensions.recount(connection, cluster)
        held_days.drop_all(connection)
        counted.drop_all(connection)
    engine.fold()
    return changed


def names(engine: Engine, labels: Iterable[str]) -> set[str]:
    """Every name that stands where `forget` looks for one."""
    found = {str(row["name"]) for row in engine.rows(_NAMES)}
    for label in labels:
        quoted = re.escape(msgspec.json.encode(label).decode())
        rows = engine.rows(_VALUES, {"said": f'{quoted}:("(?:[^"\\\\]|\\\\.)*")'})
        found |= {msgspec.json.decode(str(row["value"]), type=str) for row in rows}
    return found


def elsewhere(engine: Engine, name: str) -> dict[str, int]:
    """How many rows hold the name within something else, by where."""
    found = engine.rows(_ELSEWHERE, {"name": name})
    return {str(row["place"]): int(str(row["rows"])) for row in found if row["rows"]}
