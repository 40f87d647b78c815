"""No key of a trace's reference is forgotten: each is compared, or it is said why it is not."""

from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from analytics.metrics import REGISTRY
from tests.traces.keys import ABOUT, KEYS, Left, Made
from tests.traces.taking_in import reference, tell, trace

pytestmark = pytest.mark.recordings

HERE = Path(__file__).parent
# What is asked to be equal, key by key, with what metrics say.
WHOLE = {
    "metacentrum-wagap-2013": ("wait_*",),
    "alibaba-dlrm-2025": ("wait_*",),
    "philly-2017": ("gpu_hours_by_*",),
    "helios-earth-2020-05": ("by_vc/*_queue_depth", "by_vc/*idle*", "longest_nonempty_queue_minutes/*"),
    "alibaba-genai-2026": ("all/*", "by_pod/*"),
}


def keys(told: object, above: str = "") -> Iterator[str]:
    if not isinstance(told, dict):
        yield above
        return
    for name, value in told.items():
        yield from keys(value, f"{above}/{name}" if above else name)


@pytest.mark.parametrize("folder", sorted(KEYS))
def test_every_key_of_a_reference_is_compared_or_it_is_said_why_not(folder: str) -> None:
    counted: Counter[str] = Counter()
    for key in keys(reference(folder)):
        if any(fnmatchcase(key, pattern) for pattern in ABOUT):
            continue
        fitting = [pattern for pattern in KEYS[folder] if fnmatchcase(key, pattern)]
        assert len(fitting) == 1, (key, fitting)
        counted[fitting[0]] += 1
        if any(fnmatchcase(key, pattern) for pattern in WHOLE.get(folder, ())):
            assert isinstance(KEYS[folder][fitting[0]], Made), key
    assert counted.keys() == KEYS[folder].keys()
    for pattern, told in KEYS[folder].items():
        if isinstance(told, Left):
            assert told.because
            tell(f"{folder}: {counted[pattern]} of {pattern} left out: {told.because}")
            continue
        file, name = told.test.split("::")
        assert f"def {name}(" in (HERE / file).read_text()
        if isinstance(told, Made):
            assert REGISTRY.keys() >= {*told.metrics}
            tell(f"{folder}: {counted[pattern]} of {pattern} equal to {', '.join(told.metrics)}")
        else:
            tell(f"{folder}: {counted[pattern]} of {pattern} equal to what is stored: {told.because}")


def test_every_trace_with_a_reference_is_there() -> None:
    found = {file.parent.name for file in trace("").glob("*/reference.json")}
    assert found == KEYS.keys()
