"""Answers of a model that are streamed while they are made, with the tools it calls in between.

Requests go through `agent.models.pydantic_models`, which takes a second to load. The rest of the
package does not import pydantic-ai; this module is imported when a chat is opened.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager, suppress
from types import FrameType, TracebackType

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import UnexpectedModelBehavior, UsageLimitExceeded
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ToolReturnPart,
)
from pydantic_ai.models import Model, ModelRequestParameters

from clawmark.agent.models.catalog import ModelName
from clawmark.agent.models.completer import Message, Tool, run_tool
from clawmark.agent.models.pydantic_models import (
    REQUEST_ERRORS,
    connect,
    to_model_messages,
    tool_calls,
    tool_definition,
    translate_error,
)
from clawmark.chat.history import Answer, AnswerListener
from clawmark.model.errors import CompletionError

MAX_REQUESTS = 25
"""Requests for one answer; a model that still calls tools then is stopped."""
STOPPED = "(stopped by the user before there was a result)"


class ChatAgent:
    """A model with an open connection; close it after use. Not safe to use from several threads."""

    def __init__(self, name: ModelName, key: str) -> None:
        self.name = name
        self._key = key
        self._model: Model | None = None
        self._connection = AsyncExitStack()
        self._runner = asyncio.Runner()

    def __enter__(self) -> ChatAgent:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        self._runner.run(self._connection.aclose())
        self._runner.close()

    def answer(
        self,
        system: str,
        history: Sequence[Message],
        message: str,
        tools: Sequence[Tool],
        listener: AnswerListener,
    ) -> Answer:
        """Answer a message; a failed request is reported in `Answer.problem`."""
        turn = _Turn(tools, listener)
        messages = to_model_messages([*history, Message("user", message)], system)
        try:
            if self._model is None:
                connecting = self._connection.enter_async_context(connect(self.name, self._key))
                self._model = self._runner.run(connecting)
            self._runner.run(turn.run(self._model, messages))
            answer = turn.finish()
        except REQUEST_ERRORS as error:
            answer = turn.finish(translate_error(error, self.name, self._key))
        for number in turn.signals:
            signal.raise_signal(number)
        return answer


class _Turn:
    """One answer while it is being made."""

    def __init__(self, tools: Sequence[Tool], listener: AnswerListener) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._listener = listener
        self._added: list[Message] = []
        self._open_calls: list[str] = []
        self._text = ""
        self._tokens = 0
        self._stopped = False
        self.signals: list[int] = []
        """Signals that arrived during the answer and should end the process."""

    async def run(self, model: Model, messages: list[ModelMessage]) -> None:
        """Make requests until the model answers without calling a tool, or the user stops it."""
        definitions = [tool_definition(tool) for tool in self._tools.values()]
        parameters = ModelRequestParameters(function_tools=definitions)
        try:
            with _signals_cancel(self.signals):
                for _ in range(MAX_REQUESTS):
                    response = await self._request(model, messages, parameters)
                    if not response.tool_calls:
                        return
                    messages += [response, await self._call_tools(response)]
                raise UsageLimitExceeded(f"no answer after {MAX_REQUESTS} requests")
        except asyncio.CancelledError:  # Ctrl-C: the runner cancels the task
            self._stopped = True

    async def _request(
        self, model: Model, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> ModelResponse:
        self._text = ""
        request = model_request_stream(model, messages, model_request_parameters=parameters)
        async with request as stream:
            async for event in stream:
                self._receive(event)
        response = stream.get()
        self._tokens = response.usage.input_tokens + response.usage.output_tokens
        if not self._text.strip() and not response.tool_calls:
            raise UnexpectedModelBehavior("the answer is empty")
        return response

    def _receive(self, event: ModelResponseStreamEvent) -> None:
        """Pass on text; thinking and parts of tool arguments are ignored."""
        piece = ""
        if isinstance(event, PartStartEvent) and isinstance(event.part, TextPart):
            piece = event.part.content
        elif isinstance(event, PartDeltaEvent) and isinstance(event.delta, TextPartDelta):
            piece = event.delta.content_delta
        if piece:
            self._text += piece
            self._listener.piece(piece)

    async def _call_tools(self, response: ModelResponse) -> ModelRequest:
        """Run tools one after the other, each to its end: no file is left half written."""
        calls = tool_calls(response)
        self._open_calls = [call.id for call in calls]
        self._add(Message("assistant", self._text, calls))
        self._text = ""
        results = []
        for call in calls:
            result = run_tool(call, self._tools)
            self._open_calls.remove(call.id)
            self._add(Message("tool", result, call_id=call.id))
            results.append(ToolReturnPart(call.name, result, call.id))
            await asyncio.sleep(0)  # where Ctrl-C takes effect
        return ModelRequest(parts=results)

    def finish(self, problem: CompletionError | None = None) -> Answer:
        """Return the answer. A call without a result gets one, because services require it."""
        for call_id in self._open_calls:
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
        self._listener.message(message)


@contextmanager
def _signals_cancel(received: list[int]) -> Iterator[None]:
    """Let signals that end the process cancel the current task, and record them.

    An exception raised in a signal handler would be lost in the event loop.
    """
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    before: dict[int, Callable[[int, FrameType | None], object]] = {}

    def stop(number: int, _: FrameType | None) -> None:
        received.append(number)
        if task is not None:
            loop.call_soon_threadsafe(task.cancel)

    for name in ("SIGTERM", "SIGHUP"):
        number = getattr(signal, name, None)
        handler = signal.getsignal(number) if number is not None else None
        if number is None or not callable(handler):  # the default action, or ignored by nohup
            continue
        # Not `loop.add_signal_handler`: a signal in the loop's last iteration would be lost.
        with suppress(ValueError):  # not the main thread
            signal.signal(number, stop)
            before[number] = handler
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
