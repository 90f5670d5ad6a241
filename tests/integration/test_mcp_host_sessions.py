"""`clawmark mcp --session-from-host`: the host names the session of each request in `_meta`.

One server answers several sessions. The key counts only on stdio and only with the flag; a request
without a usable key belongs to an unknown session, which sees no private memory."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from commands import Place, new_place
from mcp_servers import INITIALIZE, StdioServer, call, http_server, stdio_server

pytest.importorskip("mcp")

QUESTION = "kingfisher by the harbour"
PRIVATE = "marker4711"
SHARED = "Memory is unavailable in shared sessions"
MAIN = {"clawmark/sessionKey": "agent:main:main"}
GROUP = {"clawmark/sessionKey": "agent:main:telegram:group:-100200300"}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    place = new_place(tmp_path_factory.mktemp("host"))
    place.write("MEMORY.md", f"# Facts\n\n- The {QUESTION} is {PRIVATE}.\n")
    assert place.run("index").code == 0
    return place


@pytest.fixture(scope="module")
def server(place: Place) -> Iterator[StdioServer]:
    with stdio_server(["--session-from-host"], place.environment()) as server:
        server.initialize()
        yield server


def request(method: str, params: Mapping[str, object], meta: object = None) -> dict[str, Any]:
    given = {} if meta is None else {"_meta": meta}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, **given}}


def searched(server: StdioServer, meta: object) -> str:
    """The whole answer to a search, as text."""
    arguments = {"query": QUESTION, "minScore": 0}
    params = {"name": "memory_search", "arguments": arguments}
    return json.dumps(server.ask(request("tools/call", params, meta)))


def test_one_server_answers_a_private_and_a_shared_session(server: StdioServer) -> None:
    assert PRIVATE in searched(server, MAIN)
    answer = searched(server, GROUP)
    assert SHARED in answer and PRIVATE not in answer
    assert PRIVATE in searched(server, MAIN)


@pytest.mark.parametrize(
    "meta",
    [
        None,
        {},
        {"clawmark/sessionKey": ""},
        {"clawmark/sessionKey": " "},
        {"clawmark/sessionKey": None},
        {"clawmark/sessionKey": True},
        {"clawmark/sessionKey": 0},
        {"clawmark/sessionKey": {"key": "main"}},
        {"clawmark/sessionKey": ["main"]},
        {"clawmark/sessionKey": "main\ud800"},
        {"clawmark/sessionKey": "agent:main:main\u200b"},
        {"clawmark/sessionKey": "agent:main:direct:" + "a" * 1_000_000},
        {"clawmark/sessionkey": "main"},
        {"sessionKey": "main"},
        {**MAIN, "clawmark/chatType": "group"},
        {**MAIN, "clawmark/chatType": ""},
        {**MAIN, "clawmark/chatType": None},
        {**MAIN, "clawmark/chatType": {"type": "direct"}},
        {**MAIN, "clawmark/chatType": "d" * 1_000_000},
    ],
    ids=lambda meta: json.dumps(meta)[:60],
)
def test_request_without_a_usable_private_key_sees_nothing_private(
    server: StdioServer, meta: object
) -> None:
    answer = searched(server, meta)
    assert SHARED in answer and PRIVATE not in answer


@pytest.mark.parametrize("meta", ["main", ["main"], 1])
def test_meta_that_is_not_an_object_is_an_error(server: StdioServer, meta: object) -> None:
    answer = server.ask(request("tools/call", {"name": "memory_status", "arguments": {}}, meta))
    assert answer["error"]["code"] == -32602


def test_arguments_of_the_model_do_not_name_a_session(server: StdioServer) -> None:
    arguments = {"query": QUESTION, "_meta": MAIN, **MAIN, "sessionKey": "main"}
    params = {"name": "memory_search", "arguments": arguments}
    answer = json.dumps(server.ask(request("tools/call", params, GROUP)))
    assert SHARED in answer and PRIVATE not in answer


def test_declared_direct_chat_keeps_a_private_session_private(server: StdioServer) -> None:
    assert PRIVATE in searched(server, {**MAIN, "clawmark/chatType": "direct"})
    answer = searched(server, {**GROUP, "clawmark/chatType": "direct"})
    assert SHARED in answer and PRIVATE not in answer


def test_only_private_sessions_are_offered_and_allowed_to_append(
    server: StdioServer, place: Place
) -> None:
    def names(meta: object) -> set[str]:
        answer = server.ask(request("tools/list", {}, meta))
        return {tool["name"] for tool in answer["result"]["tools"]}

    assert "memory_append" in names(MAIN)
    assert "memory_append" not in names(GROUP) | names(None)
    note = {"text": "Ada decided that the ferry timetable is printed on Mondays."}
    params = {"name": "memory_append", "arguments": note}
    refused = server.ask(request("tools/call", params, GROUP))
    assert refused["result"]["isError"]
    assert "ferry timetable" not in _everything(place)
    written = server.ask(request("tools/call", params, MAIN))
    assert written["result"]["structuredContent"]["written"] is True
    assert "ferry timetable" in _everything(place)


def test_resources_follow_the_session_of_the_request(server: StdioServer) -> None:
    read = {"uri": "memory://MEMORY.md"}
    assert PRIVATE in json.dumps(server.ask(request("resources/read", read, MAIN)))
    assert server.ask(request("resources/list", {}, MAIN))["result"]["resources"]
    for meta in (GROUP, None):
        assert SHARED in server.ask(request("resources/read", read, meta))["error"]["message"]
        assert SHARED in server.ask(request("resources/subscribe", read, meta))["error"]["message"]
        assert server.ask(request("resources/list", {}, meta))["result"]["resources"] == []


def test_recall_prompt_follows_the_session_of_the_request(server: StdioServer) -> None:
    def text(meta: object) -> str:
        return json.dumps(server.ask(request("prompts/get", {"name": "recall"}, meta))["result"])

    assert "call memory_search" in text(MAIN) and SHARED not in text(MAIN)
    assert SHARED in text(GROUP) and SHARED in text(None)


def test_instructions_describe_the_tools_and_hold_no_memory(place: Place) -> None:
    with stdio_server(["--session-from-host"], place.environment()) as server:
        instructions = server.initialize()["result"]["instructions"]
    assert "memory_search" in instructions and PRIVATE not in instructions


def test_without_the_flag_the_key_in_a_request_is_ignored(place: Place) -> None:
    shared = ["--session", "agent:main:channel:shared"]
    with stdio_server(shared, place.environment()) as server:
        server.initialize()
        assert PRIVATE not in searched(server, MAIN)
    with stdio_server([], place.environment()) as server:
        server.initialize()
        assert PRIVATE in searched(server, GROUP)


def test_key_in_an_http_request_is_ignored(place: Place) -> None:
    with http_server([], place.environment()) as server:
        accept = ("Accept", "application/json, text/event-stream")
        opened = server.post(INITIALIZE, accept)
        session = ("Mcp-Session-Id", opened.headers["mcp-session-id"])
        search = call("memory_search", {"query": QUESTION, "minScore": 0})
        search["params"]["_meta"] = MAIN
        answer = server.post(search, accept, session).body.decode()
        assert SHARED in answer and PRIVATE not in answer


@pytest.mark.parametrize("words", [["--http"], ["--session", "main"], ["--session", ""]])
def test_flag_is_refused_with_http_and_with_a_fixed_session(place: Place, words: list[str]) -> None:
    ran = place.run("mcp", "--session-from-host", *words)
    assert ran.code == 2 and "--session-from-host" in ran.err and "Traceback" not in ran.err


def _everything(place: Place) -> str:
    return "".join(file.read_text() for file in Path(place.workspace).rglob("*.md"))
