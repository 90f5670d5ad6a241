"""The REST routes as parts of the web application."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import cache
from typing import Any

import msgspec
from starlette.requests import Request as HttpRequest
from starlette.responses import Response
from starlette.routing import Route

from clawmark.net.server.requests import values_of
from clawmark.serve.clients import bearer_of
from clawmark.serve.problems import RequestFailed, denied
from clawmark.serve.rest.openapi import openapi
from clawmark.serve.rest.read import read_body, read_query
from clawmark.serve.rest.routes import ROUTES, Given, Reply, RestRoute
from clawmark.serve.service import Service

OPENAPI = "openapi"
JSON = "application/json"


def rest_routes(service: Service) -> list[Route]:
    """Return the routes for an application."""
    return [
        *(
            Route(
                route.path.replace("{path}", "{path:path}"),
                _endpoint(service, route),
                methods=[route.method],
            )
            for route in ROUTES
        ),
        Route("/openapi.json", _describe(service)),
    ]


def _endpoint(service: Service, route: RestRoute) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def answer(request: HttpRequest) -> Response:
        scope = request.scope
        scope["state"]["route"] = route.name
        token = bearer_of(scope["headers"])

        def work() -> Reply:
            grant = service.admit(scope, token)
            # Before the body is looked at: it is not the business of others what is valid.
            if route.permission not in grant.access.permissions:
                raise RequestFailed(denied(route.permission))
            reply = route.handle(service.spaces(grant), _given(service, route, request))
            if reply.has_due:
                service.team.note_due(grant)
            return reply

        reply = await service.run(work)
        for name, amount in reply.counts:
            service.metrics.add(name, amount)
        if reply.body is None:
            return Response(status_code=reply.status)
        return Response(msgspec.json.encode(encodable(reply.body)), reply.status, media_type=JSON)

    return answer


def _given(service: Service, route: RestRoute, request: HttpRequest) -> Given:
    headers, path = request.scope["headers"], dict(request.path_params)
    return Given(
        path=path,
        query=read_query(route.query, request.query_params.multi_items()),
        body=read_body(
            route.body, values_of(headers, b"content-type"), request.scope["state"]["body"]
        )
        if route.body is not None
        else None,
        make_query=service.options.make_query,
    )


def encodable(value: Any) -> Any:
    """Replace text that UTF-8 cannot encode, at any depth."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {encodable(name): encodable(inner) for name, inner in value.items()}
    return [encodable(inner) for inner in value] if isinstance(value, list) else value


@cache
def _description(url: str) -> bytes:
    return msgspec.json.encode(openapi(url))


def _describe(service: Service) -> Callable[[HttpRequest], Awaitable[Response]]:
    async def answer(request: HttpRequest) -> Response:
        request.scope["state"]["route"] = OPENAPI
        return Response(_description(service.options.public_url), media_type=JSON)

    return answer
