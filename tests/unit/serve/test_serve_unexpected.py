"""What a client gets if the server fails to answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import MutableMapping
from typing import Any

import pytest

pytest.importorskip("starlette")
pytest.importorskip("psycopg_pool")

from clawmark.embed.base import Choice
from clawmark.serve.app import ROUTE_NAMES, make_app
from clawmark.serve.clients import client_of, read_proxies
from clawmark.serve.database import DatabaseTeam
from clawmark.serve.mcp import McpEndpoint
from clawmark.serve.metrics import Metrics
from clawmark.serve.service import Service, ServiceOptions
from clawmark.store.postgres.servers import Server


class BrokenTeam(DatabaseTeam):
    """Fails in a way that the server does not expect."""

    def pool(self) -> Any:
        raise RuntimeError("a text of the memory")


def test_an_unexpected_error_has_the_form_of_every_other_error() -> None:
    team = BrokenTeam(Server("postgresql://nowhere/x"), Choice((), "none", None))
    options = ServiceOptions(make_query=lambda _: pytest.fail(), threads=1, per_token=0)
    service = Service(team, Metrics(ROUTE_NAMES), options)
    app = make_app(service, McpEndpoint(service), lambda: False)
    scope: dict[str, Any] = {
        "type": "http",
        "method": "GET",
        "path": "/metrics",
        "query_string": b"",
        "headers": [],
        "client": ("127.0.0.1", 1),
        "state": {},
    }
    scope["state"]["client"] = client_of(scope, read_proxies([]))
    sent = list[MutableMapping[str, Any]]()

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.request", "body": b""}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    with pytest.raises(RuntimeError):  # passed on, for the log
        asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 500
    assert json.loads(sent[1]["body"])["error"]["type"] == "Unexpected"
