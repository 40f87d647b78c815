"""Problems as RFC 9457 `application/problem+json`; nothing internal leaves the process."""

import logging
from http import HTTPStatus

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from api.auth import UnauthenticatedError
from api.formats import PROBLEM
from domain.errors import (
    ForbiddenError,
    NotYetError,
    ProductError,
    RefusedError,
    UnreachableError,
    UsageError,
)

log = logging.getLogger("gpuledger.api")

_STATUS = (
    (UnauthenticatedError, HTTPStatus.UNAUTHORIZED),
    (ForbiddenError, HTTPStatus.FORBIDDEN),
    (UsageError, HTTPStatus.BAD_REQUEST),
    (RefusedError, HTTPStatus.CONFLICT),
    (UnreachableError, HTTPStatus.SERVICE_UNAVAILABLE),
)


def problem(status: HTTPStatus, detail: str, *, instance: str) -> Response:
    """A problem document."""
    body = {
        "type": "about:blank",
        "title": status.phrase,
        "status": int(status),
        "detail": detail,
        "instance": instance,
    }
    response = Response(msgspec.json.encode(body), status_code=status, media_type=PROBLEM)
    if status is HTTPStatus.UNAUTHORIZED:
        response.headers["www-authenticate"] = "Bearer"
    return response


def of_product_error(request: Request, error: Exception) -> Response:
    """Errors that a viewer can mend keep their text; the others say only that they happened."""
    status = next((status for kind, status in _STATUS if isinstance(error, kind)), None)
    if status is None or not isinstance(error, ProductError):
        return of_unexpected_error(request, error)
    response = problem(status, str(error), instance=request.url.path)
    if isinstance(error, NotYetError):
        response.headers["retry-after"] = str(error.retry_after_seconds)
    return response


def of_http_error(request: Request, error: Exception) -> Response:
    """The web framework's own: no such route, wrong method."""
    if not isinstance(error, HTTPException):
        return of_unexpected_error(request, error)
    status = HTTPStatus(error.status_code)
    detail = (
        error.detail
        if error.detail != status.phrase
        else f"{request.method} {request.url.path}: {status.phrase}"
    )
    response = problem(status, detail, instance=request.url.path)
    response.headers.update(error.headers or {})
    return response


def of_gone_client(request: Request, _: Exception) -> Response:
    """Whoever asked went away before all was said: no error of ours, and nobody reads the answer."""
    log.info("the client went away", extra={"path": request.url.path})
    return Response(status_code=HTTPStatus.BAD_REQUEST)


def of_unexpected_error(request: Request, error: Exception) -> Response:
    """Logged here with its cause; the viewer learns nothing of the inside."""
    log.error("request failed", exc_info=error, extra={"path": request.url.path})
    detail = "the question could not be answered; the operator finds the reason in the log"
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, detail, instance=request.url.path)
