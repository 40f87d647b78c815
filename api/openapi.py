"""The description of the API, made from the table of routes."""

from collections.abc import Sequence
from typing import Any, TypeAlias

from analytics.chargeback.quota_lines import NOTE_COSTS, NOTES
from analytics.chargeback.statement import COSTS, DIMENSIONS, Billing
from analytics.quota.movements import Kind as ProposalKind
from analytics.quota.proposal import ProposalState
from analytics.wastage.causes import Cause
from api.answers import SourceState
from api.formats import PROBLEM
from api.routes import ApiRoute
from domain.workload import Outcome, ServiceClass, State

Schema: TypeAlias = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_INSTANT: Schema = {"type": "string", "format": "date-time"}
_MAYBE_INSTANT: Schema = {"type": ["string", "null"], "format": "date-time"}
_NUMBER: Schema = {"type": ["number", "null"]}
_COUNT: Schema = {"type": "integer", "minimum": 0}
_MAYBE_TEXT: Schema = {"type": ["string", "null"]}
_FLAG: Schema = {"type": "boolean"}


def _object(required: Schema, optional: Schema | None = None) -> Schema:
    return {"type": "object", "properties": required | (optional or {}), "required": list(required)}


def _list_of(item: Schema) -> Schema:
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
_HINTS: Schema = _list_of(_TEXT) | {
    "description": "A sentence for each name in the filters that nobody bears, for example a misspelt team."
}


def _page(item: str) -> Schema:
    return _object(
        {
            "as_of": _MAYBE_INSTANT,
            "total": _COUNT,
            "page": _COUNT,
            "page_size": _COUNT,
            "hints": _HINTS,
            "rows": _list_of({"$ref": f"#/components/schemas/{item}"}),
        }
    )


def _bounds(*names: str) -> Schema:
    return {f"{name}_{side}": _INSTANT for name in names for side in ("earliest", "latest")}


_SAMPLE = _object(
    {
        "labels": {"type": "object", "additionalProperties": _TEXT},
        "value": _NUMBER,
        "lower_bound": _FLAG,
        "few": _FLAG,
        "undefined_because": _MAYBE_TEXT,
    }
)
_FIGURE = _object({"value": _NUMBER, "lower_bound": _FLAG, "few": _FLAG, "undefined_because": _MAYBE_TEXT})
_WORKLOAD: Schema = {
    **dict.fromkeys(("uid", "cluster", "kind", "namespace", "name", "team", "user", "queue"), _TEXT),
    "priority_class": _TEXT,
    "service_class": _one_of(ServiceClass),
    "gpu_model": _TEXT,
    "state": _one_of(State),
    "reason": _TEXT,
    "requested_gpus": _NUMBER,
    "submitted_at": _INSTANT,
    **dict.fromkeys(("first_placed_at", "first_running_at", "ended_at"), _MAYBE_INSTANT),
    "outcome": _one_of(Outcome),
    **dict.fromkeys(("queue_wait_seconds", "time_to_running_seconds", "requeue_wait_seconds"), _NUMBER),
    "waiting_seconds": _NUMBER,
    "preemptions": _COUNT,
    "evictions": _COUNT,
    "missed_evictions": _COUNT,
    "gpu_seconds": _NUMBER,
}
_POD = _object(
    {
        **dict.fromkeys(("uid", "name", "node", "gpu_model"), _TEXT),
        "gpus": _NUMBER,
        "bound_at": _INSTANT,
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
        "start_at": _INSTANT,
        "end_at": _MAYBE_INSTANT,
        "outcome": _one_of(Outcome),
        "reason": _TEXT,
        **dict.fromkeys(("preempted_by", "preempted_by_name", "preempted_by_workload"), _TEXT),
        "source": _TEXT,
        "pods": _list_of(_POD),
    }
)
_SPAN = _object(
    {"state": _one_of(State), "start_at": _INSTANT, "end_at": _MAYBE_INSTANT, "reason": _TEXT},
    _bounds("start_at"),
)
_MEMBER_WAIT = _object(
    {"pod_uid": _TEXT, "start_at": _INSTANT, "end_at": _MAYBE_INSTANT, "gpus": _NUMBER}
) | {
    "description": "A wait of one pod, lost or further, while the rest of the workload holds GPUs; "
    "it is part of no wait of the workload."
}
_AMOUNT: Schema = {
    "type": ["string", "null"],
    "description": "A decimal number in the statement's currency; null where there are no prices.",
}
_PROPOSAL: Schema = {
    **dict.fromkeys(("id", "cluster", "pool", "holder", "week", "because"), _TEXT),
    "teams": _list_of(_TEXT),
    "kind": _one_of(ProposalKind),
    "state": _one_of(ProposalState),
    **dict.fromkeys(("before_gpus", "after_gpus", "from_free_gpus"), _COUNT),
    "live_gpus": {"type": ["integer", "null"], "description": "What the object says now."},
    **dict.fromkeys(("made_at", "expires_at"), _INSTANT),
    **dict.fromkeys(("week_start_at", "week_end_at"), _INSTANT),
    "evidence": {"type": "object", "additionalProperties": _NUMBER}
    | {"description": "Of the week; the debt is what was owed when it ended."},
    "funding": _list_of(_object({"proposal": _TEXT, "gpus": _COUNT})),
    "object": _object(dict.fromkeys(("kind", "namespace", "name"), _TEXT)),
    "used_gpus": _NUMBER,
    "waits_until_free": {"type": ["boolean", "null"]}
    | {"description": "More is used now than a cut leaves: it is applied only when that is over."},
    "exposed": _list_of(
        _object(
            {
                **dict.fromkeys(("uid", "namespace", "name", "team"), _TEXT),
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
    "loss_adjustment_gpu_hours": _NUMBER
    | {"description": "Booked as useful on an earlier day, and not any more: already taken off useful."},
    **dict.fromkeys(COSTS, _AMOUNT),
    **{f"{name}_gpu_hours": _NUMBER | {"description": "Of quota; null without one."} for name in NOTES},
    **dict.fromkeys(
        NOTE_COSTS,
        _AMOUNT | {"description": "Worth at the pool's average effective price; in no sum of costs."},
    ),
}

SCHEMAS: Schema = {
    "Problem": _object(
        {"type": _TEXT, "title": _TEXT, "status": {"type": "integer"}, "detail": _TEXT, "instance": _TEXT}
    ),
    "Metric": _object(
        {
            **dict.fromkeys(("name", "unit", "kind", "title", "definition", "source", "looks_back"), _TEXT),
            **dict.fromkeys(("labels", "dimensions", "extra_labels", "pages"), _list_of(_TEXT)),
            "windowed": _FLAG,
            "window_seconds": _NUMBER,
        }
    ),
    "MetricList": _page("Metric"),
    "MetricAnswer": _object(
        {
            "metric": _TEXT,
            "unit": _TEXT,
            "as_of": _INSTANT,
            "window": _MAYBE_TEXT,
            "coverage": _COVERAGE,
            "hints": _HINTS,
            "rows": _list_of(_SAMPLE),
        }
    ),
    "Workload": _object(_WORKLOAD, _bounds("ended_at")),
    "WorkloadList": _page("Workload"),
    "WorkloadDetail": _object(
        {
            "as_of": _INSTANT,
            **_WORKLOAD,
            "skewed": _TEXT
            | {"description": "Which stamps contradict each other; then it is in no list and no figure."},
            "spans": _list_of(_SPAN),
            "attempts": _list_of(_ATTEMPT),
            "member_waits": _list_of(_MEMBER_WAIT),
        },
        _bounds("ended_at"),
    ),
    "Team": _object(
        {"team": _TEXT, "workloads": _COUNT, "open_workloads": _COUNT, "last_submitted_at": _INSTANT}
    ),
    "TeamList": _page("Team"),
    "Source": _object(
        {
            "cluster": _TEXT,
            "kind": _TEXT,
            "source": _TEXT,
            "state": _one_of(SourceState),
            "seen_at": _MAYBE_INSTANT,
            "lag_seconds": _NUMBER,
            "stale": _FLAG,
            "epoch": _COUNT,
            "restarts": _COUNT,
            "last_error": _TEXT,
            "set_aside": _COUNT,
            "set_aside_causes": _list_of(_object({"because": _TEXT, "count": _COUNT})),
        }
    ),
    "SourceList": _page("Source"),
    "QuotaProposal": _object(_PROPOSAL),
    "QuotaProposalList": _page("QuotaProposal"),
    "QuotaProposalDetail": _object(
        {
            "as_of": _INSTANT,
            **_PROPOSAL,
            "patch": _PATCH,
            "inverse": _PATCH,
            **dict.fromkeys(("command", "no_patch_because"), _TEXT),
            "audit": _list_of(
                _object({"at": _INSTANT, **dict.fromkeys(("from_state", "to_state", "who", "note"), _TEXT)})
            ),
        }
    ),
    "Statement": _object(
        {
            "month": _TEXT,
            **dict.fromkeys(("as_of", "start_at", "end_at"), _INSTANT),
            "complete": _FLAG,
            "nothing_because": _MAYBE_TEXT,
            "zone": _TEXT,
            "currency": _MAYBE_TEXT,
            "billing": _one_of(Billing),
            **dict.fromkeys(("no_money_because", "no_causes_because", "no_commitment_because"), _MAYBE_TEXT),
            "unused_commitment_gpu_hours": _NUMBER,
            "from_unassigned_gpu_hours": _NUMBER
            | {"description": "lent = borrowed - this: from no holder's quota; null under a filter"},
            "hints": _HINTS,
            "by_kind": _list_of(_object({"kind": _TEXT, **_STATEMENT_FIGURES})),
            "total": _object(_STATEMENT_FIGURES | {"unit_cost": _NUMBER, "unit_cost_upper_bound": _FLAG}),
            "books": {"type": ["object", "null"], "additionalProperties": {"type": "number"}}
            | {"description": "capacity = held + idle + unavailable - overlap; null under a filter"},
            "unknown": _list_of(
                _object(
                    {
                        **dict.fromkeys(("cluster", "node", "because"), _TEXT),
                        **dict.fromkeys(("start_at", "end_at"), _INSTANT),
                    }
                )
            ),
            "rows": _list_of(_object(_STATEMENT_FIGURES, dict.fromkeys((*DIMENSIONS, "cost_centre"), _TEXT))),
        }
    ),
    "ReportSummary": _object(dict.fromkeys(("name", "title", "question"), _TEXT)),
    "ReportList": _page("ReportSummary"),
    "Report": _object(
        {
            **dict.fromkeys(("report", "title"), _TEXT),
            "as_of": _INSTANT,
            "window": _MAYBE_TEXT,
            "coverage": _COVERAGE,
            "hints": _HINTS,
            "lead": _list_of(_TEXT),
            "sections": _list_of(
                _object(
                    {
                        **dict.fromkeys(("key", "title", "note"), _TEXT),
                        **dict.fromkeys(("page", "window"), _MAYBE_TEXT),
                        "columns": _list_of(
                            _object(dict.fromkeys(("key", "title", "unit", "metric"), _TEXT))
                        ),
                        "rows": _list_of(
                            {"type": "object", "additionalProperties": {"anyOf": [_TEXT, _FIGURE]}}
                        ),
                    }
                )
            ),
        }
    ),
}


def describe(routes: Sequence[ApiRoute], *, base_url: str, version: str) -> Schema:
    """An OpenAPI 3.1 document."""
    return {
        "openapi": "3.1.0",
        "info": {"title": "gpuledger", "version": version},
        "servers": [{"url": base_url}] if base_url else [],
        "paths": {route.path: {"get": _operation(route)} for route in routes},
        "components": {"schemas": SCHEMAS},
    }


def _operation(route: ApiRoute) -> Schema:
    shapes = {"application/json": {"schema": {"$ref": f"#/components/schemas/{route.schema}"}}}
    content = {offer.media_type: shapes.get(offer.media_type, {}) for offer in route.formats}
    problem = {PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {"400": "The question is wrong", "401": "Nobody is asking", "403": "Not yours to see"}
    refusals |= {"404": "There is none"} if route.path_parameter else {}
    refusals |= {"406": "No such format", "500": "The question could not be answered"}
    return {
        "operationId": route.name,
        "summary": route.summary,
        "parameters": _parameters(route),
        "responses": {"200": {"description": "The answer", "content": content}}
        | {status: {"description": text, "content": problem} for status, text in refusals.items()},
    }


def _parameters(route: ApiRoute) -> list[Schema]:
    in_path = [{"name": route.path_parameter, "in": "path", "required": True, "schema": _TEXT}]
    in_query = [
        {
            "name": parameter.name,
            "in": "query",
            "description": parameter.description,
            "schema": _list_of(parameter.schema) if parameter.many else parameter.schema,
        }
        | ({"style": "form", "explode": False} if parameter.many else {})
        for parameter in route.parameters
    ]
    return (in_path if route.path_parameter else []) + in_query
