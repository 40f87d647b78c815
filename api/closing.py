"""`POST /api/v1/chargeback/{month}/close`: finance closes a month for good."""

from http import HTTPStatus
from typing import Annotated, Any, Final

import msgspec
from starlette.responses import Response

from api import formats
from api.answers import Answers
from api.schemas import CHECK, CLOSED_MONTH, TEXT, list_of
from api.viewer import Role, Viewer
from domain.errors import ForbiddenError, UsageError

PATH: Final = "/api/v1/chargeback/{month}/close"
_MAY: Final = frozenset({Role.FINANCE, Role.ADMIN})


class _Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What may be said of a close."""

    reason: Annotated[str, msgspec.Meta(max_length=2000)] = ""


def check_role(viewer: Viewer, month: str) -> None:
    """
    Refuse whoever may not close.

    Raises:
        ForbiddenError: the role is neither finance nor admin.
    """
    if viewer.role not in _MAY:
        message = f"month {month!r}: the role {viewer.role} closes no months; finance and admin do"
        raise ForbiddenError(message)


def reason_of(body: bytes) -> str:
    """
    Why a month may be closed although little of it was observed; empty where nothing is said.

    Raises:
        UsageError: it is no JSON, or has another key.
    """
    if not body:
        return ""
    try:
        return msgspec.json.decode(body, type=_Body).reason
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as cause:
        message = f'body of {PATH}: {cause}; expected {{"reason": "..."}}, or nothing'
        raise UsageError(message) from cause


def take(answers: Answers, viewer: Viewer, month: str, reason: str) -> Response:
    """
    Close the month, and say with which fingerprint.

    Raises:
        UsageError: there is no such month.
        RefusedError: it is closed, not over, or does not balance.
    """
    told = answers.close_month(month, who=viewer.name, reason=reason)
    return Response(formats.to_json(told), status_code=HTTPStatus.CREATED, media_type=formats.JSON)


def operation() -> dict[str, Any]:
    """The route in the words of OpenAPI."""
    told = {"month": TEXT, **CLOSED_MONTH["properties"], "checks": list_of(CHECK)}
    sent = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "reason": TEXT
            | {"description": "Why it may be closed although little was observed or causes are missing."}
        },
    }
    problems = {formats.PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {
        "400": "There is no such month, or the body is wrong",
        "401": "Nobody is asking",
        "403": "Only finance and admin close months",
        "409": "It is closed, not over, or its reconciliation does not hold; the detail says which",
    }
    return {
        "operationId": "close_month",
        "summary": "Close a month: an immutable statement with a fingerprint",
        "parameters": [{"name": "month", "in": "path", "required": True, "schema": TEXT}],
        "requestBody": {"required": False, "content": {formats.JSON: {"schema": sent}}},
        "responses": {
            "201": {
                "description": "It is closed",
                "content": {
                    formats.JSON: {"schema": {"type": "object", "properties": told, "required": list(told)}}
                },
            }
        }
        | {status: {"description": words, "content": problems} for status, words in refusals.items()},
    }
