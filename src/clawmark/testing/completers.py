"""A completer that follows a script, and the contract suite for completers.

`completer_contract` is called by the tests of any implementation, ours or a host's.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from clawmark.agent.models.completer import Completer, Completion, Message, Tool, ToolCall
from clawmark.model.errors import CompletionError

SECONDS = 30.0
QUESTION = (Message("user", "Which database did we choose?"),)


class Request(NamedTuple):
    """The arguments of one call to `ScriptedCompleter.complete`."""

    system: str
    messages: tuple[Message, ...]
    tools: tuple[Tool, ...]


Answer: TypeAlias = str | Completion | CompletionError
Script: TypeAlias = Sequence[Answer] | Callable[[Request], Answer]


class ScriptedCompleter:
    """A completer without a model.

    `script` is a list of answers, used in order, or a function of the request. An answer is a text,
    a `Completion`, or a `CompletionError` to raise.
    """

    def __init__(self, script: Script) -> None:
        self.requests: list[Request] = []
        self._script = script
        self._lock = threading.Lock()

    def complete(
        self,
        system: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        seconds: float = 60.0,
    ) -> Completion:
        request = Request(system, tuple(messages), tuple(tools))
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
        answer: Answer
        if seconds <= 0:
            answer = CompletionError("There was no time left.", provider="scripted")
        elif callable(self._script):
            answer = self._script(request)
        elif number < len(self._script):
            answer = self._script[number]
        else:
            answer = CompletionError("The script has no more answers.", provider="scripted")
        if isinstance(answer, CompletionError):
            raise answer
        return Completion(answer) if isinstance(answer, str) else answer


def completer_contract(make: Callable[[], Completer]) -> None:
    """Check the contract of `Completer` on new instances; raises AssertionError if one is broken.

    `make` returns a completer for a working model that answers any question, with or without a call
    of the tool `lookup`.
    """
    for check in CHECKS:
        check(make)


def _answers_with_text_or_calls(make: Callable[[], Completer]) -> None:
    _check_answer(make().complete("Be brief.", QUESTION, seconds=SECONDS), "a plain question")
    answer = make().complete("", QUESTION, [_lookup_tool()], seconds=SECONDS)
    _check_answer(answer, "a question with tools")
    ids = [call.id for call in answer.calls]
    _must(all(ids) and len(set(ids)) == len(ids), "every call has an id of its own")


def _accepts_a_history_with_calls(make: Callable[[], Completer]) -> None:
    history = [
        Message("assistant", "Welcome."),
        *QUESTION,
        Message("assistant", "", (ToolCall("a", "lookup", "{}"), ToolCall("b", "lookup", "{"))),
        Message("tool", "PostgreSQL", call_id="a"),
        Message("tool", "an error", call_id="b"),
        Message("assistant", "PostgreSQL."),
        Message("user", "Since when?"),
    ]
    before = list(history)
    _check_answer(
        make().complete("", history, [_lookup_tool()], seconds=SECONDS), "a history with calls"
    )
    _must(history == before, "the messages are not changed")


def _accepts_unusual_text(make: Callable[[], Completer]) -> None:
    completer = make()
    for text in ("\ud800 half a character", "a\x00b", "😀", "请问数据库", "word " * 5_000):
        answer = completer.complete(text, [Message("user", text)], seconds=SECONDS)
        _check_answer(answer, f"the text {text[:20]!r}")


def _raises_when_there_is_no_time(make: Callable[[], Completer]) -> None:
    try:
        make().complete("", QUESTION, seconds=0.0)
    except CompletionError:
        return
    raise AssertionError("contract broken: without time it raises CompletionError")


def _works_from_two_threads(make: Callable[[], Completer]) -> None:
    completer, answers = make(), list[Completion]()

    def ask() -> None:
        answers.append(completer.complete("", QUESTION, seconds=SECONDS))

    threads = [threading.Thread(target=ask) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    _must(len(answers) == 2, "two threads at once are both answered")


CHECKS = (
    _answers_with_text_or_calls,
    _accepts_a_history_with_calls,
    _accepts_unusual_text,
    _raises_when_there_is_no_time,
    _works_from_two_threads,
)


def _lookup_tool() -> Tool:
    return Tool(
        name="lookup",
        description="Look up a decision.",
        parameters={"type": "object", "properties": {}},
        call=lambda given: {"found": "PostgreSQL"},
    )


def _check_answer(answer: Completion, what: str) -> None:
    _must(bool(answer.text.strip() or answer.calls), f"{what} is answered with a text or calls")
    _must(min(answer.input_tokens, answer.output_tokens) >= 0, "token counts are not negative")


def _must(holds: bool, promise: str) -> None:
    if not holds:
        raise AssertionError(f"contract broken: {promise}")
