"""The OpenAPI 3.1 description of the REST interface, made from the table of routes."""

from __future__ import annotations

import re
from typing import Any, cast

import msgspec

from clawmark import __version__
from clawmark.serve.rest.bodies import ErrorAnswer, SpaceName
from clawmark.serve.rest.routes import ROUTES, RestRoute

PROBLEMS = {
    400: "The body is not JSON.",
    401: "The token is missing or not valid.",
    403: "The token or its caller may not do this, or there is no such space.",
    404: "There is no such document or address.",
    405: "The address has another method.",
    408: "The body arrived too slowly.",
    409: "The key was used before for another text.",
    413: "The body is too large.",
    415: "The body is not application/json.",
    422: "A field or a parameter is not valid.",
    429: "Too many requests; Retry-After says when to try again.",
    503: "The memory is not available; Retry-After says when to try again.",
}
_SCHEMAS = "#/components/schemas/{name}"


def openapi(url: str = "") -> dict[str, Any]:
    """Return the description; `url` is the address of the server, if it is known."""
    kinds = [
        ErrorAnswer,
        *(kind for route in ROUTES for kind in (route.body, route.answer) if kind),
    ]
    _, schemas = msgspec.json.schema_components(kinds, ref_template=_SCHEMAS)
    paths = dict[str, Any]()
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Clawmark",
            "version": __version__,
            "description": "The shared memory of a team: search, read, append and publish.",
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": url or "/"}],
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": {
                f"Problem{status}": {
                    "description": text,
                    "content": {"application/json": {"schema": _ref(ErrorAnswer)}},
                }
                for status, text in PROBLEMS.items()
            },
            "securitySchemes": {
                "token": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A token of `clawmark token create`: `cmk_…`.",
                }
            },
        },
    }


def _operation(route: RestRoute) -> dict[str, Any]:
    made: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "description": f"Needs the permission `{route.permission}`.",
        "parameters": [*_path_parameters(route), *_query_parameters(route)],
        "responses": _responses(route),
    }
    if route.body is not None:
        content = {"application/json": {"schema": _ref(route.body)}}
        made["requestBody"] = {"required": True, "content": content}
    return made


def _responses(route: RestRoute) -> dict[str, Any]:
    done: dict[str, Any] = {"description": "Done."}
    if route.answer is not None:
        done["content"] = {"application/json": {"schema": _ref(route.answer)}}
    statuses = [route.status, *([200] if route.status == 201 else [])]
    left_out = {400, 408, 409, 413, 415} if route.body is None else set[int]()
    if route.name != "appendEntry":
        left_out.add(409)
    problems = {
        str(status): {"$ref": f"#/components/responses/Problem{status}"}
        for status in PROBLEMS
        if status not in left_out
    }
    return {**{str(status): done for status in statuses}, **problems}


def _path_parameters(route: RestRoute) -> list[dict[str, Any]]:
    schemas = {"space": msgspec.json.schema(SpaceName), "path": {"type": "string", "minLength": 1}}
    return [
        {"name": name, "in": "path", "required": True, "schema": schemas[name]}
        for name in re.findall(r"{(\w+)}", route.path)
    ]


def _query_parameters(route: RestRoute) -> list[dict[str, Any]]:
    _, known = msgspec.json.schema_components([route.query], ref_template=_SCHEMAS)
    fields = cast("dict[str, Any]", known[route.query.__name__])["properties"]
    return [
        {"name": name, "in": "query", "required": False, "schema": schema}
        for name, schema in fields.items()
    ]


def _ref(kind: type) -> dict[str, str]:
    return {"$ref": _SCHEMAS.format(name=kind.__name__)}
