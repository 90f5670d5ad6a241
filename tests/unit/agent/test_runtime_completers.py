"""Chat models against the scripted server, with OpenAI's and with Anthropic's API: answers, tool
calls, tokens, failures, deadlines and keys.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest
from chat import Call, ChatServer, Turn, call, fault, say
from loopback import Link, Loopback, Request, head

from clawmark.agent.models import pydantic_models
from clawmark.agent.models.catalog import (
    OWN_KEY,
    ChatModel,
    ModelName,
    choose_completer,
    parse_model,
)
from clawmark.agent.models.completer import Completer, Message, ToolCall, complete_with_tools
from clawmark.agent.tools.base import Payload, Tool
from clawmark.model.errors import CompletionError, ConfigError, ContextTooLong
from clawmark.testing import ScriptedCompleter, completer_contract

KEY = "sk-test-4f9aXb21Qz77Lm03"
HELLO = [Message("user", "Which database?")]


@pytest.fixture
def server() -> Iterator[ChatServer]:
    with ChatServer(key=KEY) as made:
        yield made


@pytest.fixture(params=["openai", "anthropic"])
def completer(request: pytest.FixtureRequest, server: ChatServer) -> Completer:
    return model_at(server, request.param)


def model_at(server: ChatServer, provider: str = "openai") -> ChatModel:
    base_url = server.openai_url if provider == "openai" else server.anthropic_url
    return ChatModel(ModelName(provider, "scripted", base_url), KEY)


def tool(name: str, answer: Callable[[object], Payload]) -> Tool:
    return Tool(
        name=name,
        description=f"Calls {name}.",
        parameters={"type": "object", "properties": {}},
        call=answer,
    )


def test_answer_has_text_and_token_counts(server: ChatServer, completer: Completer) -> None:
    server.script([say("PostgreSQL.", input_tokens=120, output_tokens=7)])
    assert completer.complete("Be brief.", HELLO) == ("PostgreSQL.", (), 120, 7)
    assert (server.seen[0].system, server.seen[0].last_user, server.seen[0].tools) == (
        "Be brief.",
        "Which database?",
        (),
    )


def test_tools_run_until_the_model_answers_without_a_call(
    server: ChatServer, completer: Completer
) -> None:
    asked: list[object] = []

    def find(given: object) -> Payload:
        asked.append(given)
        return {"results": ["We chose PostgreSQL."]}

    both = Turn("Let me look.", (Call("find", {"query": "database"}), Call("nowhere", {})))
    server.script([both, say("PostgreSQL.", input_tokens=300, output_tokens=5)])
    turns = complete_with_tools(completer, "", HELLO, [tool("find", find)])
    assert (turns.text, turns.finished, turns.input_tokens) == ("PostgreSQL.", True, 300)
    assert [json.loads(str(one)) for one in asked] == [{"query": "database"}]
    assert [one.role for one in turns.added] == ["assistant", "tool", "tool", "assistant"]
    assert "We chose PostgreSQL." in server.seen[1].results[0]
    assert "There is no tool 'nowhere'" in server.seen[1].results[1]


def test_requests_are_limited_if_the_model_keeps_calling_tools(
    server: ChatServer, completer: Completer
) -> None:
    server.script(lambda seen: call("find"))
    turns = complete_with_tools(
        completer, "", HELLO, [tool("find", lambda given: {})], most_turns=3
    )
    assert (turns.finished, len(server.seen)) == (False, 3)


def test_invalid_arguments_are_passed_to_the_tool(server: ChatServer) -> None:
    server.script([Turn("", (Call("find", '{"query": '),)), say("Sorry.")])
    turns = complete_with_tools(
        model_at(server), "", HELLO, [tool("find", lambda given: {"got": given})]
    )
    assert json.loads(turns.added[1].text) == {"got": '{"query": '}


def test_temporary_failure_is_retried(server: ChatServer, completer: Completer) -> None:
    server.script([fault("broken"), say("Here I am.")])
    assert completer.complete("", HELLO).text == "Here I am."
    assert len(server.seen) == 2


@pytest.mark.parametrize("name", ["quota", "key", "no-model", "garbage", "empty"])
def test_permanent_failure_is_one_sentence_without_the_key(
    server: ChatServer, completer: Completer, name: str
) -> None:
    server.script(lambda seen: fault(name))
    with pytest.raises(CompletionError) as error:
        completer.complete("", HELLO, seconds=5)
    said = f"{error.value.message} {error.value.hint}"
    assert KEY not in said
    assert "memorySearch" not in said and "keywords" not in said
    assert error.value.hint and len(server.seen) == 1


@pytest.mark.parametrize("name", ["hang", "cut", "reset"])
def test_the_deadline_covers_every_attempt(
    server: ChatServer, completer: Completer, name: str
) -> None:
    server.script(lambda seen: fault(name))
    with pytest.raises(CompletionError):
        completer.complete("", HELLO, seconds=0.3)
    server.release()


def test_messages_over_the_context_window_raise_context_too_long(
    server: ChatServer, completer: Completer
) -> None:
    server.script([fault("too-long")])
    with pytest.raises(ContextTooLong, match="context window"):
        completer.complete("", HELLO)


def test_key_is_only_sent_in_a_header(server: ChatServer, completer: Completer) -> None:
    server.script([say("yes")])
    completer.complete("", HELLO)
    request = server.requests[0]
    assert KEY in " ".join(request.headers.values())
    assert KEY not in request.target and KEY.encode() not in request.body
    assert KEY not in repr(completer)


def test_invalid_unicode_is_replaced(server: ChatServer, completer: Completer) -> None:
    server.script([say("fine")])
    assert completer.complete("\ud800", [Message("user", "half \udfff")]).text == "fine"
    assert server.seen[0].last_user == "half \ufffd"


def test_history_with_calls_and_empty_texts_is_accepted(
    server: ChatServer, completer: Completer
) -> None:
    server.script([say("on we go")])
    history = [
        Message("assistant", "Welcome."),
        Message("user", "Find it."),
        Message("assistant", "", (ToolCall("a", "find", "{}"), ToolCall("b", "find", "not json"))),
        Message("tool", "one", call_id="a"),
        Message("tool", "two", call_id="b"),
        Message("user", "And?"),
    ]
    assert completer.complete("", history, [tool("find", lambda given: {})]).text == "on we go"
    assert [one.text for one in server.seen[0].messages if one.role == "tool"] == ["one", "two"]


NAMES = [
    ("openai:gpt-4o-mini", "openai", "gpt-4o-mini", 128_000),
    ("openai/gpt-4.1", "openai", "gpt-4.1", 1_000_000),
    ("anthropic:claude-sonnet-4-5", "anthropic", "claude-sonnet-4-5", 200_000),
    ("google/gemini-2.5-flash", "gemini", "gemini-2.5-flash", 1_000_000),
    ("ollama:qwen3:8b", "ollama", "qwen3:8b", 32_768),
    ("http://127.0.0.1:8080/v1", "", "default", 32_768),
    ("mistral:7b@http://127.0.0.1:8080/v1/", "", "mistral:7b", 32_768),
    ("anthropic:claude-x@http://127.0.0.1:1", "anthropic", "claude-x", 200_000),
]


@pytest.mark.parametrize(
    ("name", "provider", "model", "window"), NAMES, ids=[one[0] for one in NAMES]
)
def test_name_is_parsed_into_provider_model_and_window(
    name: str, provider: str, model: str, window: int
) -> None:
    parsed = parse_model(name)
    assert (parsed.provider, parsed.model, parsed.window) == (provider, model, window)
    assert parsed.base_url.startswith("http") and not parsed.base_url.endswith("/")


@pytest.mark.parametrize(
    "name",
    ["", "gpt-4o", "openai:", "wizard:x", "ftp://host", "http://169.254.169.254/v1", "x@http://"],
)
def test_invalid_name_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        parse_model(name)


def test_missing_or_invalid_key_is_reported_with_its_variable() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        choose_completer("openai:gpt-4o-mini", {})
    with pytest.raises(ConfigError, match="not allowed in a key"):
        choose_completer("anthropic:claude", {"ANTHROPIC_API_KEY": "sk\n1"})


def test_model_at_an_address_gets_the_key_for_that_address(
    server: ChatServer,
) -> None:
    server.script([say("one"), say("two")])
    environ = {
        "ANTHROPIC_API_KEY": KEY,
        OWN_KEY: KEY,
        "OPENAI_API_KEY": "sk-another-one-that-stays-home",
    }
    assert (
        choose_completer(f"anthropic:claude@{server.anthropic_url}", environ)
        .complete("", HELLO)
        .text
        == "one"
    )
    assert choose_completer(f"m@{server.openai_url}", environ).complete("", HELLO).text == "two"
    assert [seen.api for seen in server.seen] == ["anthropic", "openai"]


def test_key_of_a_provider_is_not_sent_to_another_address(server: ChatServer) -> None:
    server.script([say("never")])
    with pytest.raises(CompletionError, match="does not accept the key"):
        choose_completer(server.openai_url, {"OPENAI_API_KEY": KEY}).complete("", HELLO)
    assert "authorization" not in server.seen[0].headers


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_chat_model_keeps_the_contract_of_completers(provider: str) -> None:
    with ChatServer(lambda seen: say("PostgreSQL."), key=KEY) as server:
        completer_contract(lambda: model_at(server, provider))


def test_scripted_completer_keeps_the_contract_of_completers() -> None:
    completer_contract(lambda: ScriptedCompleter(lambda request: "PostgreSQL."))


def test_chat_model_answers_inside_a_running_event_loop(server: ChatServer) -> None:
    server.script([say("PostgreSQL.")])

    async def ask() -> str:
        return model_at(server).complete("", HELLO).text

    assert asyncio.run(ask()) == "PostgreSQL."


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_redirect_is_not_followed(server: ChatServer, provider: str) -> None:
    def redirect(request: Request, link: Link) -> bool:
        link.send(head(307, {"Location": f"{server.root}{request.path}", "Content-Length": "0"}))
        return False

    other = Loopback(redirect, 0)
    try:
        name = ModelName(provider, "scripted", f"http://127.0.0.1:{other.port}/v1")
        with pytest.raises(CompletionError):
            ChatModel(name, KEY).complete("", HELLO)
    finally:
        other.close()
    assert server.requests == []


def test_response_over_the_size_limit_is_refused(
    server: ChatServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pydantic_models, "MAX_RESPONSE_BYTES", 2_000)
    monkeypatch.setattr(pydantic_models, "PAUSES", ())
    server.script([say("x" * 1_000), say("x" * 3_000)])
    assert model_at(server).complete("", HELLO).text == "x" * 1_000
    with pytest.raises(CompletionError, match="before the answer was complete"):
        model_at(server).complete("", HELLO)


def test_name_that_resolves_to_a_metadata_address_is_refused() -> None:
    name = ModelName("", "m", "http://169.254.169.254/v1")
    with pytest.raises(CompletionError, match="an address that serves a cloud's credentials"):
        ChatModel(name).complete("", HELLO, seconds=5)


def test_long_wait_that_the_server_asks_for_is_reported_at_once() -> None:
    def refuse(request: Request, link: Link) -> bool:
        link.send(head(429, {"Retry-After": "3600", "Content-Length": "0"}))
        return True

    busy = Loopback(refuse, 0)
    try:
        name = ModelName("", "m", f"http://127.0.0.1:{busy.port}/v1")
        with pytest.raises(CompletionError, match="too many requests"):
            ChatModel(name).complete("", HELLO, seconds=60)
    finally:
        busy.close()


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(CompletionError, match="the extra `chat`") as error:
        choose_completer("ollama:qwen3", {}).complete("", HELLO)
    assert "pip install 'clawmark[chat]'" in error.value.hint


def test_choosing_a_model_does_not_load_the_library() -> None:
    program = (
        "import sys; from clawmark.agent.models.catalog import choose_completer; "
        "choose_completer('ollama:qwen3', {}); assert 'pydantic_ai' not in sys.modules; "
        "import clawmark.agent.models.pydantic_models; "
        "assert not any(name.startswith('clawmark.embed') for name in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
