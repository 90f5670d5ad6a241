"""Messages are parsed strictly, and any input is answered."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("mcp_types")

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from clawmark.mcp.messages import InvalidMessage, dump_message, read_message

text = st.text() | st.text(st.sampled_from("a\ud800\udbff\udc00\udfff"), max_size=4)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | text,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(text, inner, max_size=3),
    max_leaves=8,
)
messages = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("jsonrpc", "id", "method", "params", "result", "error"), anything)
)


@given(st.binary(max_size=200))
def test_any_bytes_can_be_read_without_an_exception(data: bytes) -> None:
    assert read_message(data) is not None


@given(messages)
def test_any_object_can_be_read_and_written_again(value: dict[str, object]) -> None:
    read = read_message(json.dumps({"jsonrpc": "2.0", **value}).encode())
    if isinstance(read, InvalidMessage):
        written = json.loads(read.response().model_dump_json(by_alias=True, exclude_unset=True))
        assert written["error"]["code"] in (-32700, -32600, -32602)
        assert "id" in written
    else:
        read.model_dump_json(by_alias=True, exclude_unset=True)
        if isinstance(read, JSONRPCRequest):
            assert read.id == value["id"]


def test_a_lone_surrogate_is_replaced_and_the_other_text_is_kept() -> None:
    read = read_message(
        b'{"jsonrpc":"2.0","id":1,"method":"a\\ud83db","params":{"\\udc00":["\\ud83d\\ude00\\ud83d"]}}'
    )
    assert isinstance(read, JSONRPCRequest)
    assert (read.method, read.params) == ("a\ufffdb", {"\ufffd": ["\U0001f600\ufffd"]})


def test_an_id_with_a_lone_surrogate_is_refused() -> None:
    read = read_message(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}')
    assert isinstance(read, InvalidMessage)
    assert (read.code, read.id) == (-32600, None)


def test_a_message_that_utf8_cannot_encode_is_made_valid() -> None:
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"path": "memory/\udcff.md"})
    assert json.loads(dump_message(answer)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"path": "memory/\ufffd.md"},
    }


def test_the_keys_decide_the_type_of_a_message() -> None:
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), JSONRPCRequest)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","method":"ping"}'), JSONRPCNotification)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"result":{}}'), JSONRPCResponse)
    odd = read_message(b'{"jsonrpc":"2.0","id":null,"method":"ping"}')
    assert isinstance(odd, InvalidMessage), "a request with an invalid id is not a notification"


def test_a_refused_request_keeps_its_id() -> None:
    for text in (
        '{"jsonrpc":"1.0","id":"a","method":"ping"}',
        '{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}',
    ):
        read = read_message(text.encode())
        assert isinstance(read, InvalidMessage)
        assert read.id == "a"


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', '{"a":Infinity}', '{"a":-NaN}', '{"a":1%s}' % ("0" * 5000), "[" * 100_000],
)
def test_json_that_parsers_disagree_about_is_refused(text: str) -> None:
    assert isinstance(read_message(text.encode()), InvalidMessage)
