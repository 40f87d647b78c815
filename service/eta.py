"""When a waiting workload will start, as the API tells it."""

from typing import Any, Final

from analytics.eta.calibration import Held
from analytics.eta.estimate import RUNG_WORDS, Estimate
from analytics.eta.replay import ask_of
from analytics.eta.sentence import UNTOLD, told, way
from analytics.eta.sooner import Option, sooner
from analytics.eta.waits import BANDS, FOREVER_MS, band_of
from analytics.why.reason import Explanation, Reason
from api.answers import Record
from domain.policy import Policy
from domain.window import MS_PER_SECOND, format_instant
from domain.workload import WAITING_STATES
from service.eta_sooner import Ways
from service.eta_told import SHOWN_DAYS
from service.eta_waits import Known
from service.why_facts import Known as KnownWorkload
from service.why_search import Search

# Whoever waits for these need not ask otherwise: something has to be done about it first.
_NO_WAY: Final = frozenset({Reason.HELD_BY_OWNER, Reason.GATED, Reason.MISCONFIGURED})


def eta(search: Search, known: KnownWorkload, answer: Explanation | None, policy: Policy) -> Record | None:
    """
    When it starts, or why nobody can tell; None for work that does not wait to start.

    With `sooner`: what would let it start sooner, the best first.
    """
    if answer is None:
        return None
    if known.state not in WAITING_STATES or answer.primary.reason in _NO_WAY:
        because = UNTOLD.get(answer.primary.reason, "it is not waiting for a place")
        return _untold(because) | {"sooner": []}
    waits = search.scene.waits
    told_of = _of(search, known, answer, waits, few_below=policy.few_below)
    now_s = told_of["median_seconds"]
    ways = Ways(search, known, waits, answer).options()
    better = sooner(ways, None if now_s is None else now_s * MS_PER_SECOND)
    return told_of | {"sooner": [_option(one, now_s) for one in better]}


def _of(search: Search, known: KnownWorkload, answer: Explanation, waits: Known, *, few_below: int) -> Record:
    as_of_ms = search.as_of_ms
    because = UNTOLD.get(answer.primary.reason)
    if because is not None:
        return _untold(because)
    place = waits.place.get(str(known.course["uid"]))
    if place is None or waits.waits.until_ms[place] != FOREVER_MS:
        return _untold(_not_learned_from(known))
    calibrated = search.scene.calibrated()
    ask = ask_of(waits.waits, place)
    name, band = waits.classes[ask.service_class], band_of(as_of_ms - ask.submitted_ms)
    found = waits.past.estimate(ask, as_of_ms, calibrated.margins(band, name))
    if not isinstance(found, Estimate):
        return _untold(found.because)
    of_like = calibrated.held.get((band, name, ask.again), Held(0, 0))
    queue = str(known.course["queue"])
    return _told(found, as_of_ms) | {
        "sentence": told(found, queue=queue, held=of_like, days=SHOWN_DAYS, few_below=few_below),
        "calibration": {
            "age_band": BANDS[band],
            "service_class": name,
            "days": SHOWN_DAYS,
            "intervals": of_like.intervals,
            "held_ratio": of_like.ratio,
        },
    }


def _not_learned_from(known: KnownWorkload) -> str:
    """Why it is not among the waits that are looked at."""
    if not known.course["has_reasons"]:
        return "only waits of work that asks GPUs are learned from"
    return "so many wait that only the newest of them are looked at"


def _option(option: Option, now_s: float | None) -> Record:
    found = option.estimate
    gain_ms = option.gain_ms(None if now_s is None else now_s * MS_PER_SECOND)
    return {
        "way": str(option.way),
        "what": option.what,
        "assumes": option.assumes,
        "fits_now": option.fits_now,
        "low_seconds": found and round(found.low_ms / MS_PER_SECOND, 3),
        "median_seconds": found and round(found.median_ms / MS_PER_SECOND, 3),
        "high_seconds": found and round(found.high_ms / MS_PER_SECOND, 3),
        "gain_seconds": None if gain_ms is None else round(gain_ms / MS_PER_SECOND, 3),
        "sentence": way(option),
    }


def _told(found: Estimate, as_of_ms: int) -> dict[str, Any]:
    lengths = {"low": found.low_ms, "median": found.median_ms, "high": found.high_ms}
    return {
        "because": "",
        **{f"{name}_seconds": round(length / MS_PER_SECOND, 3) for name, length in lengths.items()},
        "starts_at": format_instant(as_of_ms + int(found.median_ms)),
        "starts_earliest": format_instant(as_of_ms + int(found.low_ms)),
        "starts_latest": format_instant(as_of_ms + int(found.high_ms)),
        "like_workloads": found.like,
        "like_of": RUNG_WORDS[found.rung],
    }


def _untold(because: str) -> Record:
    return {
        "because": because,
        **dict.fromkeys(("low_seconds", "median_seconds", "high_seconds")),
        **dict.fromkeys(("starts_at", "starts_earliest", "starts_latest")),
        "like_workloads": 0,
        "like_of": "",
        "sentence": f"When it starts cannot be told: {because}.",
        "calibration": None,
    }
