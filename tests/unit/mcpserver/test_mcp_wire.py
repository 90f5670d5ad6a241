"""Bytes to messages: strict, and never a surprise."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("mcp_types")

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from clawmark.mcp.wire import Refusal, read_message

anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("jsonrpc", "id", "method", "params", "result", "error"), anything)
)


@given(st.binary(max_size=200))
def test_no_bytes_raise(data: bytes) -> None:
    assert read_message(data) is not None


@given(messages)
def test_no_object_raises_and_every_refusal_can_be_written(value: dict[str, object]) -> None:
    read = read_message(json.dumps({"jsonrpc": "2.0", **value}).encode())
    if isinstance(read, Refusal):
        written = json.loads(read.message().model_dump_json(by_alias=True, exclude_unset=True))
        assert written["error"]["code"] in (-32700, -32600, -32602)
        assert "id" in written
    elif isinstance(read, JSONRPCRequest):
        assert read.id == value["id"]


def test_the_keys_decide_what_a_message_is() -> None:
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), JSONRPCRequest)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","method":"ping"}'), JSONRPCNotification)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"result":{}}'), JSONRPCResponse)
    odd = read_message(b'{"jsonrpc":"2.0","id":null,"method":"ping"}')
    assert isinstance(odd, Refusal), "an id that is none makes no notification"


def test_a_refused_request_keeps_its_id() -> None:
    for text in ('{"jsonrpc":"1.0","id":"a","method":"ping"}', '{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}'):
        read = read_message(text.encode())
        assert isinstance(read, Refusal)
        assert read.id == "a"


@pytest.mark.parametrize(
    "text", ['{"a":1,"a":2}', '{"a":Infinity}', '{"a":-NaN}', '{"a":1%s}' % ("0" * 5000), "[" * 100_000]
)
def test_what_parsers_disagree_about_is_refused(text: str) -> None:
    assert isinstance(read_message(text.encode()), Refusal)
