"""A conversation with a memory, for any host: five calls around the model that the host talks to
itself.

    system = conversation.start()
    while message := input("> "):
        turn = conversation.on_user(message)          # flushes and rolls over when it is time
        if turn.compact:
            conversation.before_compaction()          # then shorten the history
        answer = ask(turn.system, history, turn.recalled, turn.message)
        conversation.on_usage(answer.tokens, reply=answer.text)
    conversation.end()                                # leaves a note

In: what is said and how many tokens it took. Out: the system prompt, what was recalled, whether to
compact, and what became of the flush and of the note. The conversation keeps a transcript and an
entry in sessions.json; asking the model for answers, running its tools and shortening its history
stay with the host."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from clawmark.agent.flush.flush import (
    FlushOutcome,
    FlushParts,
    FlushSettings,
    Standing,
    compaction_threshold,
    flush_session,
)
from clawmark.agent.models.completer import Completer
from clawmark.agent.notes.session_note import (
    NoteOutcome,
    NoteParts,
    NoteSettings,
    Reason,
    note_session,
)
from clawmark.agent.session.rollover import Rollover, rolled_over
from clawmark.agent.session.session import (
    Fields,
    SessionEntry,
    SessionStore,
    fresh_fields,
    new_session_id,
)
from clawmark.agent.session.setup import (
    Models,
    flush_settings,
    models_for,
    note_settings,
    rollover_settings,
)
from clawmark.agent.session.transcript_log import TranscriptLog
from clawmark.config.schema import Settings
from clawmark.model.errors import ClawmarkError
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.secrets.redact import Redactor
from clawmark.text.transcripts.session_keys import kind_of
from clawmark.workspace import Workspace


class Parts(NamedTuple):
    """What a conversation works with."""

    store: SessionStore
    workspace: Workspace
    models: Models
    redactor: Redactor
    flush: FlushSettings
    note: NoteSettings
    now: Callable[[], datetime]
    rollover: Rollover


class Voice(NamedTuple):
    """What a conversation asks the memory, and tells it."""

    prompt: Callable[[], str]
    """The system prompt as it is now."""
    recall: Callable[[str], str]
    """(message) -> a block of what the memory has about it, or nothing."""
    started: Callable[[], object]
    compacted: Callable[[], object]


class Manner(NamedTuple):
    """How a session is held, and what it may do."""

    rollover: Rollover | None = None
    """When it ends by itself; None for what is configured."""
    source: str = ""
    """Where it takes place, for the note: `chat`, `telegram` …"""
    chat_type: str = ""
    """What the host knows about the chat, as `group` or `heartbeat`; it can only take privacy away.
    """
    read_only: bool = False
    sandboxed: bool = False
    cli_backed: bool = False
    records_answers: bool = False
    """Whether every answer is passed to `on_usage`, so that a conversation without one has failed
    and leaves no note.
    """


class UserTurn(NamedTuple):
    """What to do with a message of the user's."""

    message: str
    """What to send to the model; empty when the message was a command and nothing else."""
    system: str
    """The system prompt as it is now: a memory written a moment ago is in it."""
    recalled: str
    """A block of recalled memory to send with the message; empty without one."""
    flush: FlushOutcome
    compact: bool
    """Whether the history has to be shortened before the message is sent."""
    note: NoteOutcome | None = None
    """The note of the session that ended with this message, when one did."""
    line: str = ""
    """The id of the message's line in the transcript."""


class Conversation:
    """One session of one agent, from its first message to its note."""

    def __init__(
        self, session_key: str, parts: Parts, voice: Voice, manner: Manner | None = None
    ) -> None:
        self.session_key = session_key
        self.parts = parts
        self._voice = voice
        self._manner = manner or Manner()
        self._transcript: TranscriptLog | None = None
        self._incoming = 0

    @property
    def session_id(self) -> str:
        return self.parts.store.get(self.session_key).session_id

    @property
    def transcript(self) -> str:
        """Where everything that is said is kept."""
        return self.parts.store.get(self.session_key).session_file

    def start(self) -> str:
        """Begin, or go on with a session that has not ended; the system prompt.

        One that is over leaves its note first.
        """
        self._roll_over()
        self._begin()
        self._voice.started()
        return self._voice.prompt()

    def on_user(self, message: str) -> UserTurn:
        """Take in what the user says, before the model does; `/new` and `/reset` end the session
        and begin another.
        """
        note = self._end_if_told(message) or self._roll_over()
        if _command(message):
            message = message.strip()[len(_command(message)) + 1 :].strip()
        entry = self._begin()
        self._incoming = estimate_tokens(message)
        flush = flush_session(
            self._flush_parts(), self._standing(entry), incoming_tokens=self._incoming
        )
        if not message.strip():
            return UserTurn(
                message="",
                system=self._voice.prompt(),
                recalled="",
                flush=flush,
                compact=False,
                note=note,
            )
        projected = entry.total_tokens + self._incoming
        line = self._log(entry).said("user", message)
        self.parts.store.update(self.session_key, updated_at=self._now_ms())
        recalled = self._recalled(message)
        limit = compaction_threshold(self.parts.models.window, self.parts.flush)
        return UserTurn(
            message=message,
            system=self._voice.prompt(),
            recalled=recalled,
            flush=flush,
            compact=projected >= limit,
            note=note,
            line=line,
        )

    def on_usage(self, tokens: int = 0, *, reply: str = "") -> None:
        """Note how full the context is after an answer, and the answer; tokens that nobody counts
        are estimated.
        """

        def noted(entry: SessionEntry) -> Fields:
            total = (
                tokens
                if tokens > 0
                else entry.total_tokens + self._incoming + estimate_tokens(reply)
            )
            return {
                "total_tokens": total,
                "total_tokens_fresh": tokens > 0,
                "updated_at": self._now_ms(),
            }

        entry = self.parts.store.change(self.session_key, noted)
        self._incoming = 0
        if reply.strip():
            usage = {"usage": {"totalTokens": tokens}} if tokens > 0 else {}
            self._log(entry).said("assistant", reply, **usage)

    def record(self, kind: str, fields: Fields) -> str:
        """Add a line to the transcript that is neither of the two: a tool's call or result, a
        compaction. The line's id.
        """
        return self._log(self._begin()).add(kind, fields)

    def before_compaction(self) -> FlushOutcome:
        """Flush now if this cycle has not been flushed, and begin the next cycle; the history may
        then be shortened.
        """
        outcome = flush_session(self._flush_parts(), self.standing(), is_compacting=True)

        def noted(entry: SessionEntry) -> Fields:
            return {
                "compaction_count": entry.compaction_count + 1,
                "total_tokens": 0,
                "total_tokens_fresh": False,
            }

        self.parts.store.change(self.session_key, noted)
        self._voice.compacted()
        return outcome

    def flush(self) -> FlushOutcome:
        """Flush now because somebody asks for it, whatever the numbers say; only what is new since
        the last flush counts.
        """
        return flush_session(self._flush_parts(), self.standing(), is_asked_for=True)

    def standing(self) -> Standing:
        """The session as it is noted now, and what it is allowed to do."""
        return self._standing(self.parts.store.get(self.session_key))

    def end(self, reason: Reason = "exit") -> NoteOutcome:
        """Leave a note of the session; the next start is a new one.

        A session without a word leaves nothing.
        """
        store, workspace, models, redactor, _, settings, now, _ = self.parts
        parts = NoteParts(
            completer=models.usual,
            store=store,
            workspace=workspace,
            redactor=redactor,
            settings=settings,
            now=now,
        )
        source, needs_answer = self._manner.source, self._manner.records_answers
        outcome = note_session(
            parts, self.session_key, reason=reason, source=source, needs_answer=needs_answer
        )
        store.change(self.session_key, lambda entry: {"ended": True} if entry.session_id else None)
        self._transcript = None
        return outcome

    def _end_if_told(self, message: str) -> NoteOutcome | None:
        command = _command(message)
        if not command:
            return None
        return self.end("new" if command == "new" else "reset")

    def _roll_over(self) -> NoteOutcome | None:
        """End the session if its time is over."""
        entry = self.parts.store.get(self.session_key)
        if not entry.session_id or entry.ended:
            return None
        reason = rolled_over(
            entry.updated_at, self.parts.now(), self._manner.rollover or self.parts.rollover
        )
        return self.end(reason) if reason else None

    def _begin(self) -> SessionEntry:
        """The session that goes on, or a new one under the same key."""

        def fresh(entry: SessionEntry) -> Fields | None:
            chat_type = self._manner.chat_type
            declared: Fields = (
                {"chat_type": chat_type} if chat_type and chat_type != entry.chat_type else {}
            )
            if entry.session_id and not entry.ended:
                return declared or None
            made = new_session_id()
            fields = fresh_fields(
                made, os.path.join(self.parts.store.folder, f"{made}.jsonl"), self._now_ms()
            )
            return {**fields, **declared}

        return self.parts.store.change(self.session_key, fresh)

    def _recalled(self, message: str) -> str:
        """What the memory has about a message; a memory that cannot be searched is told in the
        prompt, and stops nothing.
        """
        try:
            return self._voice.recall(message)
        except ClawmarkError:
            return ""

    def _flush_parts(self) -> FlushParts:
        store, workspace, models, redactor, settings, _, now, _ = self.parts
        return FlushParts(
            completer=models.flushing,
            store=store,
            workspace=workspace,
            redactor=redactor,
            settings=settings,
            context_window=models.window,
            now=now,
        )

    def _standing(self, entry: SessionEntry) -> Standing:
        manner = self._manner
        is_read_only = manner.read_only or not os.access(self.parts.workspace.root, os.W_OK)
        is_heartbeat = kind_of(self.session_key, manner.chat_type or entry.chat_type) == "heartbeat"
        return Standing(
            entry=entry,
            read_only=is_read_only,
            sandboxed=manner.sandboxed,
            cli_backed=manner.cli_backed,
            heartbeat=is_heartbeat,
        )

    def _log(self, entry: SessionEntry) -> TranscriptLog:
        if self._transcript is None or self._transcript.path != entry.session_file:
            root = self.parts.workspace.root
            self._transcript = TranscriptLog(
                path=entry.session_file, session_id=entry.session_id, cwd=root, now=self.parts.now
            )
        return self._transcript

    def _now_ms(self) -> int:
        return int(self.parts.now().timestamp() * 1000)


def _command(message: str) -> str:
    """`new` or `reset` when a message is that command."""
    first = message.strip().split(maxsplit=1)[:1]
    return first[0][1:] if first and first[0] in ("/new", "/reset") else ""


def open_parts(
    settings: Settings,
    folder: str,
    workspace: Workspace,
    keys: Sequence[str],
    now: Callable[[], datetime],
    completer: Completer | None = None,
    window: int = 0,
) -> Parts:
    """The parts of a conversation as they are configured; `folder` is for transcripts, `keys` are
    what is never kept.
    """
    models = models_for(settings, os.environ, completer, window)
    return Parts(
        store=SessionStore(folder),
        workspace=workspace,
        models=models,
        redactor=Redactor(keys),
        flush=flush_settings(settings),
        note=note_settings(settings),
        now=now,
        rollover=rollover_settings(settings),
    )
