"""An alert in a list: its shape, and which of them a viewer of some teams may see."""

from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias

from domain.alert import Severity
from domain.metric import LABELS, Tells
from domain.view import View

Json: TypeAlias = dict[str, Any]

STATES: Final = ("firing", "pending", "resolved")
NEVER_EVALUATED: Final = (
    "no alert was evaluated yet: a running `gpuledger serve` does so at each of its measurements"
)

BEFORE_THE_LAST: Final = (
    "of an instant before the last evaluation only what fired is kept: what was pending then, and whether"
    " alerts were evaluated at all, is not known"
)
OF_EVALUATION: Final = frozenset({NEVER_EVALUATED, BEFORE_THE_LAST})

_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": ["number", "null"]}
_INSTANT: Json = {"type": "string", "format": "date-time"}
_MAYBE_INSTANT: Json = {"type": ["string", "null"], "format": "date-time"}

_PROPERTIES: Final[Json] = {
    "alert": _TEXT,
    "state": {"type": "string", "enum": list(STATES)},
    "severity": {"type": "string", "enum": [*map(str, Severity)]},
    "about": _TEXT | {"description": "work, or ledger: it is about gpuledger itself."},
    "labels": {"type": "object", "additionalProperties": _TEXT}
    | {"description": "What tells it from others of its name."},
    "metric": _TEXT | {"description": "Whose value it is about; empty of the ledger itself."},
    "unit": _TEXT,
    "value": _NUMBER
    | {"description": "The last one beyond the threshold; of a resolved one that at which it fired."},
    "worst_value": _NUMBER | {"description": "The one farthest beyond the threshold while it fired."},
    "threshold": _NUMBER,
    "coverage": _NUMBER
    | {"description": "The share of what it rests on that was observed when it began to fire."},
    "active_at": _INSTANT | {"description": "Since when the value is beyond the threshold."},
    "fired_at": _MAYBE_INSTANT,
    "resolved_at": _MAYBE_INSTANT,
    "value_at": _MAYBE_INSTANT | {"description": "When a value was heard last."},
    "fine_since": _MAYBE_INSTANT
    | {"description": "It fires on though no value breached since; null while one does."},
    "because": _TEXT | {"description": "Why no value is known now, or why it resolved without one."},
    "inhibited_by": _TEXT
    | {
        "description": (
            "Which alerts fire for the same and say it louder: by the example of Alertmanager's configuration"
            " only those are told. Empty where it is told itself."
        )
    },
    **dict.fromkeys(("summary", "description", "dashboard_url", "runbook_url"), _TEXT),
}
SCHEMA: Final[Json] = {"type": "object", "properties": _PROPERTIES, "required": list(_PROPERTIES)}


def may_hear(labels: Mapping[str, str], view: View, sees: Callable[[str], bool]) -> bool:
    """
    Whether each label of an alert is known to tell of nobody, of an own team, or of what is shared.

    Args:
        labels: what tells it from others of its name.
        sees: whether the viewer may see the work of a team.
    """
    return all(
        LABELS.get(name) in {Tells.NOTHING, Tells.WORK}
        or (name == "team" and sees(value))
        or view.shares(name, labels.get("cluster"), value)
        for name, value in labels.items()
    )
