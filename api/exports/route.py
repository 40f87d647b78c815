"""`GET /api/v1/chargeback/{month}/export`: a month as a file."""

from http import HTTPStatus
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from api import formats, parameters
from api.answers import Answers
from api.exports.formats import EXPORT_FORMATS, ExportFormat, export_format, file_name
from api.parameters import STATEMENT_PARAMETERS, Parameter
from api.problem import problem
from domain.errors import UsageError

PATH: Final = "/api/v1/chargeback/{month}/export"
_FORMAT: Final = Parameter(
    name="format",
    description="; ".join(f"{each.name}: {each.about}" for each in EXPORT_FORMATS.values())
    + ". Default: what Accept asks for, else csv.",
    schema={"type": "string", "enum": list(EXPORT_FORMATS)},
)
PARAMETERS: Final = (_FORMAT, *(each for each in STATEMENT_PARAMETERS if each.name != "by"))


def file_response(answers: Answers, request: Request) -> Response:
    """
    The file that a request asks for, piece by piece.

    Raises:
        UsageError: the month, the format or a filter is none.
    """
    try:
        parameters.check_known(request.query_params, PARAMETERS)
    except UsageError as cause:
        message = f"{PATH}: {cause}"
        raise UsageError(message) from cause
    form = _wanted(request)
    if form is None:
        offered = ", ".join(dict.fromkeys(each.media_type for each in EXPORT_FORMATS.values()))
        detail = f"Accept: {request.headers['accept']}: expected one of {offered}"
        return problem(HTTPStatus.NOT_ACCEPTABLE, detail, instance=request.url.path)
    question = parameters.statement_question(request.query_params)
    statement = answers.month_statement(request.path_params["month"], question)
    disposition = f'attachment; filename="{file_name(statement, form)}"'
    # What cannot be written is refused here, before the answer has begun.
    return StreamingResponse(
        form.write(statement),
        media_type=form.media_type,
        headers={"content-disposition": disposition, "vary": "Accept"},
    )


def _wanted(request: Request) -> ExportFormat | None:
    name = request.query_params.get("format")
    if name:
        return export_format(name, named="format")
    # FOCUS has no media type of its own: it is asked for by its name.
    offered = {each.media_type: each for each in reversed(EXPORT_FORMATS.values())}
    chosen = formats.wanted(
        request.headers.get("accept", ""), [formats.Format(each, formats.to_json) for each in offered]
    )
    return None if chosen is None else offered[chosen.media_type]


def operation() -> dict[str, Any]:
    """The route in the words of OpenAPI, without its parameters."""
    problems = {formats.PROBLEM: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    content = {
        each.media_type: {"schema": {"type": "string", "format": "binary"}}
        for each in EXPORT_FORMATS.values()
    }
    refusals = {
        "400": "The question is wrong",
        "401": "Nobody is asking",
        "403": "Not yours to see",
        "406": "No such format",
        "409": "It cannot be exported so, for example as FOCUS without prices",
        "500": "The question could not be answered",
    }
    return {
        "operationId": "export_chargeback",
        "summary": "A month, open or closed, as CSV, Parquet, XLSX or FOCUS 1.4",
        "responses": {"200": {"description": "The file", "content": content}}
        | {status: {"description": words, "content": problems} for status, words in refusals.items()},
    }
