"""The application of the server: REST, MCP, the web page, health checks and metrics."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from clawmark.serve.mcp import MCP, McpEndpoint
from clawmark.serve.pages import PAGE, page_routes
from clawmark.serve.problems import NOT_FOUND, UNAVAILABLE, UNEXPECTED, Problem, RequestFailed
from clawmark.serve.rest.endpoints import JSON, OPENAPI, rest_routes
from clawmark.serve.rest.routes import ROUTES
from clawmark.serve.service import Service
from clawmark.web.render import STATIC_FOLDER

HEALTH, METRICS, STATIC = "health", "metrics", "static"
ROUTE_NAMES = (*(route.name for route in ROUTES), MCP, PAGE, OPENAPI, HEALTH, METRICS, STATIC)
"""The labels of requests in logs and metrics."""
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
_NOT_FOR_CLIENTS = Problem(
    status=403,
    type="NotForClients",
    message="Metrics are not served through the reverse proxy.",
    hint="Ask the process itself, on the address it listens on.",
)


def make_app(service: Service, mcp: McpEndpoint, is_stopping: Callable[[], bool]) -> Starlette:
    """Return the application; `Gate` stands before it."""

    async def live(request: Request) -> Response:
        request.scope["state"]["route"] = HEALTH
        return _json({"status": "ok"})

    async def ready(request: Request) -> Response:
        request.scope["state"]["route"] = HEALTH
        if is_stopping() or not await service.is_ready():
            raise RequestFailed(UNAVAILABLE)
        return _json({"status": "ok"})

    async def metrics(request: Request) -> Response:
        request.scope["state"]["route"] = METRICS
        if request.scope["state"]["client"].is_forwarded:
            raise RequestFailed(_NOT_FOR_CLIENTS)
        service.update_gauges()
        return Response(service.metrics.text(), media_type=PROMETHEUS)

    return Starlette(
        routes=[
            *rest_routes(service),
            Route("/mcp", mcp, methods=["POST"]),
            Route("/health/live", live),
            Route("/health/ready", ready),
            Route("/metrics", metrics),
            *page_routes(service),
            Mount("/static", StaticFiles(directory=STATIC_FOLDER)),
        ],
        exception_handlers={
            RequestFailed: _show_problem,
            HTTPException: _show_http_error,
            Exception: _show_unexpected,
        },
    )


def _json(value: object) -> Response:
    return Response(msgspec.json.encode(value), media_type=JSON)


def _show_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestFailed)
    return problem_response(error.problem)


def _show_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allow = (error.headers or {}).get("Allow", "")
        return problem_response(
            Problem(
                status=405,
                type="MethodNotAllowed",
                message="The address does not have this method.",
                hint=f"Use {allow}.",
                allow=allow,
            )
        )
    if error.status_code == 404:
        return problem_response(NOT_FOUND)
    return problem_response(Problem(error.status_code, "Refused", f"{error.detail}."))


def _show_unexpected(request: Request, error: Exception) -> Response:
    return problem_response(UNEXPECTED)  # `Gate` gets the error as well, and logs it


def problem_response(problem: Problem) -> Response:
    made = Response(problem.body, problem.status, media_type=JSON)
    for name, value in problem.headers:
        made.headers[name.decode()] = value.decode()
    return made
