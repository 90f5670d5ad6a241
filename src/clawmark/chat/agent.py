"""The agent's voice: a conversation, a message and tools in; an answer out, piece by piece while it
is made.

The loop of asking, calling tools and asking again is pydantic-ai's; a model is reached in the
language of its service. Between two messages the conversation is held in our own words
(`runtime.completer.Message`), so nothing else here knows that library. Stopping an answer keeps
what was said and done so far. Loading the library takes a second, so it happens with the first
message and not before. Errors are translated in `errors`, tools in `toolset`."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, NamedTuple

from clawmark.agent.models.completer import Message, Tool, ToolCall
from clawmark.agent.models.catalog import ModelName
from clawmark.chat.errors import COULD_NOT_ASK, translated
from clawmark.chat.toolset import Toolset
from clawmark.model.errors import CompletionError

if TYPE_CHECKING:
    from pydantic_ai import Agent
    from pydantic_ai.messages import ModelMessage, ModelResponse
    from pydantic_ai.models import Model

MOST_REQUESTS = 25
"""How often a model is asked for one answer; one that still wants tools then is going round in
circles.
"""
STOPPED = "(stopped by the user before there was a result)"
_NO_KEY = "none"
"""Sent where a server wants no key: without one the libraries would look for other keys in the
environment.
"""


class Ears(NamedTuple):
    """Who listens while an answer is made."""

    piece: Callable[[str], None]
    """The next words of the answer."""
    message: Callable[[Message], None]
    """A message that is complete: tools asked for, the result of one; not the last text."""


class Answer(NamedTuple):
    """What an answer came to."""

    text: str
    """The last thing that was said; all of it that there is, when it was stopped."""
    added: tuple[Message, ...]
    """The messages it added to the conversation, the last text included."""
    tokens: int
    """How full the context is now, as the service counts; 0 when it does not."""
    stopped: bool = False
    """Whether the user did not want to hear the rest."""
    problem: CompletionError | None = None
    """Why there is no more of it, when the model could not be asked; what was done before counts
    all the same.
    """


class Voice:
    """A model to talk with; close it in the end. Used from one thread."""

    def __init__(self, name: ModelName, key: str) -> None:
        self.name = name
        self._key = key
        self._agent: Agent[None, str] | None = None
        self._model: Model | None = None
        self._runner = asyncio.Runner()

    def __enter__(self) -> Voice:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._model is not None:
            self._runner.run(self._model.__aexit__(None, None, None))
        self._runner.close()

    def answer(
        self,
        system: str,
        history: Sequence[Message],
        message: str,
        tools: Sequence[Tool],
        ears: Ears,
    ) -> Answer:
        """Answer a message; a model that cannot be asked is an answer too."""
        turn = _Turn(ears)
        try:
            self._runner.run(turn.ask(self._open(), system, as_messages(history), message, tools))
            answer = turn.finished()
        except COULD_NOT_ASK as error:
            answer = turn.finished(problem=translated(error, self.name, self._key))
        for number in turn.signals:
            signal.raise_signal(number)
        return answer

    def _open(self) -> Agent[None, str]:
        """The library's agent; its connections stay open from one message to the next."""
        if self._agent is None:
            import pydantic_ai

            pydantic_ai.BANNER_ENABLED = False
            self._model = open_model(self.name, self._key or _NO_KEY)
            self._runner.run(self._model.__aenter__())
            self._agent = pydantic_ai.Agent(self._model, retries=3)
        return self._agent


def open_model(name: ModelName, key: str) -> Model:
    """The model in the language of its service; all but one of them speak OpenAI's."""
    if name.provider == "anthropic":
        from pydantic_ai.models.anthropic import AnthropicModel
        from pydantic_ai.providers.anthropic import AnthropicProvider

        # That library puts the version into the path itself.
        base_url = name.base_url.removesuffix("/v1")
        return AnthropicModel(
            name.model, provider=AnthropicProvider(api_key=key, base_url=base_url)
        )
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    return OpenAIChatModel(name.model, provider=OpenAIProvider(api_key=key, base_url=name.base_url))


class _Turn:
    """One answer while it is made."""

    def __init__(self, ears: Ears) -> None:
        self._ears = ears
        self._added: list[Message] = []
        self._open_calls: list[str] = []
        self._text = ""
        self._tokens = 0
        self._stopped = False
        self.signals: list[int] = []
        """Those that came meanwhile and want to end the process."""

    async def ask(
        self,
        agent: Agent[None, str],
        system: str,
        history: list[ModelMessage],
        message: str,
        tools: Sequence[Tool],
    ) -> None:
        """Ask and listen to the end, or until the user has heard enough."""
        try:
            with _signals_cancel(self.signals):
                await self._listen(agent, system, history, message, tools)
        except asyncio.CancelledError:  # Ctrl-C: the runner cancels what runs
            self._stopped = True

    async def _listen(
        self,
        agent: Agent[None, str],
        system: str,
        history: list[ModelMessage],
        message: str,
        tools: Sequence[Tool],
    ) -> None:
        from pydantic_ai import UsageLimits

        limits = UsageLimits(request_limit=MOST_REQUESTS)
        asking = agent.iter(
            message,
            instructions=system,
            message_history=history,
            usage_limits=limits,
            toolsets=[Toolset(tools)],
        )
        async with asking as run:
            async for node in run:
                if agent.is_model_request_node(node):
                    self._text = ""
                    async with node.stream(run.ctx) as events:
                        async for event in events:
                            self._hear(event)
                elif agent.is_call_tools_node(node):
                    self._answered(node.model_response)
                    async with node.stream(run.ctx) as events:
                        async for event in events:
                            self._called(event)

    def _hear(self, event: Any) -> None:
        """Pass on what is said; thinking and half a tool's arguments are none of it."""
        from pydantic_ai.messages import PartDeltaEvent, PartStartEvent, TextPart, TextPartDelta

        piece = ""
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            piece = event.part.content
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            piece = event.delta.content_delta
        if piece:
            self._text += piece
            self._ears.piece(piece)

    def _answered(self, response: ModelResponse) -> None:
        self._tokens = response.usage.input_tokens + response.usage.output_tokens
        calls = tuple(
            ToolCall(call.tool_call_id, call.tool_name, call.args_as_json_str())
            for call in response.tool_calls
        )
        if not calls:
            return
        self._open_calls = [call.id for call in calls]
        self._add(Message("assistant", self._text, calls))
        self._text = ""

    def _called(self, event: Any) -> None:
        from pydantic_ai.messages import FunctionToolResultEvent

        if (
            isinstance(event, FunctionToolResultEvent)
            and event.part.tool_call_id in self._open_calls
        ):
            self._open_calls.remove(event.part.tool_call_id)
            part = event.part
            text = (
                part.model_response_str()
                if part.part_kind == "tool-return"
                else part.model_response()
            )
            self._add(Message("tool", text, call_id=part.tool_call_id))

    def finished(self, problem: CompletionError | None = None) -> Answer:
        """The answer; a call that has no result gets one, because no service takes a conversation
        without.
        """
        for call_id in tuple(self._open_calls):
            self._open_calls.remove(call_id)
            self._add(Message("tool", STOPPED, call_id=call_id))
        last = (Message("assistant", self._text),) if self._text.strip() else ()
        return Answer(
            text=self._text,
            added=(*self._added, *last),
            tokens=self._tokens,
            stopped=self._stopped,
            problem=problem,
        )

    def _add(self, message: Message) -> None:
        self._added.append(message)
        self._ears.message(message)


@contextmanager
def _signals_cancel(came: list[int]) -> Iterator[None]:
    """Let signals that end the process cancel what runs, and note them: an exception thrown into a
    loop gets lost.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def stop(number: int, _: FrameType | None) -> None:
        came.append(number)
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        handler = signal.getsignal(number) if number is not None else None
        if number is None or not callable(handler):  # the system's own way, or nohup's
            continue
        # Not the loop's own way: what came in its last turn would be forgotten with the loop.
        with suppress(ValueError):  # not the main thread
            signal.signal(number, stop)
            before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def as_messages(history: Sequence[Message]) -> list[ModelMessage]:
    """A conversation in the library's words."""
    from pydantic_ai.messages import (
        ModelRequest,
        ModelResponse,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
        UserPromptPart,
    )

    names = {call.id: call.name for message in history for call in message.calls}
    found: list[ModelMessage] = []
    for one in history:
        if one.role == "assistant":
            said = [TextPart(one.text)] if one.text.strip() else []
            called = [ToolCallPart(call.name, call.arguments, call.id) for call in one.calls]
            found.append(ModelResponse(parts=[*said, *called]))
        elif one.role == "tool":
            found.append(
                ModelRequest(
                    parts=[ToolReturnPart(names.get(one.call_id, "tool"), one.text, one.call_id)]
                )
            )
        else:
            found.append(ModelRequest(parts=[UserPromptPart(one.text)]))
    return found
