"""Quotas and weights, which ClusterQueues and Cohorts write in the same way."""

from collector.raw import Part
from collector.wording import quota, weight_milli
from domain.objects import FlavorQuota


class ResourceQuota(Part):
    name: str | None = None
    nominal_quota: str | int | float | None = None
    borrowing_limit: str | int | float | None = None
    lending_limit: str | int | float | None = None


class Flavor(Part):
    name: str | None = None
    resources: list[ResourceQuota] | None = None


class ResourceGroup(Part):
    flavors: list[Flavor] | None = None


class FairSharing(Part):
    weight: str | int | float | None = None


def flavor_quotas(groups: list[ResourceGroup] | None) -> tuple[FlavorQuota, ...]:
    """One row per flavor and resource, in the order in which flavors are tried."""
    return tuple(
        FlavorQuota(
            flavor=flavor.name or "",
            resource=resource.name or "",
            nominal=quota(resource.nominal_quota),
            borrowing_limit=quota(resource.borrowing_limit),
            lending_limit=quota(resource.lending_limit),
        )
        for group in groups or ()
        for flavor in group.flavors or ()
        for resource in flavor.resources or ()
    )


def fair_weight_milli(written: FairSharing | None) -> int:
    """The fair-sharing weight times 1000; missing is 1000."""
    return weight_milli(written.weight if written else None)
