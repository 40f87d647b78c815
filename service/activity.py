"""The stage of activity: GPU samples laid on the stays of pods."""

from dataclasses import dataclass, field

from domain.policy import Policy
from store.embedded import Store

JOB = "activity"


@dataclass(frozen=True, slots=True)
class Activity:
    """Keeps hours of devices and stretches of activity up to date with samples and lives."""

    store: Store
    policy: Policy = field(default_factory=Policy)

    def refresh(self, cluster: str, as_of_ms: int) -> int:  # noqa: ARG002 (samples say when they were)
        """
        Fold the hours that new samples or changed stays touch; gives the workloads with another activity.

        The thresholds are part of the watermark's name: with others, everything is folded again.
        """
        idle_below, resident_above = self.policy.idle_below, self.policy.resident_above
        return self.store.fold_activity(
            cluster,
            job=f"{JOB}/{idle_below}/{resident_above}",
            idle_below=idle_below,
            resident_above=resident_above,
        )
