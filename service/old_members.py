"""Which objects were of which workload when it was cut last."""

from collections.abc import Collection
from collections.abc import Set as AbstractSet
from typing import Final

from store.embedded import Store
from store.open_until import FOREVER

# One row per object of the workloads that hold one of these objects, or are one of them, among those that
# still counted at $since_ms.
_MEMBERS: Final = """
with held as (
    select workload_uid, open_until_ms
    from member
    where cluster = $cluster and open_until_ms >= $since_ms and object_uid = any($uids::varchar[])
    union
    select workload_uid, open_until_ms
    from member
    where cluster = $cluster and open_until_ms >= $since_ms and workload_uid = any($uids::varchar[])
)

select member.workload_uid, member.object_uid
from member
inner join held
    on member.workload_uid = held.workload_uid and member.open_until_ms = held.open_until_ms
where member.cluster = $cluster and member.open_until_ms >= $since_ms
"""


def old_members(
    store: Store, cluster: str, uids: AbstractSet[str], *, new: Collection[str]
) -> set[tuple[str, str]]:
    """
    Workload and object, for all objects of the workloads that held one of these when they were cut.

    What has news mostly belongs to a workload that goes on, of which the rows lie together. The others are
    only looked through for an object that is of none of these.

    Args:
        store: whose last cuts.
        cluster: of the objects.
        uids: objects, or workloads.
        new: those among them of which nothing was known before, so that no workload has held them.
    """
    found = _held(store, cluster, uids - set(new), since_ms=FOREVER)
    of_none = uids - set(new) - {uid for pair in found for uid in pair}
    return found | _held(store, cluster, of_none, since_ms=0)


def _held(store: Store, cluster: str, uids: AbstractSet[str], *, since_ms: int) -> set[tuple[str, str]]:
    if not uids:
        return set()
    asked = {"cluster": cluster, "uids": sorted(uids), "since_ms": since_ms}
    return {(str(row["workload_uid"]), str(row["object_uid"])) for row in store.rows(_MEMBERS, asked)}
