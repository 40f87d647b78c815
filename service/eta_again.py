"""What is told of when work starts that has been placed before: how long such waits were, and no estimate."""

from datetime import timedelta
from typing import Final

from analytics.eta.sentence import about
from analytics.evaluate import evaluate
from analytics.metrics import REGISTRY
from domain.metric import Ask, Sample
from domain.window import MS_PER_SECOND, Window, minute_before
from service.reading import Reader
from service.why_facts import Known
from service.why_search import Search

_METRIC: Final = REGISTRY["requeue_wait_seconds"]
_DAYS: Final = 28
_BEFORE: Final = "it has been placed before, and how long it waits again is not foretold from first waits"


def again(search: Search, known: Known) -> str:
    """
    Why nobody can tell, with the waits of its class that came after a placement in the last weeks.

    Where such work goes in its queue is a matter of the scheduler's settings, and what is told of first waits
    is held against what came of first waits: nothing says how often an interval would hold. What was seen
    of such waits is told as it was, whatever its age.
    """
    name = str(known.course["service_class"])
    ask = Ask(
        window=Window.before(minute_before(search.as_of_ms), timedelta(days=_DAYS)),
        by=("service_class",),
        filters={"cluster": (search.cluster,), "service_class": (name,)},
    )
    rows = Reader(search.store.kept_rows, search.store.kept_frame).read(_METRIC, ask)
    seen = {
        one.labels["quantile"]: one
        for one in evaluate(_METRIC, rows, ask)
        if one.labels.get("estimator") == "censored" and one.value is not None
    }
    half, most = seen.get("0.5"), seen.get("0.9")
    if half is None or most is None or half.few or half.lower_bound:
        return f"{_BEFORE}; of such waits of its class too few were seen in the last {_DAYS} days"
    return (
        f"{_BEFORE}; of such waits of its class in the last {_DAYS} days half lasted {_up_to(half)}, nine in"
        f" ten {_up_to(most)}"
    )


def _up_to(sample: Sample) -> str:
    """
    A quantile as one says it.

    >>> _up_to(Sample(labels={}, value=600)), _up_to(Sample(labels={}, value=7200, lower_bound=True))
    ('up to 10 min', 'more than 2 h')
    """
    length = about((sample.value or 0) * MS_PER_SECOND)
    if sample.lower_bound:
        return f"more than {length}"
    return length if length.startswith("less") else f"up to {length}"
