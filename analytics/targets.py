"""What each service class was promised."""

from domain.policy import Policy, Target
from domain.workload import ServiceClass


def target(policy: Policy, service_class: str) -> Target:
    """The promise to a class; work without a known class is held to that of batch."""
    if service_class in {ServiceClass.INTERACTIVE, ServiceClass.BATCH, ServiceClass.BEST_EFFORT}:
        return policy.targets[ServiceClass(service_class)]
    return policy.targets[ServiceClass.BATCH]


def target_ms(policy: Policy, service_class: str) -> int:
    """The promised wait, milliseconds."""
    return round(target(policy, service_class).wait.total_seconds() * 1000)
