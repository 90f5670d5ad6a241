"""Bytes to messages: strict, and never a surprise."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("mcp_types")

from hypothesis import given
from hypothesis import strategies as st
from mcp_types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from clawmark.mcp.messages import Refusal, dump_message, read_message

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
def test_no_bytes_raise(data: bytes) -> None:
    assert read_message(data) is not None


@given(messages)
def test_no_object_raises_and_all_that_is_read_can_be_written(value: dict[str, object]) -> None:
    read = read_message(json.dumps({"jsonrpc": "2.0", **value}).encode())
    if isinstance(read, Refusal):
        written = json.loads(read.message().model_dump_json(by_alias=True, exclude_unset=True))
        assert written["error"]["code"] in (-32700, -32600, -32602)
        assert "id" in written
    else:
        read.model_dump_json(by_alias=True, exclude_unset=True)
        if isinstance(read, JSONRPCRequest):
            assert read.id == value["id"]


def test_half_a_surrogate_pair_is_replaced_and_the_rest_of_the_text_is_kept() -> None:
    read = read_message(
        b'{"jsonrpc":"2.0","id":1,"method":"a\\ud83db","params":{"\\udc00":["\\ud83d\\ude00\\ud83d"]}}'
    )
    assert isinstance(read, JSONRPCRequest)
    assert (read.method, read.params) == ("a\ufffdb", {"\ufffd": ["\U0001f600\ufffd"]})


def test_an_id_with_half_a_surrogate_pair_is_refused_because_it_cannot_come_back_unchanged() -> (
    None
):
    read = read_message(b'{"jsonrpc":"2.0","id":"\\ud800","method":"ping"}')
    assert isinstance(read, Refusal)
    assert (read.code, read.id) == (-32600, None)


def test_a_message_that_utf8_cannot_carry_is_written_with_the_text_made_valid() -> None:
    answer = JSONRPCResponse(jsonrpc="2.0", id=1, result={"path": "memory/\udcff.md"})
    assert json.loads(dump_message(answer)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"path": "memory/\ufffd.md"},
    }


def test_the_keys_decide_what_a_message_is() -> None:
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"method":"ping"}'), JSONRPCRequest)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","method":"ping"}'), JSONRPCNotification)
    assert isinstance(read_message(b'{"jsonrpc":"2.0","id":1,"result":{}}'), JSONRPCResponse)
    odd = read_message(b'{"jsonrpc":"2.0","id":null,"method":"ping"}')
    assert isinstance(odd, Refusal), "an id that is none makes no notification"


def test_a_refused_request_keeps_its_id() -> None:
    for text in (
        '{"jsonrpc":"1.0","id":"a","method":"ping"}',
        '{"jsonrpc":"2.0","id":"a","method":"x","params":[1]}',
    ):
        read = read_message(text.encode())
        assert isinstance(read, Refusal)
        assert read.id == "a"


@pytest.mark.parametrize(
    "text",
    ['{"a":1,"a":2}', '{"a":Infinity}', '{"a":-NaN}', '{"a":1%s}' % ("0" * 5000), "[" * 100_000],
)
def test_what_parsers_disagree_about_is_refused(text: str) -> None:
    assert isinstance(read_message(text.encode()), Refusal)
