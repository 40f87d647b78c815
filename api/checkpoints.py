"""`POST /api/v1/checkpoints`: a job tells that it saved its work."""

from http import HTTPStatus
from typing import Annotated, Any, Final, TypeAlias

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from api import formats
from api.answers import Answers
from api.problem import problem
from api.viewer import Role, Viewer
from domain.checkpoint import CheckpointReport
from domain.errors import ForbiddenError, UsageError
from domain.window import MS_PER_SECOND, parse_instant

PATH: Final = "/api/v1/checkpoints"
_MOST_BYTES: Final = 16_384
Text: TypeAlias = Annotated[str, msgspec.Meta(max_length=253)]
Count: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=(1 << 62))]


class _Body(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What a job sends; `at` is RFC 3339 or seconds since the epoch."""

    cluster: Text = ""
    namespace: Text = ""
    pod: Text = ""
    workload: Text = ""
    uid: Text = ""
    at: str | float | None = None
    step: Count | None = None
    size_bytes: Count | None = None
    duration_seconds: Annotated[float, msgspec.Meta(ge=0, le=1e9)] | None = None


async def body_of(request: Request) -> bytes:
    """
    The body, as far as it may be long.

    Raises:
        UsageError: it is longer, or says that it is something else than JSON.
    """
    # A page of another site can send anything but this type without asking first.
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != formats.JSON:
        message = f'content-type "{kind}": expected {formats.JSON}'
        raise UsageError(message)
    body = bytearray()
    async for piece in request.stream():
        body += piece
        if len(body) > _MOST_BYTES:
            message = f"a body of more than {_MOST_BYTES:,} bytes: expected one checkpoint as JSON"
            raise UsageError(message)
    return bytes(body)


def report_of(body: bytes) -> CheckpointReport:
    """
    What a body says.

    Raises:
        UsageError: it is no JSON, has another key, or names nothing or two things.
    """
    try:
        read = msgspec.json.decode(body, type=_Body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as cause:
        message = f"body of {PATH}: {cause}; expected a JSON object as /openapi.json describes it"
        raise UsageError(message) from cause
    named = [name for name in ("pod", "workload", "uid") if getattr(read, name)]
    if len(named) != 1 or (named != ["uid"] and not read.namespace):
        message = (
            f"body of {PATH}: names {' and '.join(named) or 'nothing'}; expected a namespace with either pod"
            " or workload, or the uid of one of them"
        )
        raise UsageError(message)
    return CheckpointReport(
        **{name: getattr(read, name) for name in _Body.__struct_fields__ if name != "at"},
        at_ms=_at_ms(read.at),
    )


def take(answers: Answers, viewer: Viewer, report: CheckpointReport, *, instance: str) -> Response:
    """
    Keep the checkpoint of a report, and say so.

    Raises:
        ForbiddenError: this viewer's role only reads.
    """
    if viewer.role is Role.FINANCE:
        message = f"{PATH}: the role {viewer.role} tells of no checkpoints"
        raise ForbiddenError(message)
    told = answers.checkpoint(report)
    if told is None:
        name = report.uid or f"{report.namespace}/{report.pod or report.workload}"
        detail = f"{name}: there is none that you may tell of; a pod that has just begun is known in seconds"
        return problem(HTTPStatus.NOT_FOUND, detail, instance=instance)
    if told["set_aside"]:
        detail = f"at {told['at']}: {told['set_aside']}; it was counted and not kept: look at the clock"
        return problem(HTTPStatus.UNPROCESSABLE_ENTITY, detail, instance=instance)
    status = HTTPStatus.CREATED if told["new"] else HTTPStatus.OK
    document = {name: value for name, value in told.items() if name != "set_aside"}
    return Response(formats.to_json(document), status_code=status, media_type=formats.JSON)


def _at_ms(written: str | float | None) -> int | None:
    if written is None:
        return None
    if isinstance(written, str):
        return parse_instant(written)
    at_ms = round(written * MS_PER_SECOND) if abs(written) < 1e11 else -1
    if at_ms < 0:
        message = f"at = {written}: expected seconds since the epoch, or RFC 3339"
        raise UsageError(message)
    return at_ms


def operation(text: dict[str, Any], instant: dict[str, Any]) -> dict[str, Any]:
    """The route in the words of OpenAPI, given its words for a text and for an instant."""
    count = {"type": "integer", "minimum": 0}
    sent = {
        "type": "object",
        "additionalProperties": False,
        "properties": {
            "cluster": text | {"description": "May stay out where one cluster is read."},
            "namespace": text,
            "pod": text | {"description": "The name of the pod; or `workload`, or `uid`."},
            "workload": text | {"description": "The name of the job or of its queueing object."},
            "uid": text | {"description": "metadata.uid of the pod or of the workload."},
            "at": {
                "oneOf": [instant, {"type": "number"}],
                "description": "When it was written: RFC 3339 or seconds since the epoch; else now.",
            },
            "step": count,
            "size_bytes": count,
            "duration_seconds": {"type": "number", "minimum": 0},
        },
    }
    kept = {
        **dict.fromkeys(("cluster", "object_uid", "object_kind"), text),
        "workload_uid": {"type": ["string", "null"]},
        "at": instant,
        "new": {"type": "boolean", "description": "False where it was known already."},
    }
    answer = {
        formats.JSON: {"schema": {"type": "object", "properties": kept, "required": list(kept)}},
    }
    problems = {formats.PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    refusals = {
        "400": "The body is wrong",
        "401": "Nobody is telling",
        "403": "Not yours to tell",
        "404": "There is none by that name",
        "422": "It cannot have been made then; it was counted",
        "503": "Nothing is kept just now, or whose it is is not known yet: tell it again (Retry-After)",
    }
    return {
        "operationId": "tell_checkpoint",
        "summary": "Tell that a job saved its work; telling it again changes nothing",
        "requestBody": {"required": True, "content": {formats.JSON: {"schema": sent}}},
        "responses": {
            "200": {"description": "It was known", "content": answer},
            "201": {"description": "It is kept", "content": answer},
        }
        | {status: {"description": words, "content": problems} for status, words in refusals.items()},
    }
