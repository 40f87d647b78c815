"""The ASGI application. Every answer goes through the viewer's scope."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from http import HTTPStatus

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Send
from starlette.types import Scope as AsgiScope

from api import checkpoints, closing, formats, who
from api.answers import Answers
from api.auth import Auth, Caller
from api.exports import route as export
from api.openapi import describe
from api.problem import of_gone_client, of_http_error, of_product_error, of_unexpected_error, problem
from api.readiness import verbose
from api.routes import ROUTES, ApiRoute, check, missing
from api.scope import Scope, scoped
from domain.errors import ForbiddenError, ProductError

MetricsText = Callable[[], bytes]
EXPOSITION = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True, kw_only=True)
class Api:
    """What the app is made of. `metrics_text` gives the Prometheus exposition, prepared before."""

    answers: Answers
    auth: Auth
    metrics_text: MetricsText
    base_url: str = ""
    version: str = "0"
    scope: Scope = scoped


def create_app(api: Api) -> ASGIApp:
    """The application; sync handlers run in threads, so that a slow question blocks nobody."""
    routes = [Route(route.path, _handler(api, route), methods=["GET"]) for route in ROUTES]
    routes += [
        Route(checkpoints.PATH, _tell_checkpoint(api), methods=["POST"]),
        Route(export.PATH, _export(api), methods=["GET"]),
        Route(closing.PATH, _close(api), methods=["POST"]),
        Route(who.PATH, _viewer(api), methods=["GET"]),
        Route("/openapi.json", _openapi(api), methods=["GET"]),
        Route("/metrics", _metrics(api), methods=["GET"]),
        Route("/livez", _livez, methods=["GET"]),
        Route("/readyz", _readyz(api), methods=["GET"]),
    ]
    handlers = {
        HTTPException: of_http_error,
        ProductError: of_product_error,
        ClientDisconnect: of_gone_client,
        Exception: of_unexpected_error,
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    # A redirect would come before any handler has asked who it is, and name the Host of the request.
    app.router.redirect_slashes = False
    return _SafeHeaders(app)


def _caller(request: Request) -> Caller:
    return Caller(headers=dict(request.headers), address=request.client.host if request.client else "")


def _handler(api: Api, route: ApiRoute) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        viewer = api.auth.viewer(_caller(request))
        chosen = formats.wanted(request.headers.get("accept", ""), route.formats)
        if chosen is None:
            offered = ", ".join(offer.media_type for offer in route.formats)
            detail = f"Accept: {request.headers['accept']}: expected one of {offered}"
            return problem(HTTPStatus.NOT_ACCEPTABLE, detail, instance=request.url.path)
        check(route, request)
        answers = api.scope(api.answers, viewer)
        document = route.answer(answers, request)
        if document is None:
            return problem(HTTPStatus.NOT_FOUND, missing(route, answers, request), instance=request.url.path)
        return Response(chosen.write(document), media_type=chosen.media_type, headers={"vary": "Accept"})

    return handle


def _export(api: Api) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        viewer = api.auth.viewer(_caller(request))
        return export.file_response(api.scope(api.answers, viewer), request)

    return handle


def _tell_checkpoint(api: Api) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        # Who it is comes first: nobody else's body is read.
        viewer = api.auth.reporter(_caller(request))
        report = checkpoints.report_of(await checkpoints.body_of(request))

        def take() -> Response:
            answers = api.scope(api.answers, viewer)
            return checkpoints.take(answers, viewer, report, instance=request.url.path)

        return await run_in_threadpool(take)

    return handle


def _close(api: Api) -> Callable[[Request], Awaitable[Response]]:
    async def handle(request: Request) -> Response:
        viewer, month = api.auth.viewer(_caller(request)), request.path_params["month"]
        closing.check_role(viewer, month)
        reason = closing.reason_of(await checkpoints.body_of(request))
        return await run_in_threadpool(closing.take, api.scope(api.answers, viewer), viewer, month, reason)

    return handle


def _viewer(api: Api) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        return Response(
            formats.to_json(who.record(api.auth.viewer(_caller(request)))), media_type=formats.JSON
        )

    return handle


def _openapi(api: Api) -> Callable[[Request], Response]:
    body = formats.to_json(describe(ROUTES, base_url=api.base_url, version=api.version))

    def handle(request: Request) -> Response:
        api.auth.viewer(_caller(request))
        return Response(body, media_type=formats.JSON)

    return handle


def _metrics(api: Api) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        if not api.auth.may_scrape(_caller(request)):
            message = "/metrics: expected the service token of auth.token_file as Authorization: Bearer"
            raise ForbiddenError(message)
        return Response(api.metrics_text(), headers={"content-type": EXPOSITION})

    return handle


async def _livez(_: Request) -> Response:
    # Not in the pool of threads: that others are busy does not mean that we are dead.
    return PlainTextResponse("ok")


def _readyz(api: Api) -> Callable[[Request], Response]:
    def handle(request: Request) -> Response:
        why_not = api.answers.readiness()
        if why_not:
            return problem(HTTPStatus.SERVICE_UNAVAILABLE, why_not, instance=request.url.path)
        if "verbose" in request.query_params:
            answers = api.scope(api.answers, api.auth.viewer(_caller(request)))
            return PlainTextResponse(verbose(answers.sources().rows))
        return PlainTextResponse("ok")

    return handle


class _SafeHeaders:
    """Answers belong to one viewer: no cache keeps them and no browser guesses their type."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                safe = [(b"cache-control", b"no-store"), (b"x-content-type-options", b"nosniff")]
                message["headers"] = [*message.get("headers", []), *safe]
            await send(message)

        await self._app(scope, receive, send_safely)
