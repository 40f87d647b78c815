"""The shapes of all answers, as JSON Schema."""

from typing import Any, TypeAlias

from analytics.chargeback.quota_lines import NOTE_COSTS, NOTES
from analytics.chargeback.statement import COSTS, DIMENSIONS, Billing
from analytics.denials import Denier
from analytics.quota.movements import Kind as ProposalKind
from analytics.quota.proposal import ProposalState
from analytics.wastage.causes import Cause
from api import alerts, why
from api.answers import SourceState
from domain.gpu_fault import FaultKind
from domain.workload import Outcome, ServiceClass, State

Schema: TypeAlias = dict[str, Any]

TEXT: Schema = {"type": "string"}
INSTANT: Schema = {"type": "string", "format": "date-time"}
_MAYBE_INSTANT: Schema = {"type": ["string", "null"], "format": "date-time"}
_NUMBER: Schema = {"type": ["number", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_MAYBE_COUNT: Schema = {"type": ["integer", "null"], "minimum": 0}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_FLAG: Schema = {"type": "boolean"}


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    return {"type": "object", "properties": required | (optional or {}), "required": list(required)}


def list_of(item: Schema) -> Schema:
    """An array of such."""
    return {"type": "array", "items": item}


def _one_of(enum: type) -> Schema:
    return {"type": "string", "enum": [str(member) for member in enum]}  # type: ignore[attr-defined]


_COVERAGE: Schema = {
    "type": ["number", "null"],
    "minimum": 0,
    "maximum": 1,
    "description": "The share of the window that was observed; without a window that of the sources read"
    " in time. Null where no source is known.",
}
_HINTS: Schema = list_of(TEXT) | {
    "description": "A sentence for each name in the filters that nobody bears, for example a misspelt team,"
    " and for each kind that the figures are made of and that may not be read."
}


def _page(item: str) -> Schema:
    return _object(
        {
            "as_of": _MAYBE_INSTANT,
            "total": _COUNT,
            "page": _COUNT,
            "page_size": _COUNT,
            "hints": _HINTS,
            "rows": list_of({"$ref": f"#/components/schemas/{item}"}),
        }
    )


def _bounds(*names: str) -> Schema:
    return {f"{name}_{side}": INSTANT for name in names for side in ("earliest", "latest")}


_PLACE: Schema = {
    "ahead": _MAYBE_COUNT,
    "ahead_in_local_queue": _MAYBE_COUNT,
    "told_at": _MAYBE_INSTANT,
    "age_seconds": _NUMBER,
    "because": TEXT,
    "ahead_by_our_order": _COUNT,
}
_QUEUE_POSITION = _object(_PLACE) | {
    "type": ["object", "null"],
    "description": "How many wait before it: by Kueue's own order, as it was told last, and by ours "
    "(priority, then submission). Null: it does not wait in a queue for quota.",
}
_VALUE: Schema = {"value": _NUMBER, "lower_bound": _FLAG, "few": _FLAG, "undefined_because": _MAYBE_TEXT}
_SAMPLE = _object({"labels": {"type": "object", "additionalProperties": TEXT}} | _VALUE)
_FIGURE = _object(_VALUE)
_WORKLOAD: Schema = {
    **dict.fromkeys(("uid", "cluster", "kind", "namespace", "name", "team", "user", "queue"), TEXT),
    **dict.fromkeys(("priority_class", "gpu_model"), TEXT),
    "service_class": _one_of(ServiceClass),
    "state": _one_of(State),
    "reason": TEXT,
    "requested_gpus": _NUMBER,
    "submitted_at": INSTANT,
    **dict.fromkeys(("first_placed_at", "first_running_at", "ended_at"), _MAYBE_INSTANT),
    "outcome": _one_of(Outcome),
    **dict.fromkeys(("queue_wait_seconds", "time_to_running_seconds", "requeue_wait_seconds"), _NUMBER),
    "waiting_seconds": _NUMBER,
    **dict.fromkeys(("preemptions", "evictions", "missed_evictions"), _COUNT),
    "gpu_seconds": _NUMBER,
    "wasted_gpu_hours": {
        **_NUMBER,
        "description": "GPU-hours that its holder could have spared, from its submission until as_of; null"
        " where it held no GPU, or its time is not accounted yet.",
    },
    "wasted_lower_bound": {**_FLAG, "description": "It wasted at least that: some activity is unknown."},
}
_CAUSED_TIME = _object(
    {
        "cause": _one_of(Cause),
        "gpu_hours": _NUMBER,
        "charged_gpu_hours": _NUMBER,
        "lower_bound": {**_FLAG, "description": "It held at least that: a share of a GPU is unknown."},
    }
) | {"description": "GPU-hours that it held for a cause until as_of, and what its holder wasted of them."}
_POD = _object(
    {
        **dict.fromkeys(("uid", "name", "node", "gpu_model"), TEXT),
        "gpus": _NUMBER,
        "bound_at": INSTANT,
        "started_at": _MAYBE_INSTANT,
        "released_at": _MAYBE_INSTANT,
        "restarts": _COUNT,
        "gpu_seconds": _NUMBER,
    },
    _bounds("bound_at", "released_at"),
)
_ATTEMPT = _object(
    {
        "number": _COUNT,
        "start_at": INSTANT,
        "end_at": _MAYBE_INSTANT,
        "outcome": _one_of(Outcome),
        "reason": TEXT,
        **dict.fromkeys(("preempted_by", "preempted_by_name", "preempted_by_workload"), TEXT),
        "source": TEXT,
        "pods": list_of(_POD),
    }
)
_SPAN = _object(
    {"state": _one_of(State), "start_at": INSTANT, "end_at": _MAYBE_INSTANT, "reason": TEXT},
    _bounds("start_at"),
)
_MEMBER_WAIT = _object({"pod_uid": TEXT, "start_at": INSTANT, "end_at": _MAYBE_INSTANT, "gpus": _NUMBER}) | {
    "description": "A wait of one pod, lost or further, while the rest of the workload holds GPUs; "
    "it is part of no wait of the workload."
}
_GPU_FAULT: Schema = {
    **dict.fromkeys(("cluster", "node", "device", "gpu_model", "words"), TEXT),
    "kind": _one_of(FaultKind),
    "xid": _COUNT,
    "at": INSTANT,
    "at_earliest": _MAYBE_INSTANT | {"description": "Null: it was so before anybody looked."},
    **dict.fromkeys(("pod_uid", "workload_uid", "workload", "namespace", "team"), TEXT),
}
_DENIAL = _object(
    {
        "denied_by": _one_of(Denier),
        **dict.fromkeys(("rule", "text", "requested", "used", "limited"), TEXT),
        "count": _COUNT,
        **dict.fromkeys(("first_at", "last_at"), INSTANT),
    }
) | {"description": "Who refused pods of the workload, so that it waits without them."}
_CHECKPOINT = _object({"at": INSTANT, "step": _NUMBER, "detail": TEXT, "told_by": TEXT}) | {
    "description": "A checkpoint that the workload told of, the newest first."
}
_AMOUNT: Schema = {
    "type": ["string", "null"],
    "description": "A decimal number in the statement's currency; null where there are no prices.",
}
_PROPOSAL: Schema = {
    **dict.fromkeys(("id", "cluster", "pool", "holder", "week", "because"), TEXT),
    "teams": list_of(TEXT),
    "kind": _one_of(ProposalKind),
    "state": _one_of(ProposalState),
    **dict.fromkeys(("before_gpus", "after_gpus", "from_free_gpus"), _COUNT),
    "live_gpus": {"type": ["integer", "null"], "description": "What the object says now."},
    **dict.fromkeys(("made_at", "expires_at"), INSTANT),
    **dict.fromkeys(("week_start_at", "week_end_at"), INSTANT),
    "evidence": {"type": "object", "additionalProperties": _NUMBER}
    | {"description": "Of the week; the debt is what was owed when it ended."},
    "funding": list_of(_object({"proposal": TEXT, "gpus": _COUNT})),
    "object": _object(dict.fromkeys(("kind", "namespace", "name"), TEXT)),
    "used_gpus": _NUMBER,
    "waits_until_free": {"type": ["boolean", "null"]}
    | {"description": "More is used now than a cut leaves: it is applied only when that is over."},
    "exposed": list_of(
        _object(
            {
                **dict.fromkeys(("uid", "namespace", "name", "team"), TEXT),
                "gpus": _COUNT,
                "priority": {"type": "integer"},
            }
        )
    ),
}
_PATCH: Schema = {
    "type": ["array", "null"],
    "items": {"type": "object"},
    "description": "JSON Patch (RFC 6902); null where none can be made, with the reason.",
}
_STATEMENT_FIGURES: Schema = {
    **{
        f"{name}gpu_hours": _NUMBER
        for name in ("", "held_", "not_useful_", *(f"{cause}_" for cause in Cause), "unattributed_")
    },
    "causes_lower_bound": {**_FLAG, "description": "Useful and not useful are at least that."},
    "correction_gpu_hours": _NUMBER | {"description": "Learnt of closed months; in the other figures too."},
    "loss_adjustment_gpu_hours": _NUMBER
    | {"description": "Booked as useful on an earlier day, and not any more: already taken off useful."},
    **dict.fromkeys(COSTS, _AMOUNT),
    **{f"{name}_gpu_hours": _NUMBER | {"description": "Of quota; null without one."} for name in NOTES},
    **dict.fromkeys(
        NOTE_COSTS,
        _AMOUNT | {"description": "Worth at the pool's average effective price; in no sum of costs."},
    ),
}
CHECK = _object(
    dict.fromkeys(("name", "left", "right", "words"), TEXT)
    | dict.fromkeys(("holds", "may_be_forced", "forced"), _FLAG)
)
CLOSED_MONTH = _object({**dict.fromkeys(("sha256", "closed_by", "reason"), TEXT), "closed_at": INSTANT})

SCHEMAS: Schema = {
    "Problem": _object(
        {"type": TEXT, "title": TEXT, "status": {"type": "integer"}, "detail": TEXT, "instance": TEXT}
    ),
    "Metric": _object(
        {
            **dict.fromkeys(("name", "unit", "kind", "title", "definition", "source", "looks_back"), TEXT),
            **dict.fromkeys(("labels", "dimensions", "extra_labels", "pages"), list_of(TEXT)),
            "windowed": _FLAG,
            "window_seconds": _NUMBER,
        }
    ),
    "MetricList": _page("Metric"),
    "MetricAnswer": _object(
        {
            "metric": TEXT,
            "unit": TEXT,
            "as_of": INSTANT,
            "window": _MAYBE_TEXT,
            "coverage": _COVERAGE,
            "hints": _HINTS,
            "rows": list_of(_SAMPLE),
        }
    ),
    "MetricRange": _object(
        {
            **dict.fromkeys(("metric", "unit", "step"), TEXT),
            **dict.fromkeys(("start", "end"), INSTANT),
            "window": _MAYBE_TEXT,
            "hints": _HINTS,
            "rows": list_of(_object({"as_of": INSTANT, "coverage": _COVERAGE, **_SAMPLE["properties"]})),
        }
    ),
    "Workload": _object(_WORKLOAD, _bounds("ended_at")),
    "WorkloadList": _page("Workload"),
    "WorkloadDetail": _object(
        {
            "as_of": INSTANT,
            **_WORKLOAD,
            "skewed": TEXT
            | {"description": "Which stamps contradict each other; then it is in no list and no figure."},
            "gpu_time_by_cause": list_of(_CAUSED_TIME),
            "spans": list_of(_SPAN),
            "attempts": list_of(_ATTEMPT),
            "member_waits": list_of(_MEMBER_WAIT),
            "checkpoints": list_of(_CHECKPOINT),
            "queue_position": _QUEUE_POSITION,
            "gpu_faults": list_of(_object(_GPU_FAULT)),
            "denials": list_of(_DENIAL),
        },
        _bounds("ended_at"),
    ),
    "WaitFinding": why.FINDING,
    "WorkloadWhy": why.schema(_QUEUE_POSITION),
    "PendingWorkload": _object(
        {
            **dict.fromkeys(("cluster", "queue", "uid", "kind", "namespace", "name", "team", "user"), TEXT),
            "priority_class": TEXT,
            "service_class": _one_of(ServiceClass),
            "requested_gpus": _NUMBER,
            "submitted_at": INSTANT,
            "waiting_seconds": _NUMBER,
            **_PLACE,
        }
    ),
    "PendingWorkloadList": _page("PendingWorkload"),
    "Team": _object(
        {"team": TEXT, "workloads": _COUNT, "open_workloads": _COUNT, "last_submitted_at": INSTANT}
    ),
    "TeamList": _page("Team"),
    "Source": _object(
        {
            "cluster": TEXT,
            "kind": TEXT,
            "source": TEXT,
            "state": _one_of(SourceState),
            "seen_at": _MAYBE_INSTANT,
            "lag_seconds": _NUMBER,
            "stale": _FLAG,
            "epoch": _COUNT,
            "restarts": _COUNT,
            "last_error": TEXT,
            "missing": TEXT,
            "remedy": TEXT,
            "set_aside": _COUNT,
            "set_aside_causes": list_of(_object({"because": TEXT, "count": _COUNT})),
        }
    ),
    "SourceList": _page("Source"),
    "QuotaProposal": _object(_PROPOSAL),
    "QuotaProposalList": _page("QuotaProposal"),
    "QuotaProposalDetail": _object(
        {
            "as_of": INSTANT,
            **_PROPOSAL,
            "patch": _PATCH,
            "inverse": _PATCH,
            **dict.fromkeys(("command", "no_patch_because"), TEXT),
            "audit": list_of(
                _object({"at": INSTANT, **dict.fromkeys(("from_state", "to_state", "who", "note"), TEXT)})
            ),
        }
    ),
    "Statement": _object(
        {
            "month": TEXT,
            **dict.fromkeys(("as_of", "start_at", "end_at"), INSTANT),
            "over": _FLAG | {"description": "The month had ended by `as_of`."},
            "complete": _FLAG | {"description": "The month is over, and all of it was observed."},
            "coverage": _COVERAGE,
            "nothing_because": _MAYBE_TEXT,
            "zone": TEXT,
            "currency": _MAYBE_TEXT,
            "billing": _one_of(Billing),
            **dict.fromkeys(("no_money_because", "no_causes_because", "no_commitment_because"), _MAYBE_TEXT),
            "unused_commitment_gpu_hours": _NUMBER,
            "from_unassigned_gpu_hours": _NUMBER
            | {"description": "lent = borrowed - this: from no holder's quota; null under a filter"},
            "closed": CLOSED_MONTH | {"type": ["object", "null"]},
            "hints": _HINTS,
            "by_kind": list_of(_object({"kind": TEXT, **_STATEMENT_FIGURES})),
            "corrections": list_of(_object({"of_month": TEXT, **_STATEMENT_FIGURES}))
            | {"description": "What was learnt of closed months, by month; it is in the lines and the total"},
            "total": _object(_STATEMENT_FIGURES | {"unit_cost": _NUMBER, "unit_cost_upper_bound": _FLAG}),
            "books": {"type": ["object", "null"], "additionalProperties": {"type": "number"}}
            | {"description": "capacity = held + idle + unavailable - overlap; null under a filter"},
            "checks": list_of(CHECK)
            | {"description": "The reconciliation of a month that is over; none under a filter"},
            "unknown": list_of(
                _object(
                    {
                        **dict.fromkeys(("cluster", "node", "because"), TEXT),
                        **dict.fromkeys(("start_at", "end_at"), INSTANT),
                    }
                )
            ),
            "rows": list_of(_object(_STATEMENT_FIGURES, dict.fromkeys((*DIMENSIONS, "cost_centre"), TEXT))),
        }
    ),
    "GpuFault": _object(_GPU_FAULT),
    "GpuFaultList": _page("GpuFault"),
    "KueueCheck": _object(
        {
            **dict.fromkeys(("cluster", "source", "figure", "queue", "flavor", "error"), TEXT),
            "seen_at": _MAYBE_INSTANT,
            **dict.fromkeys(("theirs", "ours"), _NUMBER),
            "differs": _FLAG,
        }
    ),
    "KueueCheckList": _page("KueueCheck"),
    "Alert": alerts.SCHEMA,
    "AlertList": _page("Alert"),
    "ReportSummary": _object(dict.fromkeys(("name", "title", "question"), TEXT)),
    "ReportList": _page("ReportSummary"),
    "Report": _object(
        {
            **dict.fromkeys(("report", "title"), TEXT),
            "as_of": INSTANT,
            "window": _MAYBE_TEXT,
            "coverage": _COVERAGE,
            "hints": _HINTS,
            "lead": list_of(TEXT),
            "sections": list_of(
                _object(
                    {
                        **dict.fromkeys(("key", "title", "note"), TEXT),
                        **dict.fromkeys(("page", "window"), _MAYBE_TEXT),
                        "columns": list_of(_object(dict.fromkeys(("key", "title", "unit", "metric"), TEXT))),
                        "rows": list_of(
                            {"type": "object", "additionalProperties": {"anyOf": [TEXT, _FIGURE]}}
                        ),
                    }
                )
            ),
        }
    ),
}
