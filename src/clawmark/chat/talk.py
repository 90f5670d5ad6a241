"""A conversation with the agent of a workspace: a message in; an answer out, and a memory that
knows of it.

The five calls of `runtime.conversation` are made here, around `agent.Voice`: the prompt is read
anew for every message, what was said goes into the transcript before the next thing happens, the
memory is flushed and the conversation compacted when the context fills up, and the end leaves a
note. What happens on the way is told to a `Stage`, and nothing is printed here."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import NamedTuple, TypeAlias

from clawmark.agent.flush.flush import Flushed, FlushFailed, FlushOutcome
from clawmark.agent.models.completer import Message, Tool, ToolCall
from clawmark.agent.models.models import choose_completer, find_model_key, parse_model
from clawmark.agent.notes.session_note import NoteOutcome
from clawmark.agent.prompt.recall import parse_block
from clawmark.agent.prompt.sections import Prompt
from clawmark.agent.session.conversation import Conversation, HostOptions, UserTurn
from clawmark.agent.session.session import SessionEntry
from clawmark.agent.session.setup import Models, model_name
from clawmark.chat.agent import Answer, Ears, Voice
from clawmark.chat.compact import Compacted, opening, split, summarise
from clawmark.chat.files import Files
from clawmark.chat.history import Exchange, History, called_line, read_history, result_line
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, CompletionError, ContextTooLong
from clawmark.system import shared_json as statefile
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.transcripts.session_keys import is_private, kind_of
from clawmark.workspace.bootstrap import RITUAL, SEEDED

KEPT_SHARE = 5
"""A compaction keeps the last exchanges that fit into a fifth of the window."""

SECTION = """\
## This Conversation

You talk with your person in a terminal. Write plain text: short paragraphs, lists where they help, no tables, no headings.

Your workspace is a folder of Markdown files. You can read, write and change them with file_read, file_write and file_edit; \
memory has its own tools. Say what you changed. When the first conversation is done, file_delete removes BOOTSTRAP.md."""
GUEST_SECTION = """\
## This Conversation

You talk with somebody in a terminal. Write plain text: short paragraphs, lists where they help, no tables, no headings."""


class Reminded(NamedTuple):
    """What the memory had about a message, and was sent with it."""

    citations: tuple[str, ...]


Event: TypeAlias = Flushed | FlushFailed | Compacted | Reminded | NoteOutcome


class Stage(NamedTuple):
    """Who watches."""

    piece: Callable[[str], None]
    """The next words of an answer."""
    used: Callable[[ToolCall, str], None]
    """A tool was called, with this result."""
    event: Callable[[Event], None]
    """Something happened to the conversation itself."""


class Talk:
    """One conversation; made by `open_talk`."""

    def __init__(self, memory: Memory, voice: Voice, conversation: Conversation) -> None:
        self.memory = memory
        self.voice = voice
        self.conversation = conversation
        self.history = History()
        self._files = Files(memory.places.workspace, os.path.join(memory.places.state_dir, "locks"))
        self._chat_type = conversation.state().entry.chat_type
        self._is_private = is_private(kind_of(conversation.session_key, self._chat_type))

    @property
    def window(self) -> int:
        """How many tokens the model holds."""
        return self.conversation.parts.models.window

    @property
    def tokens(self) -> int:
        """How many of them are used."""
        return self._entry().total_tokens

    def start(self) -> bool:
        """Begin; whether this is the first conversation in the workspace.

        One that was cut off goes on where it was.
        """
        self.conversation.start()
        self.history = read_history(self.conversation.transcript)
        return self._is_private and bool(self._files.text(RITUAL))

    def say(self, message: str, stage: Stage) -> Answer:
        """Answer a message; `/new` and `/reset` begin a new conversation, with what stands behind
        them as its first.
        """
        turn = self.conversation.on_user(message)
        if turn.note is not None:
            self.history = History()
            stage.event(turn.note)
        if isinstance(turn.flush, Flushed | FlushFailed):
            stage.event(turn.flush)
        if not turn.message:
            return Answer("", (), 0)
        if turn.compact and self.history.exchanges:
            self._compact(turn.line, stage)
        if turn.recalled:
            stage.event(Reminded(tuple(item.citation for item in parse_block(turn.recalled))))
        answer = self._answer(turn, stage)
        if (
            isinstance(answer.problem, ContextTooLong)
            and not answer.added
            and self.history.exchanges
        ):
            self._compact(turn.line, stage)
            answer = self._answer(turn, stage)
        exchange = Exchange(turn.line, (Message("user", turn.message), *answer.added))
        self.history = self.history._replace(exchanges=(*self.history.exchanges, exchange))
        self.conversation.on_usage(self._counted(answer), reply=answer.text)
        return answer

    def flush(self) -> FlushOutcome:
        """Save what matters of the conversation now."""
        return self.conversation.flush()

    def prompt(self) -> Prompt:
        """The memory's part of what the model sees."""
        return self.memory.prompt(
            self.conversation.session_key, append=True, chat_type=self._chat_type
        )

    @property
    def own_section(self) -> str:
        """Our part of it."""
        return SECTION if self._is_private else GUEST_SECTION

    def tools(self) -> list[Tool]:
        """What the model can do; who is not proven to be the agent's own person gets nothing that
        writes.
        """
        tools = self.memory.tools(
            self.conversation.session_key, append=True, chat_type=self._chat_type
        )
        return [*tools, *self._files.tools()] if self._is_private else tools

    def end(self, *, hurried: bool = False) -> NoteOutcome:
        """Leave a note; in a hurry, or when somebody is tired of waiting, without asking the model
        for its name.
        """
        try:
            if not hurried:
                return self.conversation.end("exit")
        except KeyboardInterrupt:
            pass
        parts = self.conversation.parts
        self.conversation.parts = parts._replace(models=Models(None, None, parts.models.window))
        return self.conversation.end("exit")

    def _answer(self, turn: UserTurn, stage: Stage) -> Answer:
        if self._is_private:
            # What the model sees whole in its prompt it may write anew.
            self._files.show((*SEEDED, RITUAL), self.memory.settings.bootstrap_max_chars)
        calls: dict[str, ToolCall] = {}

        def heard(message: Message) -> None:
            if message.role == "assistant":
                calls.update((call.id, call) for call in message.calls)
                self.conversation.record("message", called_line(message))
            else:
                call = calls[message.call_id]
                self.conversation.record("message", result_line(message, call.name))
                stage.used(call, message.text)

        system = f"{self.own_section}\n\n{turn.system}"
        # What was recalled goes with this one message: in the history it would be told again and
        # again.
        message = f"{turn.recalled}\n\n{turn.message}" if turn.recalled else turn.message
        return self.voice.answer(
            system, self._told(), message, self.tools(), Ears(stage.piece, heard)
        )

    def _told(self) -> list[Message]:
        """The conversation as the model is told it."""
        if not self.history.summary:
            return self.history.messages
        now = self.conversation.parts.now()
        return [
            Message("user", opening(self.history.summary, self._files.text("AGENTS.md"), now)),
            *self.history.messages,
        ]

    def _compact(self, line: str, stage: Stage) -> None:
        """Put the beginning of the conversation into a summary; `line` is the message that found no
        room.
        """
        tokens = self.tokens
        flushed = self.conversation.before_compaction()
        if isinstance(flushed, Flushed | FlushFailed):
            stage.event(flushed)
        older, kept = split(self.history.exchanges, self.window // KEPT_SHARE)
        summary, problem = self._summary(older)
        first = kept[0].line if kept else line
        fields = {"summary": summary, "firstKeptEntryId": first, "tokensBefore": tokens}
        self.conversation.record("compaction", fields)
        self.history = History(summary, tuple(kept))
        stage.event(Compacted(len(older), len(kept), problem))

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
        """How full the context is: as the service says, else by our own estimate of everything that
        is in it.
        """
        if answer.tokens or answer.problem is not None:
            return answer.tokens
        told = sum(estimate_tokens(one.text) for one in self._told())
        return told + estimate_tokens(self.own_section) + self.prompt().tokens

    def _entry(self) -> SessionEntry:
        return self.conversation.parts.store.get(self.conversation.session_key)


@contextmanager
def open_talk(
    memory: Memory,
    model: str,
    session_key: str,
    environ: Mapping[str, str],
    *,
    recall: bool = False,
) -> Iterator[Talk]:
    """A conversation with a model, by its name; ConfigError when it cannot be used. One at a time
    for each session.

    With `recall` each message brings along what the memory has about it, for a model that does not
    ask by itself."""
    name = parse_model(model)
    key = find_model_key(name, environ)
    is_configured = model == model_name(memory.settings.runtime, environ)
    window = 0 if memory.settings.runtime.get("agents.defaults.contextTokens") else name.window
    conversation = memory.conversation(
        session_key,
        # Without one of our own the conversation takes what is configured, and there may be another
        # model for flushing.
        completer=None if is_configured else choose_completer(model, environ),
        context_window=window,
        append=True,
        recall=recall,
        host_options=HostOptions(source="chat", records_answers=True),
    )
    with _alone(conversation), Voice(name, key) as voice:
        yield Talk(memory, voice, conversation)


@contextmanager
def _alone(conversation: Conversation) -> Iterator[None]:
    """Hold the session: two that talk in it at once would not hear each other."""
    name = hashlib.sha256(conversation.session_key.encode()).hexdigest()[:16]
    with statefile.locked(
        os.path.join(conversation.parts.store.folder, f"chat-{name}"), 0.0
    ) as is_held:
        if not is_held:
            raise ClawmarkError(
                "Another `clawmark chat` is open in this session.",
                hint="Go on there, or hold a second conversation: clawmark "
                "chat --session agent:main:direct:second",
            )
        yield
