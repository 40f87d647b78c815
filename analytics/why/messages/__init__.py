"""What schedulers and controllers say of something that waits, read into findings."""

from analytics.why.messages import gangs, kueue, nodes, others
from analytics.why.reason import Finding, Reason, Source

# A text of another program never has the form that one of these looks for, so the order does not matter
# but for what quotes another: a gang's text quotes that of a pod.
_READERS = (others.read, gangs.read, kueue.read, nodes.read)
_COMBINED = "(combined from similar events): "


def read(text: str, *, reason: str = "") -> tuple[Finding, ...]:
    """
    All that one message tells, in the order of precedence; UNKNOWN with the text where no grammar fits.

    Args:
        text: the message of a condition, or the note of an Event, as it was written.
        reason: the machine-readable reason beside it; empty without one. It wins over the text.

    >>> [each.reason.value for each in read("0/8 nodes are available: 8 Insufficient nvidia.com/gpu.")]
    ['GPU_SHORTAGE']
    """
    said = text.removeprefix(_COMBINED).strip()
    found: list[Finding] = []
    for reader in _READERS:
        found = reader(said)
        if found:
            break
    found = kueue.by_reason(reason, text, found)
    if not found:
        found = [Finding(reason=Reason.UNKNOWN, source=Source.MESSAGE)]
    told = [
        Finding(
            reason=each.reason,
            source=each.source,
            evidence=each.evidence,
            remedy=each.remedy,
            text=text,
            blockers=each.blockers,
            is_coarse=each.is_coarse,
        )
        for each in found
    ]
    return tuple(sorted(told, key=lambda one: one.reason.rank))
