"""
How much a queue may hold at most, as its scheduler means what it wrote, or did not write.

Absence means something else in each: a missing Volcano `capability`, a missing YuniKorn `max` and a
missing Kueue `borrowingLimit` are no limit, "0" is none at all; KAI writes no limit as -1.
"""

from collections.abc import Mapping

from domain.objects import FlavorQuota, KaiQueue
from domain.quantity import Quota, QuotaKind


def kueue_ceiling(quota: FlavorQuota) -> Quota:
    """
    What a ClusterQueue may use of a flavor: its nominal quota and what it may borrow.

    A nominal quota that is not written is 0, as in Kueue's API. The cohort bounds it further.
    """
    if quota.borrowing_limit.kind is not QuotaKind.NUMBER or quota.nominal.kind is QuotaKind.UNLIMITED:
        return Quota.unlimited()
    return Quota(QuotaKind.NUMBER, quota.nominal.milli + quota.borrowing_limit.milli)


def capability_ceiling(capability: Mapping[str, Quota], resource: str) -> Quota:
    """
    What a Volcano queue may use of a resource; YuniKorn reads the `max` of its queues alike.

    >>> capability_ceiling({"cpu": Quota.of("100")}, "nvidia.com/gpu").kind.value
    'unlimited'
    """
    written = capability.get(resource, Quota(QuotaKind.NOT_SET))
    return written if written.kind is QuotaKind.NUMBER else Quota.unlimited()


def kai_ceiling(queue: KaiQueue) -> Quota:
    """
    What a queue of KAI may use of GPUs; a limit that is not written is none.

    The queues above it bound it further.
    """
    return queue.limit if queue.limit.kind is QuotaKind.NUMBER else Quota.unlimited()
