"""Streamed answers with OpenAI's and Anthropic's API: text, tools and failures."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import pytest
from chat import Call, ChatServer, Turn, call, fault, say
from loopback import Link, Loopback, Request, head

from clawmark.agent.models.catalog import ModelName
from clawmark.agent.models.completer import Message, Tool, ToolCall
from clawmark.chat.agent import MAX_REQUESTS, ChatAgent
from clawmark.chat.history import Answer, AnswerListener
from clawmark.model.errors import ContextTooLong

KEY = "sk-test-4f9aXb21Qz77Lm03"


class Setting(NamedTuple):
    """A server, an agent that is connected to it, and what the listener received."""

    server: ChatServer
    agent: ChatAgent
    pieces: list[str]
    messages: list[Message]
    given: list[object]

    def ask(
        self, *script: Turn, history: tuple[Message, ...] = (), message: str = "hello"
    ) -> Answer:
        self.server.script(script)
        schema: dict[str, object] = {
            "type": "object",
            "properties": {},
            "additionalProperties": True,
        }
        tool = Tool(
            name="memory_search", description="Search.", parameters=schema, call=self.search
        )
        listener = AnswerListener(self.pieces.append, self.messages.append)
        return self.agent.answer("You are Pebble.", history, message, [tool], listener)

    def search(self, given: object) -> dict[str, object]:
        self.given.append(given)
        return {"results": []}


@contextmanager
def set_up(provider: str) -> Iterator[Setting]:
    with ChatServer(key=KEY) as server:
        base_url = server.openai_url if provider == "openai" else server.anthropic_url
        with ChatAgent(ModelName(provider, "scripted", base_url), KEY) as agent:
            yield Setting(server=server, agent=agent, pieces=[], messages=[], given=[])


@pytest.fixture(params=["openai", "anthropic"])
def setting(request: pytest.FixtureRequest) -> Iterator[Setting]:
    with set_up(request.param) as made:
        yield made


def test_answer_is_streamed_with_its_token_count(setting: Setting) -> None:
    answer = setting.ask(say("PostgreSQL it is.", input_tokens=40, output_tokens=2))
    assert "".join(setting.pieces) == answer.text == "PostgreSQL it is." and len(setting.pieces) > 1
    assert answer.added == (Message("assistant", "PostgreSQL it is."),) and answer.tokens == 42
    [seen] = setting.server.seen
    assert "You are Pebble." in seen.system and seen.stream and seen.tools == ("memory_search",)


def test_tool_is_called_and_its_result_is_sent_back(setting: Setting) -> None:
    answer = setting.ask(call("memory_search", "Let me look.", query="database"), say("Nothing."))
    asked, result = setting.messages
    assert (asked.role, asked.text, asked.calls[0].name) == (
        "assistant",
        "Let me look.",
        "memory_search",
    )
    assert (result.role, result.call_id) == ("tool", asked.calls[0].id)
    assert answer.text == "Nothing." and answer.added == (
        asked,
        result,
        Message("assistant", "Nothing."),
    )
    assert setting.given == ['{"query": "database"}'] and setting.server.seen[1].results == [
        result.text
    ]


def test_several_calls_in_one_message_are_all_answered(setting: Setting) -> None:
    calls = (Call("memory_search", {"query": "a"}), Call("memory_search", {"query": "b"}))
    answer = setting.ask(Turn("", calls), say("Both."))
    assert [one.role for one in answer.added] == [
        "assistant",
        "tool",
        "tool",
        "assistant",
    ] and answer.problem is None


def test_history_is_sent_with_calls_and_results(setting: Setting) -> None:
    """The server refuses calls without results and results without calls, as the services do."""
    before = (
        Message("user", "[compacted]"),
        Message("user", "Which one?"),
        Message(
            "assistant",
            "",
            (
                ToolCall("c1", "memory_search", '{"query": "x"}'),
                ToolCall("c2", "memory_search", "{"),
            ),
        ),
        Message("tool", "one", call_id="c1"),
        Message("tool", "two", call_id="c2"),
        Message("assistant", "PostgreSQL."),
        Message("user", "a message that was never answered"),
    )
    answer = setting.ask(say("Yes."), history=before, message="Sure?")
    assert (answer.text, answer.problem) == ("Yes.", None)
    heard = setting.server.seen[0].messages
    assert [one.text for one in heard if one.role == "tool"] == ["one", "two"]
    assert "Sure?" in heard[-1].text and "PostgreSQL." in [one.text for one in heard]


def test_invalid_arguments_reach_the_tool() -> None:
    with set_up("openai") as setting:
        answer = setting.ask(Turn("", (Call("memory_search", "{nonsense"),)), say("Sorry."))
        assert setting.given == ["{nonsense"] and answer.text == "Sorry."


def test_unknown_tool_is_reported_to_the_model(setting: Setting) -> None:
    answer = setting.ask(call("rm", path="/"), say("I cannot do that."))
    assert answer.text == "I cannot do that." and "rm" in setting.server.seen[1].results[0]


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("key", "does not accept the key"),
        ("no-model", "was not found"),
        ("garbage", "did not return a usable answer"),
        ("empty", "did not return a usable answer"),
        ("cut", "closed the connection"),
    ],
)
def test_failure_is_one_sentence_without_the_key(setting: Setting, name: str, words: str) -> None:
    problem = setting.ask(*[fault(name)] * 4).problem
    assert problem is not None and words in problem.message and problem.hint
    assert KEY not in problem.message + problem.hint and "\n" not in problem.message


@pytest.mark.parametrize(
    ("name", "status", "words"),
    [
        ("broken", 500, "The server had an error while processing your request"),
        ("key", 401, "Incorrect API key provided: [redacted:key]"),
        ("no-model", 404, "The model does not exist"),
        ("quota", 429, "You exceeded your current quota"),
    ],
)
def test_status_and_message_of_the_server_are_shown(
    setting: Setting, name: str, status: int, words: str
) -> None:
    problem = setting.ask(*[fault(name)] * 4).problem
    assert problem is not None and f"(HTTP {status}: {words}" in problem.message
    assert KEY not in problem.message


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            b'{"error": {"message": "CUDA out of memory", "type": "server"}}',
            "(HTTP 500: CUDA out of memory)",
        ),
        (b'{"error": "model is still loading"}', "(HTTP 500: model is still loading)"),
        (b'{"detail": "internal error"}', "(HTTP 500: internal error)"),
        (b'{"message": "no\\u0007 backend\\n\\nhere"}', "(HTTP 500: no\\x07 backend here)"),
        (b"upstream connect error", "(HTTP 500: upstream connect error)"),
        (b"<html><body><h1>Bad gateway</h1></body></html>", "(HTTP 500)"),
        (b"{}", "(HTTP 500)"),
        (b"", "(HTTP 500)"),
        (
            b'{"error": {"message": "' + KEY.encode() + b' is unknown to us"}}',
            "(HTTP 500: [redacted:key] is unknown to us)",
        ),
    ],
)
def test_error_body_of_any_shape_becomes_one_sentence(body: bytes, words: str) -> None:
    def fail(request: Request, link: Link) -> bool:
        link.answer(500, body)
        return True

    server = Loopback(fail, 0)
    try:
        with ChatAgent(
            ModelName("openai", "fake", f"http://127.0.0.1:{server.port}/v1"), KEY
        ) as agent:
            problem = agent.answer("", (), "hello", (), AnswerListener(print, print)).problem
    finally:
        server.close()
    assert problem is not None and problem.message == f"openai:fake failed {words}."


@pytest.mark.parametrize("name", ["busy", "reset"])
def test_temporary_failure_is_retried_before_the_answer(setting: Setting, name: str) -> None:
    answer = setting.ask(fault(name), say("There I am."))
    assert (answer.text, answer.problem) == ("There I am.", None)


def test_context_window_error_has_its_own_type(setting: Setting) -> None:
    assert isinstance(setting.ask(fault("too-long")).problem, ContextTooLong)


def test_messages_before_a_failure_are_kept(setting: Setting) -> None:
    answer = setting.ask(call("memory_search", query="a"), fault("key"))
    assert answer.problem is not None and [one.role for one in answer.added] == [
        "assistant",
        "tool",
    ]
    again = setting.ask(
        say("Back."), history=(Message("user", "hello"), *answer.added), message="again"
    )
    assert (again.text, again.problem) == ("Back.", None)


def test_model_that_only_calls_tools_is_stopped(setting: Setting) -> None:
    answer = setting.ask(*[call("memory_search", query="a")] * (MAX_REQUESTS + 5))
    assert answer.problem is not None and "kept calling tools" in answer.problem.message
    assert len(setting.server.seen) == MAX_REQUESTS


def test_unreachable_server_is_one_sentence() -> None:
    with ChatServer() as server:
        url = server.openai_url
    with ChatAgent(ModelName("ollama", "qwen3", url), "") as agent:
        problem = agent.answer("", (), "hello", (), AnswerListener(print, print)).problem
    assert problem is not None and problem.message == "ollama:qwen3 cannot be reached."


@pytest.mark.parametrize("provider", ["openai", "anthropic"])
def test_redirect_is_not_followed_with_the_key(provider: str) -> None:
    with ChatServer(lambda seen: say("received")) as other:

        def redirect(request: Request, link: Link) -> bool:
            link.send(head(307, {"Location": f"{other.root}{request.path}", "Content-Length": "0"}))
            return False

        redirecting = Loopback(redirect, 0)
        try:
            with ChatAgent(
                ModelName(provider, "scripted", f"http://127.0.0.1:{redirecting.port}/v1"), KEY
            ) as agent:
                answer = agent.answer("", (), "hello", (), AnswerListener(print, print))
        finally:
            redirecting.close()
        assert answer.problem is not None and other.requests == []


def test_model_at_an_address_is_not_sent_keys_of_providers(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, KEY)
    with (
        ChatServer([say("Hi.")]) as server,
        ChatAgent(ModelName("", "default", server.openai_url), "") as agent,
    ):
        assert (
            agent.answer("", (), "hello", (), AnswerListener(lambda piece: None, print)).text
            == "Hi."
        )
        assert KEY not in str(server.requests[0].headers)
