"""The answer to "why does it wait": its shape, and what of it a viewer of some teams may see."""

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from analytics.eta.sooner import Way
from analytics.folding import OTHERS
from analytics.why.reason import BlockerKind, Reason, Source
from analytics.why.timeline import NOT_EVALUATED

Json: TypeAlias = dict[str, Any]
_UID: Final = re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b")
_PREEMPTOR: Final = re.compile(r"(preemptor path: )[^\s;]+")

# Evidence that tells apart in which queues and classes the foreign work is.
_OF_OTHERS: Final = frozenset({"ahead_in_other_queues", "ahead_by_priority", "ahead_taking"})

_TEXT: Json = {"type": "string"}
_NUMBER: Json = {"type": "number"}
_COUNT: Json = {"type": "integer", "minimum": 0}
_MAYBE_INSTANT: Json = {"type": ["string", "null"], "format": "date-time"}


def folded(document: Json, sees: Callable[[str], bool]) -> Json:
    """
    The answer without the names of foreign work: who holds what it needs is told as one sum of the others.

    Args:
        document: in full.
        sees: whether the viewer may see the work of a team.
    """
    named = [one for one in document["named"] if sees(one["team"])]
    own = {document["uid"], *(one["uid"] for one in named)}
    foreign = [one for one in document["holders"] if not sees(one["team"])]
    more = document["other_holders"]

    def told(text: str) -> str:
        has_foreign = any(uid not in own for uid in _UID.findall(text))
        hidden = _UID.sub(lambda uid: uid.group() if uid.group() in own else OTHERS, text)
        return _PREEMPTOR.sub(rf"\g<1>{OTHERS}", hidden) if has_foreign else hidden

    def of(finding: Json) -> Json:
        return finding | {
            "sentence": told(finding["sentence"]),
            "text": told(finding["text"]),
            "evidence": {
                name: told(value) if isinstance(value, str) else value
                for name, value in finding["evidence"].items()
                if name not in _OF_OTHERS
            },
            "blockers": [
                one
                for one in finding["blockers"]
                if one["kind"] != BlockerKind.WORKLOAD or one["name"] in own
            ],
        }

    return document | {
        "verdict": told(document["verdict"]),
        "primary": of(document["primary"]) if document["primary"] else None,
        "further": [of(one) for one in document["further"]],
        "holders": [one for one in document["holders"] if sees(one["team"])],
        "other_holders": {
            "workloads": more["workloads"] + len(foreign),
            "amount": more["amount"] + sum(one["amount"] for one in foreign),
            "first_ends_at": min(
                (at for at in (more["first_ends_at"], *(one["ends_at"] for one in foreign)) if at),
                default=None,
            ),
        },
        "named": named,
    }


def _object(properties: Json) -> Json:
    return {"type": "object", "properties": properties, "required": list(properties)}


FINDING: Final = _object(
    {
        "reason": {"type": "string", "enum": [str(reason) for reason in Reason]},
        "sentence": _TEXT,
        "since": _MAYBE_INSTANT
        | {"description": "Since when it has held, as far as it was said; else null."},
        "source": {
            "type": "string",
            "enum": [source.name.lower() for source in Source],
            "description": "Who says so, the most trusted first: the object's own state or a machine-readable"
            " reason, the scheduler's message, our search for a placement, our arithmetic of quota, the"
            " order of the queue.",
        },
        "evidence": {"type": "object", "description": "Numbers and names by what they are."},
        "remedy": _TEXT | {"description": "What would unblock it."},
        "text": _TEXT | {"description": "The scheduler's text, verbatim; empty where it said nothing."},
        "blockers": {
            "type": "array",
            "items": _object(
                {
                    "kind": {"type": "string", "enum": [str(kind) for kind in BlockerKind]},
                    "name": _TEXT,
                    "node": _TEXT,
                    "devices": {"type": ["integer", "null"], "minimum": 0},
                }
            ),
        },
    }
)
_HOLDER: Final = _object(
    {
        **dict.fromkeys(("uid", "namespace", "name", "team", "user"), _TEXT),
        "amount": _NUMBER,
        "nodes": {"type": "array", "items": _TEXT},
        "since": {"type": "string", "format": "date-time"},
        "ends_at": _MAYBE_INSTANT
        | {"description": "When it may be expected to end: the median; null where nobody can tell."},
        "ends_earliest": _MAYBE_INSTANT,
        "ends_latest": _MAYBE_INSTANT
        | {"description": "With the earliest an 80 % interval; its limit where it has one before that."},
        "ends_by": {"type": "string", "enum": ["", "limit", "like_runs"]},
        "ends_because": _TEXT | {"description": "What that rests on, in words."},
    }
)
_STRETCH: Final = _object(
    {
        "reason": {"type": "string", "enum": [*(str(reason) for reason in Reason), NOT_EVALUATED]},
        "blocker": _TEXT | {"description": "What stood in the way, where that is no workload or node."},
        "source": _TEXT | {"description": "As of a finding; `state` where its state tells; else empty."},
        "waits": {"type": "boolean", "description": "Whether the time counts as waiting."},
        "start_at": {"type": "string", "format": "date-time"},
        "end_at": {"type": "string", "format": "date-time"},
    }
)


_MAYBE_NUMBER: Json = {"type": ["number", "null"]}
_PRIORITY: Final = _object(
    {
        "class": _TEXT,
        "class_value": _NUMBER,
        "ageing_bonus": _NUMBER | {"description": "What the policy adds for its age; Kueue adds nothing."},
        "value": _NUMBER,
        "next_class": _TEXT,
        "next_value": _MAYBE_NUMBER,
        "outranks_at": _MAYBE_INSTANT
        | {"description": "When its age lifts it above a fresh workload of the next class; null for never."},
        "submitted_at": {"type": "string", "format": "date-time"},
        "quota_used_ratio": _MAYBE_NUMBER,
    }
) | {
    "type": ["object", "null"],
    "description": "What its priority is made of; null for work that waits for nothing, or has no class.",
}


ETA: Final = _object(
    {
        "because": _TEXT | {"description": "Why nothing can be told; empty where something is."},
        **dict.fromkeys(("low_seconds", "median_seconds", "high_seconds"), _MAYBE_NUMBER),
        **dict.fromkeys(("starts_at", "starts_earliest", "starts_latest"), _MAYBE_INSTANT),
        "like_workloads": _COUNT | {"description": "How many like waits it rests on first of all."},
        "like_of": _TEXT | {"description": "What they have in common."},
        "sentence": _TEXT | {"description": "All of it in a sentence."},
        "sooner": {
            "type": "array",
            "description": "What would let it start sooner, the best first; only what is clearly better.",
            "items": _object(
                {
                    "way": {"type": "string", "enum": [str(way) for way in Way]},
                    **dict.fromkeys(("what", "assumes", "sentence"), _TEXT),
                    "fits_now": {"type": ["boolean", "null"]}
                    | {"description": "Whether there are room and quota for it now; null: not tried."},
                    **dict.fromkeys(
                        ("low_seconds", "median_seconds", "high_seconds", "gain_seconds"), _MAYBE_NUMBER
                    ),
                }
            ),
        },
        "calibration": _object(
            {
                "age_band": _TEXT,
                "service_class": _TEXT,
                "days": _COUNT,
                "intervals": _COUNT,
                "held_ratio": _MAYBE_NUMBER,
            }
        )
        | {
            "type": ["object", "null"],
            "description": "Of so many intervals that were told of the same class and age, and whose outcome"
            " became known in these days, the share that held it: 0.8 is meant.",
        },
    }
) | {
    "type": ["object", "null"],
    "description": "When it starts: the median of what is left of its wait, and an 80 % interval, low to"
    " high; null for work that waits for nothing.",
}


def schema(position: Json) -> Json:
    """The shape of the whole answer; `position` is that of a place in a queue."""
    finding = {"$ref": "#/components/schemas/WaitFinding"}
    return _object(
        {
            "as_of": {"type": "string", "format": "date-time"},
            **dict.fromkeys(("cluster", "uid", "kind", "namespace", "name", "team", "user", "queue"), _TEXT),
            "service_class": _TEXT,
            "state": _TEXT,
            "requested_gpus": {"type": ["number", "null"]},
            "waits": {"type": "boolean"},
            "in_state_since": {"type": "string", "format": "date-time"},
            "in_state_seconds": _NUMBER,
            "verdict": _TEXT | {"description": "The answer in a sentence."},
            "primary": FINDING
            | {
                "type": ["object", "null"],
                "description": "The reason; null for work that waits for nothing.",
            },
            "further": {"type": "array", "items": finding}
            | {"description": "All further reasons that are true, in the order of precedence."},
            "holds": {
                "type": "string",
                "enum": ["", "quota", "devices"],
                "description": "What the holders hold of what it needs.",
            },
            "holders": {"type": "array", "items": _HOLDER}
            | {"description": "Who holds it, of those that the viewer may see; the largest first."},
            "other_holders": _object(
                {"workloads": _COUNT, "amount": _NUMBER, "first_ends_at": _MAYBE_INSTANT}
            )
            | {
                "description": "How many more there are, how much they hold together, and when the first of"
                " them may be expected to end."
            },
            "named": {"type": "array", "items": _object({"uid": _TEXT, "team": _TEXT})}
            | {"description": "Workloads that the answer names, with their teams."},
            "eta": ETA,
            "queue_position": position,
            "priority": _PRIORITY,
            "timeline": {"type": "array", "items": _STRETCH}
            | {
                "description": "Its primary reasons so far, in order, without a hole but for the time in"
                " which it ran. NOT_EVALUATED: nobody looked then."
            },
            "hours_by_reason": {
                "type": "array",
                "items": _object({"reason": _TEXT, "hours": _NUMBER}),
                "description": "What it has waited for so far, the longest first.",
            },
        }
    )
