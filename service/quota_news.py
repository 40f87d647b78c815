"""Whether the evidence of a week's proposals is another one by now: samples and facts may come late."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from service.quota_evidence import Measured

# Column of `quota_week`, what people call it, and the smallest change that matters. Of large numbers, half a
# percent matters.
_TOLD: Final = (
    ("ratio", "ratio", 0.005),
    ("debt_gpu_hours", "GPU-hours owed", 0.5),
    ("gpu_hours", "GPU-hours held", 0.5),
    ("coverage", "coverage", 0.005),
)
_RELATIVE: Final = 0.005


def news(before: Mapping[str, Mapping[str, Any]], now: Mapping[str, Measured]) -> dict[str, str]:
    """
    What has changed since the week was last measured, in words by holder; only what matters.

    Args:
        before: rows of `quota_week` by holder.
        now: what the same week says of each holder of the pool by now.
    """
    told = {name: _of_holder(before.get(name), measured) for name, measured in sorted(now.items())}
    return {name: what for name, what in told.items() if what}


def _of_holder(before: Mapping[str, Any] | None, now: Measured) -> str:
    if before is None:
        return "it was not there"
    numbers = {
        "ratio": None if now.ratio is None else float(now.ratio),
        "debt_gpu_hours": float(now.debt),
        "gpu_hours": float(now.gpu_hours),
        "coverage": float(now.coverage),
    }
    return ", ".join(
        f"{called} {_shown(before[column])} to {_shown(numbers[column])}"
        for column, called, least in _TOLD
        if _differ(before[column], numbers[column], least)
    )


def _differ(before: float | None, now: float | None, least: float) -> bool:
    if before is None or now is None:
        return before is not now
    return abs(now - before) >= max(least, _RELATIVE * max(abs(now), abs(before)))


def _shown(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.3f}".rstrip("0").rstrip(".")


def decided(rows: Iterable[Mapping[str, Any]]) -> bool:
    """Whether a person has decided on one of these proposals: then the others stay what was decided upon."""
    return any(row["state"] not in {"proposed", "superseded", "expired"} for row in rows)
