"""Why something was set aside, in plain words, and what to do about it."""

from dataclasses import dataclass
from typing import Final

RECORD_AGAIN: Final = "Copy the recording again or record anew; what came after is not lost."
REPORT: Final = "Report it with the sample that the store keeps: the table set_aside."


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """What happened, for a reader who knows no code, and what to do."""

    plainly: str
    remedy: str


# What the machine's words begin with or contain -> what they mean; the first that fits counts.
_CAUSES: Final = (
    (
        ("cut off or broken", "data was truncated", "the document ends", "the last line has no end"),
        Cause(plainly="the data ends in the middle", remedy=RECORD_AGAIN),
    ),
    (
        ("no receive time", "is no epoch time"),
        Cause(
            plainly="nobody noted when these lines came in",
            remedy="Repair the .times file beside the stream, or record anew.",
        ),
    ),
    (
        ("learnt of a closed month",),
        Cause(
            plainly="a closed month would be another one now, and no correction says so",
            remedy="The next close tells by how many GPU-hours; keep facts longer (keeping.retention).",
        ),
    ),
    (
        ("malformed", "utf-8", "not JSON"),
        Cause(plainly="this is not JSON", remedy=RECORD_AGAIN),
    ),
    (
        ("no metadata.uid", "no metadata.name"),
        Cause(
            plainly="objects without a uid or a name: no API server wrote them",
            remedy="Look at what wrote the recording; kubectl's own output has the uid.",
        ),
    ),
    (
        ("a stamp that is none", "a stamp or length that is none"),
        Cause(
            plainly="rows of a file with a time that is none",
            remedy="Look at the row in the sample: each column of times holds ISO 8601 such as"
            " 2026-10-31T22:30:00, or seconds since 1970; without an offset it is read in --zone, or in"
            " time.zone of the mapping. Export it anew and import that.",
        ),
    ),
    (
        ("time stamp", "Invalid RFC3339"),
        Cause(
            plainly="a time stamp that is no time",
            remedy="Look at the controller that wrote the object; it is left out until its next write.",
        ),
    ),
    (
        ("quantity ", "device count", "quota ", "weight "),
        Cause(
            plainly="a quantity that is no number, is negative, or is too large",
            remedy="Correct the object with kubectl edit; it is read again when it changes.",
        ),
    ),
    (
        ("Expected `", "missing required field", "Invalid value", "Invalid enum"),
        Cause(
            plainly="a field has another type than its API says",
            remedy=f"Compare the version of its CRD with those that gpuledger reads. {REPORT}",
        ),
    ),
    (
        ("before the submission",),
        Cause(
            plainly="workloads whose stamps lie before their submission; no list and no figure has them",
            remedy="Compare the clocks of the nodes and the API server, or raise policy.skew_tolerated.",
        ),
    ),
    (
        ("of the future",),
        Cause(
            plainly="stamps that lie ahead of our clock",
            remedy="Compare the clock of what wrote them with ours, and of a file its zone and unit.",
        ),
    ),
    (
        ("no metrics of GPUs",),
        Cause(
            plainly="answers that are no metrics of GPUs",
            remedy="Point gpu_metrics at the /metrics of dcgm-exporter, behind any login page.",
        ),
    ),
    (
        ("see the operator's page",),
        Cause(plainly="not understood", remedy="Ask an operator: the reasons may name work of other teams."),
    ),
    (
        ("other causes",),
        Cause(plainly="rarer causes, together", remedy="The table set_aside of the store has all of them."),
    ),
)
_OTHER: Final = Cause(plainly="not understood", remedy=REPORT)


def explained(because: str) -> Cause:
    """
    The plain words for what the machine said.

    >>> explained("Input data was truncated").plainly, explained("who knows").plainly
    ('the data ends in the middle', 'not understood')
    """
    return next((cause for words, cause in _CAUSES if any(word in because for word in words)), _OTHER)
