"""The scripted chat server: both languages, whole and streamed, its rules, its strictness and its
faults.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from typing import Any

import pytest
from chat import FAULTS, Call, ChatServer, Turn, call, fault, rules, say

SEARCH = {"name": "memory_search", "description": "finds", "parameters": {"type": "object"}}
ANTHROPIC = {"x-api-key": "sk-test", "anthropic-version": "2023-06-01"}
BEARER = {"Authorization": "Bearer sk-test"}


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(key="sk-test") as made:
        yield made


def ask(server: ChatServer, path: str, body: object, headers: dict[str, str]) -> tuple[int, bytes]:
    line = http.client.HTTPConnection(server.root.removeprefix("http://"), timeout=10)
    try:
        line.request("POST", path, json.dumps(body), headers)
        answer = line.getresponse()
        return answer.status, answer.read()
    finally:
        line.close()


def openai(server: ChatServer, *messages: dict[str, Any], **more: object) -> tuple[int, Any]:
    body = {"model": "m", "messages": messages, **more}
    status, data = ask(server, "/v1/chat/completions", body, BEARER)
    return status, json.loads(data)


def anthropic(server: ChatServer, *messages: dict[str, Any], **more: object) -> tuple[int, Any]:
    body = {"model": "m", "max_tokens": 100, "messages": messages, **more}
    status, data = ask(server, "/v1/messages", body, ANTHROPIC)
    return status, json.loads(data)


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def sent(data: bytes) -> list[Any]:
    """The events of a stream, the closing word left out."""
    lines = [line[6:] for line in data.decode().split("\n") if line.startswith("data: ")]
    return [json.loads(line) for line in lines if line != "[DONE]"]


def test_openai_hears_a_call_and_then_a_text(server: ChatServer) -> None:
    server.script(
        [
            call("memory_search", query="database"),
            say("PostgreSQL.", input_tokens=50, output_tokens=3),
        ]
    )
    _, first = openai(
        server,
        {"role": "system", "content": "Be brief."},
        user("Which database?"),
        tools=[{"type": "function", "function": SEARCH}],
    )
    asked = first["choices"][0]["message"]["tool_calls"][0]
    assert (asked["function"]["name"], json.loads(asked["function"]["arguments"])) == (
        "memory_search",
        {"query": "database"},
    )
    assert first["choices"][0]["finish_reason"] == "tool_calls"
    answered = {"role": "tool", "tool_call_id": asked["id"], "content": "found"}
    _, second = openai(server, user("Which database?"), first["choices"][0]["message"], answered)
    assert second["choices"][0]["message"]["content"] == "PostgreSQL."
    assert second["usage"] == {"prompt_tokens": 50, "completion_tokens": 3, "total_tokens": 53}
    assert (server.seen[0].system, server.seen[0].tools, server.seen[0].last_user) == (
        "Be brief.",
        ("memory_search",),
        "Which database?",
    )
    assert (server.seen[1].step, server.seen[1].results) == (1, ["found"])


def test_anthropic_hears_a_call_and_then_a_text(server: ChatServer) -> None:
    server.script(
        [Turn("Let me look.", (Call("memory_get", {"path": "MEMORY.md"}),)), say("PostgreSQL.")]
    )
    _, first = anthropic(
        server,
        user("Which database?"),
        system="Be brief.",
        tools=[{"name": "memory_get", "input_schema": {}}],
    )
    assert [part["type"] for part in first["content"]] == ["text", "tool_use"]
    assert first["stop_reason"] == "tool_use"
    result = {
        "type": "tool_result",
        "tool_use_id": first["content"][1]["id"],
        "content": [{"type": "text", "text": "found"}],
    }
    _, second = anthropic(
        server,
        user("Which database?"),
        {"role": "assistant", "content": first["content"]},
        {"role": "user", "content": [result]},
    )
    assert second["content"] == [{"type": "text", "text": "PostgreSQL."}]
    assert second["usage"]["input_tokens"] > 0 < second["usage"]["output_tokens"]
    assert (server.seen[0].system, server.seen[0].tools, server.seen[1].results) == (
        "Be brief.",
        ("memory_get",),
        ["found"],
    )


def test_openai_streams_text_calls_and_usage(server: ChatServer) -> None:
    server.script(
        [Turn("Let me look that up.", (Call("memory_search", {"query": "database"}),), 40, 9)]
    )
    body = {
        "model": "m",
        "messages": [user("?")],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    status, data = ask(server, "/v1/chat/completions", body, BEARER)
    chunks = sent(data)
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    arguments = [
        one["tool_calls"][0]["function"]["arguments"] for one in deltas if "tool_calls" in one
    ]
    assert (status, data.endswith(b"data: [DONE]\n\n")) == (200, True)
    assert "".join(one.get("content") or "" for one in deltas) == "Let me look that up."
    assert json.loads("".join(arguments)) == {"query": "database"}
    assert len(arguments) > 2
    assert chunks[-1]["usage"]["total_tokens"] == 49


def test_anthropic_streams_text_and_calls(server: ChatServer) -> None:
    server.script(
        [Turn("Let me look that up.", (Call("memory_search", {"query": "database"}),), 40, 9)]
    )
    body = {"model": "m", "max_tokens": 9, "messages": [user("?")], "stream": True}
    _, data = ask(server, "/v1/messages", body, ANTHROPIC)
    found = sent(data)
    deltas = [event["delta"] for event in found if event["type"] == "content_block_delta"]
    assert "".join(delta.get("text", "") for delta in deltas) == "Let me look that up."
    assert json.loads("".join(delta.get("partial_json", "") for delta in deltas)) == {
        "query": "database"
    }
    assert found[0]["message"]["usage"]["input_tokens"] == 40
    assert [event["type"] for event in found[-2:]] == ["message_delta", "message_stop"]
    assert found[-2]["usage"]["output_tokens"] == 9


def test_rules_look_at_the_last_thing_the_user_said_and_go_on_step_by_step(
    server: ChatServer,
) -> None:
    server.script(
        rules(
            {"Which Database": [call("memory_search", query="x"), say("PostgreSQL.")]}, [say("Hm.")]
        )
    )
    _, first = openai(
        server, user("hello"), {"role": "assistant", "content": "Hi."}, user("which database?")
    )
    made = first["choices"][0]["message"]
    result = {"role": "tool", "tool_call_id": made["tool_calls"][0]["id"], "content": "found"}
    _, second = openai(server, user("which database?"), made, result)
    _, other = openai(server, user("something else"))
    assert second["choices"][0]["message"]["content"] == "PostgreSQL."
    assert other["choices"][0]["message"]["content"] == "Hm."


def test_a_script_may_be_a_function_of_the_request(server: ChatServer) -> None:
    server.script(lambda seen: say(f"You said: {seen.last_user}"))
    assert anthropic(server, user("boo"))[1]["content"][0]["text"] == "You said: boo"


def test_a_script_that_is_over_is_an_error_and_not_an_answer(server: ChatServer) -> None:
    server.script([say("once")])
    assert openai(server, user("?"))[0] == 200
    assert openai(server, user("?"))[0] == 400


@pytest.mark.parametrize("name", FAULTS)
def test_a_refusal_has_its_status_in_both_languages(server: ChatServer, name: str) -> None:
    server.script([fault(name), fault(name)])
    status, body = openai(server, user("?"))
    other, _ = anthropic(server, user("?"))
    assert status == other == FAULTS[name][0]
    assert body["error"]["message"]


def test_a_wrong_key_is_refused_and_echoed(server: ChatServer) -> None:
    status, data = ask(
        server,
        "/v1/chat/completions",
        {"model": "m", "messages": [user("?")]},
        {"Authorization": "Bearer no"},
    )
    assert (status, b"no" in data) == (401, True)


@pytest.mark.parametrize("stream", [False, True])
def test_a_cut_answer_ends_in_the_middle(server: ChatServer, stream: bool) -> None:
    server.script([fault("cut")])
    with pytest.raises(http.client.IncompleteRead):
        ask(
            server,
            "/v1/chat/completions",
            {"model": "m", "messages": [user("?")], "stream": stream},
            BEARER,
        )


def test_who_hangs_is_let_go(server: ChatServer) -> None:
    server.script([fault("hang"), say("back")])
    line = http.client.HTTPConnection(server.root.removeprefix("http://"), timeout=10)
    line.request(
        "POST", "/v1/chat/completions", json.dumps({"model": "m", "messages": [user("?")]}), BEARER
    )
    server.wait_for(1)
    server.release()
    with pytest.raises((http.client.RemoteDisconnected, ConnectionResetError)):
        line.getresponse()
    line.close()
    assert openai(server, user("?"))[0] == 200


WRONG: list[tuple[str, dict[str, Any]]] = [
    (
        "a result without a call",
        {"messages": [user("?"), {"role": "tool", "tool_call_id": "x", "content": "y"}]},
    ),
    (
        "a call without a result",
        {
            "messages": [
                user("?"),
                {
                    "role": "assistant",
                    "tool_calls": [{"id": "a", "function": {"name": "t", "arguments": "{}"}}],
                },
                user("!"),
            ]
        },
    ),
    ("no messages", {"messages": "?"}),
    ("an unknown role", {"messages": [{"role": "wizard", "content": "?"}]}),
]


@pytest.mark.parametrize(("name", "body"), WRONG, ids=[name for name, _ in WRONG])
def test_what_openai_would_refuse_is_refused(
    server: ChatServer, name: str, body: dict[str, Any]
) -> None:
    server.script([say("never")])
    assert ask(server, "/v1/chat/completions", {"model": "m", **body}, BEARER)[0] == 400
    assert server.seen == []


def test_what_anthropic_would_refuse_is_refused(server: ChatServer) -> None:
    server.script([say("never")])
    assert anthropic(server, {"role": "assistant", "content": "I begin."})[0] == 400
    assert anthropic(server, user(" "))[0] == 400
    assert (
        ask(
            server,
            "/v1/messages",
            {"model": "m", "max_tokens": 9, "messages": [user("?")]},
            {"x-api-key": "sk-test"},
        )[0]
        == 400
    )
    assert ask(server, "/v1/messages", {"model": "m", "messages": [user("?")]}, ANTHROPIC)[0] == 400


def test_other_addresses_are_unknown_and_the_models_are_listed(server: ChatServer) -> None:
    assert ask(server, "/v1/other", {}, BEARER)[0] == 404
    line = http.client.HTTPConnection(server.root.removeprefix("http://"), timeout=10)
    line.request("GET", "/v1/models")
    assert json.loads(line.getresponse().read())["data"][0]["id"] == "scripted"
    line.close()
