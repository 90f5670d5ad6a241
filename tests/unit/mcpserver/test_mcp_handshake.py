"""The answer to `initialize` that is given before the SDK is loaded, compared with the SDK's own
rules.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("mcp")

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import InitializeRequestParams, InitializeResult
from mcp_types.methods import validate_client_request
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_HANDSHAKE_VERSION

from clawmark.mcp.stdio.handshake import VERSIONS, answer_initialize

CLIENT = {"name": "host", "version": "1"}
HOSTS: dict[str, dict[str, Any]] = {
    "nothing": {},
    "roots": {"roots": {"listChanged": True}},
    "everything": {
        "roots": {"listChanged": False},
        "sampling": {"context": {}, "tools": {}},
        "elicitation": {"form": {}, "url": {}},
        "tasks": {
            "list": {},
            "cancel": {},
            "requests": {"sampling": {"createMessage": {}}, "elicitation": {"create": {}}},
        },
        "experimental": {"x": {}},
        "extensions": {"io.example/x": {}},
    },
    "names of its own": {
        "tools": True,
        "prompts": True,
        "logging": False,
        "roots": {"listChanged": False},
    },
}


def request(params: object, number: object = 1) -> bytes:
    return json.dumps(
        {"jsonrpc": "2.0", "id": number, "method": "initialize", "params": params}
    ).encode()


def initialize(
    version: str = VERSIONS[-1], capabilities: object = None, client: object = None
) -> bytes:
    return request(
        {
            "protocolVersion": version,
            "capabilities": capabilities or {},
            "clientInfo": CLIENT if client is None else client,
        }
    )


def test_the_versions_are_those_of_the_sdk() -> None:
    assert VERSIONS == HANDSHAKE_PROTOCOL_VERSIONS
    assert VERSIONS[-1] == LATEST_HANDSHAKE_VERSION


@pytest.mark.parametrize("version", [*VERSIONS, "2026-07-28", "1999-01-01", ""])
def test_a_known_version_is_kept_and_any_other_becomes_the_newest(version: str) -> None:
    handshake = answer_initialize(initialize(version), "Search first.")
    assert handshake is not None
    answer, sent_on = json.loads(handshake.answer), json.loads(handshake.request)
    expected = version if version in VERSIONS else VERSIONS[-1]
    assert answer["result"]["protocolVersion"] == sent_on["params"]["protocolVersion"] == expected
    assert (answer["id"], sent_on["id"]) == (1, handshake.request_id)
    InitializeResult.model_validate(answer["result"], by_name=False)


@pytest.mark.parametrize("host", HOSTS)
def test_initialize_requests_of_known_hosts_are_answered_early(host: str) -> None:
    client = {
        **CLIENT,
        "title": "Host",
        "websiteUrl": "https://example.org",
        "description": "A host.",
    }
    handshake = answer_initialize(initialize(capabilities=HOSTS[host], client=client), "")
    assert handshake is not None
    params = json.loads(handshake.request)["params"]
    assert (params["capabilities"], params["clientInfo"]) == (HOSTS[host], client)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"{",
        b"[]",
        b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
        b'{"jsonrpc":"2.0","method":"initialize","params":{}}',
        request({}),
        request(None),
        initialize(client={"name": "x"}),
        initialize(client={"name": "x", "version": 1}),
        initialize(client={**CLIENT, "icons": []}),
        initialize(capabilities={"roots": None}),
        initialize(capabilities={"roots": {"listChanged": "yes"}}),
        initialize(capabilities={"experimental": {"x": 1}}),
        initialize().replace(b'"id": 1', b'"id": null'),
        initialize().replace(b'"id": 1', b'"id": true'),
        initialize().replace(b'"id": 1', b'"id": "\\ud800"'),
        initialize().replace(b'"2.0"', b'"1.0"'),
        initialize().replace(b'"name"', b'"name": "y", "name"'),
    ],
)
def test_anything_else_is_left_to_the_sdk(line: bytes) -> None:
    assert answer_initialize(line, "") is None


keys = st.sampled_from(
    [
        "roots",
        "sampling",
        "elicitation",
        "tasks",
        "experimental",
        "extensions",
        "tools",
        "requests",
        "form",
    ]
)
leaves = st.none() | st.booleans() | st.integers() | st.text(max_size=2)
values = st.recursive(
    leaves,
    lambda inner: st.dictionaries(
        keys | st.sampled_from(["listChanged", "list", "context"]), inner, max_size=3
    ),
    max_leaves=6,
)
clients = st.dictionaries(
    st.sampled_from(["name", "version", "title", "icons", "websiteUrl", "x"]),
    st.text(max_size=2) | leaves,
)


@given(st.dictionaries(keys, values, max_size=3), clients, st.text(max_size=3) | st.none())
def test_every_request_that_is_answered_early_is_valid_for_the_sdk(
    capabilities: dict[str, Any], client: dict[str, Any], version: str | None
) -> None:
    params = {
        "protocolVersion": version,
        "capabilities": capabilities,
        "clientInfo": {**CLIENT, **client},
    }
    handshake = answer_initialize(request(params), "")
    if handshake is not None:
        sent_on = json.loads(handshake.request)["params"]
        validate_client_request("initialize", LATEST_HANDSHAKE_VERSION, sent_on)
        InitializeRequestParams.model_validate(sent_on, by_name=False)
