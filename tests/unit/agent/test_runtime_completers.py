"""Chat models against the scripted server, with OpenAI's and with Anthropic's API: answers, tool
calls, tokens, failures, deadlines and keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator

import pytest
from chat import Call, ChatServer, Turn, call, fault, say

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


def test_a_text_comes_back_with_its_tokens(server: ChatServer, completer: Completer) -> None:
    server.script([say("PostgreSQL.", input_tokens=120, output_tokens=7)])
    assert completer.complete("Be brief.", HELLO) == ("PostgreSQL.", (), 120, 7)
    assert (server.seen[0].system, server.seen[0].last_user, server.seen[0].tools) == (
        "Be brief.",
        "Which database?",
        (),
    )


def test_calls_are_carried_out_until_the_model_has_spoken(
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


def test_a_model_that_never_stops_calling_is_stopped(
    server: ChatServer, completer: Completer
) -> None:
    server.script(lambda seen: call("find"))
    turns = complete_with_tools(
        completer, "", HELLO, [tool("find", lambda given: {})], most_turns=3
    )
    assert (turns.finished, len(server.seen)) == (False, 3)


def test_a_call_with_broken_arguments_reaches_the_tool_which_answers(server: ChatServer) -> None:
    server.script([Turn("", (Call("find", '{"query": '),)), say("Sorry.")])
    turns = complete_with_tools(
        model_at(server), "", HELLO, [tool("find", lambda given: {"got": given})]
    )
    assert json.loads(turns.added[1].text) == {"got": '{"query": '}


def test_a_busy_service_is_asked_again(server: ChatServer, completer: Completer) -> None:
    server.script([fault("broken"), say("Here I am.")])
    assert completer.complete("", HELLO).text == "Here I am."
    assert len(server.seen) == 2


@pytest.mark.parametrize("name", ["quota", "key", "no-model", "garbage", "empty"])
def test_a_fault_that_stays_is_one_clear_sentence_without_the_key(
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


def test_messages_that_do_not_fit_are_an_error_of_their_own(
    server: ChatServer, completer: Completer
) -> None:
    server.script([fault("too-long")])
    with pytest.raises(ContextTooLong, match="context window"):
        completer.complete("", HELLO)


def test_the_key_is_in_a_header_and_nowhere_else(server: ChatServer, completer: Completer) -> None:
    server.script([say("yes")])
    completer.complete("", HELLO)
    request = server.requests[0]
    assert KEY in " ".join(request.headers.values())
    assert KEY not in request.target and KEY.encode() not in request.body
    assert KEY not in repr(completer)


def test_half_a_character_does_not_stop_a_request(server: ChatServer, completer: Completer) -> None:
    server.script([say("fine")])
    assert completer.complete("\ud800", [Message("user", "half \udfff")]).text == "fine"
    assert server.seen[0].last_user == "half \ufffd"


def test_a_history_with_calls_and_empty_texts_is_told_in_both_languages(
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
def test_a_name_says_provider_model_and_window(
    name: str, provider: str, model: str, window: int
) -> None:
    parsed = parse_model(name)
    assert (parsed.provider, parsed.model, parsed.window) == (provider, model, window)
    assert parsed.base_url.startswith("http") and not parsed.base_url.endswith("/")


@pytest.mark.parametrize(
    "name",
    ["", "gpt-4o", "openai:", "wizard:x", "ftp://host", "http://169.254.169.254/v1", "x@http://"],
)
def test_a_name_that_means_nothing_is_refused(name: str) -> None:
    with pytest.raises(ConfigError):
        parse_model(name)


def test_a_missing_key_is_named_by_its_variable() -> None:
    with pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        choose_completer("openai:gpt-4o-mini", {})
    with pytest.raises(ConfigError, match="not allowed in a key"):
        choose_completer("anthropic:claude", {"ANTHROPIC_API_KEY": "sk\n1"})


def test_the_chosen_completer_talks_to_the_named_address_with_its_own_key(
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


def test_a_refused_key_is_not_sent_to_an_address_of_ones_own(server: ChatServer) -> None:
    server.script([say("never")])
    with pytest.raises(CompletionError, match="does not accept the key"):
        choose_completer(server.openai_url, {"OPENAI_API_KEY": KEY}).complete("", HELLO)
    assert "authorization" not in server.seen[0].headers
