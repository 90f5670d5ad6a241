"""A conversation with the agent of a workspace.

For each message the prompt is read again, the messages are written to the transcript as they come,
the memory is flushed and the conversation is compacted when the context fills up, and a note is
written at the end. The caller is informed through `ChatCallbacks`; nothing is printed here.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from clawmark.agent.flush.flush import Flushed, FlushFailed, FlushOutcome
from clawmark.agent.models.catalog import choose_completer, find_model_key, parse_model
from clawmark.agent.models.completer import Message, Tool, ToolCall
from clawmark.agent.notes.session_note import NoteOutcome
from clawmark.agent.prompt.recall import parse_block
from clawmark.agent.prompt.sections import Prompt
from clawmark.agent.session.conversation import Conversation, HostOptions, UserTurn
from clawmark.agent.session.session import SessionEntry
from clawmark.agent.session.setup import Models, model_name
from clawmark.agent.tools.policy import may_write, outside_sandbox
from clawmark.chat.compact import Compacted, opening, split, summarise
from clawmark.chat.file_tools import FileTools
from clawmark.chat.history import (
    Answer,
    AnswerListener,
    Exchange,
    History,
    called_line,
    read_history,
    result_line,
)
from clawmark.composition.agent import session_access
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, CompletionError, ContextTooLong
from clawmark.system import shared_json as statefile
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.transcripts.session_keys import is_private
from clawmark.workspace.bootstrap import RITUAL, SEEDED

if TYPE_CHECKING:
    from clawmark.chat.agent import ChatAgent

KEPT_SHARE = 5
"""A compaction keeps the last exchanges that fit into a fifth of the window."""

_STYLE = "Write plain text: short paragraphs, lists where they help, no tables, no headings."
SANDBOX_SECTION = (
    f"## This Conversation\n\nYou talk with your person in a terminal. {_STYLE}\n\n"
    "You cannot change files in this session."
)
SECTION = (
    f"## This Conversation\n\nYou talk with your person in a terminal. {_STYLE}\n\n"
    "Your workspace is a folder of Markdown files. You can read, write and change them with "
    "file_read, file_write and file_edit; memory has its own tools. Say what you changed. When the "
    "first conversation is done, file_delete removes BOOTSTRAP.md."
)
GUEST_SECTION = f"## This Conversation\n\nYou talk with somebody in a terminal. {_STYLE}"


class Recalled(NamedTuple):
    """Passages of the memory that were sent along with a message."""

    citations: tuple[str, ...]


Event: TypeAlias = Flushed | FlushFailed | Compacted | Recalled | NoteOutcome


class ChatCallbacks(NamedTuple):
    """Functions that are called while a message is answered."""

    piece: Callable[[str], None]
    """Receives the next piece of the answer."""
    used: Callable[[ToolCall, str], None]
    """Receives each tool call with its result."""
    event: Callable[[Event], None]
    """Receives events of the conversation itself."""


class Chat:
    """One conversation; made by `open_chat`."""

    def __init__(self, memory: Memory, agent: ChatAgent, conversation: Conversation) -> None:
        self.memory = memory
        self.agent = agent
        self.conversation = conversation
        self.history = History()
        self._files = FileTools(
            memory.places.workspace,
            os.path.join(memory.places.state_dir, "locks"),
            memory.workspace,
        )
        self._chat_type = conversation.state().entry.chat_type
        access = session_access(
            memory.settings, conversation.session_key, chat_type=self._chat_type
        )
        self._is_private = is_private(access.kind)
        self._sandbox = access.sandbox

    @property
    def window(self) -> int:
        """The model's context window in tokens."""
        return self.conversation.parts.models.window

    @property
    def tokens(self) -> int:
        """Tokens of the context window that are used."""
        return self._entry().total_tokens

    def start(self) -> bool:
        """Start, or continue an interrupted conversation.

        Returns whether this is the first conversation in the workspace.
        """
        self.conversation.start()
        self.history = read_history(self.conversation.transcript)
        return self._is_private and may_write(self._sandbox) and bool(self._files.text(RITUAL))

    def say(self, message: str, callbacks: ChatCallbacks) -> Answer:
        """Answer a message; `/new` and `/reset` start a conversation with the rest of the line."""
        turn = self.conversation.on_user(message)
        if turn.note is not None:
            self.history = History()
            callbacks.event(turn.note)
        if isinstance(turn.flush, Flushed | FlushFailed):
            callbacks.event(turn.flush)
        if not turn.message:
            return Answer("", (), 0)
        if turn.compact and self.history.exchanges:
            self._compact(turn.line, callbacks)
        if turn.recalled:
            callbacks.event(Recalled(tuple(item.citation for item in parse_block(turn.recalled))))
        answer = self._answer(turn, callbacks)
        if (
            isinstance(answer.problem, ContextTooLong)
            and not answer.added
            and self.history.exchanges
        ):
            self._compact(turn.line, callbacks)
            answer = self._answer(turn, callbacks)
        exchange = Exchange(turn.line, (Message("user", turn.message), *answer.added))
        self.history = self.history._replace(exchanges=(*self.history.exchanges, exchange))
        succeeded = answer.problem is None and not answer.stopped
        self.conversation.on_usage(self._counted(answer), reply=answer.text, succeeded=succeeded)
        return answer

    def flush(self) -> FlushOutcome:
        """Save what matters in the conversation now."""
        return self.conversation.flush()

    def prompt(self) -> Prompt:
        """Return the memory's part of the system prompt."""
        return self.memory.prompt(
            self.conversation.session_key, append=True, chat_type=self._chat_type
        )

    @property
    def own_section(self) -> str:
        """The chat's own part of the system prompt."""
        if not self._is_private:
            return GUEST_SECTION
        if not may_write(self._sandbox):
            return SANDBOX_SECTION
        has_memory = self.memory.settings.plugins.has_memory
        return SECTION if has_memory else SECTION.replace("; memory has its own tools", "")

    def tools(self) -> list[Tool]:
        """Return the model's tools; the file tools only in a private session."""
        tools = self.memory.tools(
            self.conversation.session_key, append=True, chat_type=self._chat_type
        )
        return [*tools, *self._file_tools()] if self._is_private else tools

    def _file_tools(self) -> list[Tool]:
        """Return the file tools that the sandbox of the session leaves it."""
        tools = {tool.name: tool for tool in self._files.tools()}
        return [tools[name] for name in outside_sandbox(tools, self._sandbox)]

    def end(self, *, hurried: bool = False) -> NoteOutcome:
        """Write the session note; if `hurried` or interrupted, without asking the model."""
        try:
            if not hurried:
                return self.conversation.end("exit")
        except KeyboardInterrupt:
            pass
        parts = self.conversation.parts
        self.conversation.parts = parts._replace(models=Models(None, None, parts.models.window))
        return self.conversation.end("exit")

    def _answer(self, turn: UserTurn, callbacks: ChatCallbacks) -> Answer:
        if self._is_private:
            # The model may replace files that it sees in full in its prompt.
            self._files.show((*SEEDED, RITUAL), self.memory.settings.bootstrap_max_chars)
        calls: dict[str, ToolCall] = {}

        def record(message: Message) -> None:
            if message.role == "assistant":
                calls.update((call.id, call) for call in message.calls)
                self.conversation.record("message", called_line(message))
            else:
                call = calls[message.call_id]
                self.conversation.record("message", result_line(message, call.name))
                callbacks.used(call, message.text)

        system = f"{self.own_section}\n\n{turn.system}"
        # Recalled passages are sent with this message only; in the history they would be repeated.
        message = f"{turn.recalled}\n\n{turn.message}" if turn.recalled else turn.message
        listener = AnswerListener(callbacks.piece, record)
        return self.agent.answer(system, self._sent(), message, self.tools(), listener)

    def _rules(self) -> str:
        return self._files.text("AGENTS.md") if self._sandbox != "none" else ""

    def _sent(self) -> list[Message]:
        """Return the conversation as it is sent to the model."""
        if not self.history.summary:
            return self.history.messages
        now = self.conversation.parts.now()
        return [
            Message("user", opening(self.history.summary, self._rules(), now)),
            *self.history.messages,
        ]

    def _compact(self, line: str, callbacks: ChatCallbacks) -> None:
        """Summarise the beginning of the conversation; `line` is the message that did not fit."""
        tokens = self.tokens
        flushed = self.conversation.before_compaction()
        if isinstance(flushed, Flushed | FlushFailed):
            callbacks.event(flushed)
        older, kept = split(self.history.exchanges, self.window // KEPT_SHARE)
        summary, problem = self._summary(older)
        first = kept[0].line if kept else line
        fields = {"summary": summary, "firstKeptEntryId": first, "tokensBefore": tokens}
        self.conversation.record("compaction", fields)
        self.history = History(summary, tuple(kept))
        callbacks.event(Compacted(len(older), len(kept), problem))

    def _summary(self, exchanges: Sequence[Exchange]) -> tuple[str, CompletionError | None]:
        completer = self.conversation.parts.models.usual
        count = sum(len(one.messages) for one in exchanges)
        without = (
            f"(No summary could be made of {count} messages; "
            f"{self.conversation.transcript} has them.)"
        )
        if completer is None:
            return without, None
        try:
            return summarise(completer, self.history.summary, exchanges, self.window), None
        except CompletionError as error:
            return f"{self.history.summary}\n{without}".strip(), error

    def _counted(self, answer: Answer) -> int:
        """Return how many tokens are used: the service's count, or an estimate if there is none."""
        if answer.tokens or answer.problem is not None:
            return answer.tokens
        sent = sum(estimate_tokens(one.text) for one in self._sent())
        return sent + estimate_tokens(self.own_section) + self.prompt().tokens

    def _entry(self) -> SessionEntry:
        return self.conversation.parts.store.get(self.conversation.session_key)


@contextmanager
def open_chat(
    memory: Memory,
    model: str,
    session_key: str,
    environ: Mapping[str, str],
    *,
    recall: bool = False,
) -> Iterator[Chat]:
    """Open a conversation with the named model; raises ConfigError if it cannot be used.

    A session can be open in one process at a time. With `recall`, each message is sent with what
    the memory has about it, for models that do not search by themselves.
    """
    name = parse_model(model)
    key = find_model_key(name, environ)
    # Imported late: pydantic-ai is an optional extra and takes a second to load.
    from clawmark.chat.agent import ChatAgent

    is_configured = model == model_name(memory.settings, environ)
    window = 0 if memory.settings.context_tokens else name.window
    conversation = memory.conversation(
        session_key,
        # The configured model is left to the conversation: another may be configured for flushing.
        completer=None if is_configured else choose_completer(model, environ),
        context_window=window,
        append=True,
        recall=recall,
        host_options=HostOptions(source="chat", records_answers=True),
    )
    with _locked(conversation), ChatAgent(name, key) as agent:
        yield Chat(memory, agent, conversation)


@contextmanager
def _locked(conversation: Conversation) -> Iterator[None]:
    """Hold the lock of the session: two chats in it would not see each other's messages."""
    name = hashlib.sha256(conversation.session_key.encode()).hexdigest()[:16]
    with statefile.locked(
        os.path.join(conversation.parts.store.folder, f"chat-{name}"), 0.0
    ) as is_held:
        if not is_held:
            raise ClawmarkError(
                "Another `clawmark chat` is open in this session.",
                hint="Continue there, or use another session: clawmark "
                "chat --session agent:main:direct:second",
            )
        yield
