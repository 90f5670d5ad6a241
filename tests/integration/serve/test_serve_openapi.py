"""The OpenAPI description is valid, complete, and true of what the server answers."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from team_server import Team, TeamServer

from clawmark.serve.rest.openapi import openapi
from clawmark.serve.rest.routes import ROUTES

validator = pytest.importorskip("openapi_spec_validator")
jsonschema = pytest.importorskip("jsonschema")


def schema(document: dict[str, Any], name: str) -> Any:
    return jsonschema.Draft202012Validator({**document, "$ref": f"#/components/schemas/{name}"})


def test_the_description_is_valid_openapi(server: TeamServer) -> None:
    reply = server.request("GET", "/openapi.json")
    assert reply.status == 200
    document = reply.json()
    assert document["openapi"] == "3.1.0"
    validator.OpenAPIV31SpecValidator(document).validate()
    assert document == openapi()


def test_every_route_is_described_once() -> None:
    described = {
        (method.upper(), path): operation
        for path, methods in openapi()["paths"].items()
        for method, operation in methods.items()
    }
    assert set(described) == {(route.method, route.path) for route in ROUTES}
    ids = [operation["operationId"] for operation in described.values()]
    assert sorted(ids) == sorted(route.name for route in ROUTES)
    for operation in described.values():
        assert {"401", "403", "429", "503"} <= set(operation["responses"])


def test_answers_and_errors_have_the_described_form(team: Team, server: TeamServer) -> None:
    document = openapi()
    ada = team.token("ada")
    text = "The ferry leaves at nine.\n"
    file = {
        "path": "memory/team/ferry.md",
        "text": text,
        "hash": hashlib.sha256(text.encode()).hexdigest(),
    }
    calls: dict[str, tuple[str, object]] = {
        "appendEntry": ("/v1/spaces/team/entries", {"text": "A heron nests.", "key": "k1"}),
        "publish": ("/v1/spaces/team/publish", {"documents": [file]}),
        "search": ("/v1/search", {"query": "ferry heron", "explain": True}),
        "listSpaces": ("/v1/spaces", None),
        "listPublished": ("/v1/spaces/team/published", None),
        "listChanges": ("/v1/spaces/team/changes", None),
        "readDocument": ("/v1/documents/team/ada/memory/team/ferry.md", None),
        "withdraw": ("/v1/spaces/team/withdraw", {"paths": ["memory/team/ferry.md"]}),
    }
    by_name = {route.name: route for route in ROUTES}
    assert set(calls) == set(by_name)
    for name, (path, body) in calls.items():
        route = by_name[name]
        reply = server.request(route.method, path, ada, body)
        assert reply.status == route.status, (name, reply)
        if route.answer is not None:
            schema(document, route.answer.__name__).validate(reply.json())
        if route.body is not None:
            schema(document, route.body.__name__).validate(body)
        refused = server.request(route.method, path, "", body)
        assert refused.status == 401
        schema(document, "ErrorAnswer").validate(refused.json())


def test_a_search_without_hits_has_the_described_form(team: Team, server: TeamServer) -> None:
    reply = server.request("POST", "/v1/search", team.token("bob"), {"query": "zzzxqj"})
    assert reply.json()["nothing"]["code"] == "no-such-words"
    schema(openapi(), "FoundAnswer").validate(reply.json())
