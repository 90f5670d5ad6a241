"""A conversation with a memory, for any host: calls around the model that the host runs itself.

    system = conversation.start()
    while message := input("> "):
        turn = conversation.on_user(message)          # flushes and rolls over when it is due
        if turn.compact:
            conversation.before_compaction()          # then shorten the history
        answer = ask(turn.system, history, turn.recalled, turn.message)
        conversation.on_usage(answer.tokens, reply=answer.text)
    conversation.end()                                # writes the session note

The conversation keeps a transcript and an entry in sessions.json. Calling the model, running its
tools and shortening its history is up to the host."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import NamedTuple

from clawmark.agent.flush.flush import (
    FlushOutcome,
    FlushParts,
    FlushSettings,
    SessionState,
    compaction_threshold,
    flush_session,
    flush_transcript,
)
from clawmark.agent.flush.forecast import FlushForecast, forecast_flush
from clawmark.agent.models.completer import Completer
from clawmark.agent.notes.session_note import (
    NoNote,
    NoteOutcome,
    NoteParts,
    NoteSettings,
    Reason,
    note_session,
    note_transcript,
)
from clawmark.agent.plugins.base import FlushPolicy
from clawmark.agent.plugins.lifecycle import SessionHooks
from clawmark.agent.prompt.trust_gate import LABELS_ONLY, TrustGate
from clawmark.agent.session.memory_use import recalled_record
from clawmark.agent.session.session import (
    Fields,
    Rollover,
    SessionEntry,
    SessionStore,
    fresh_fields,
    new_session_id,
    rolled_over,
)
from clawmark.agent.session.setup import (
    Models,
    flush_settings,
    models_for,
    note_settings,
    rollover_settings,
)
from clawmark.agent.session.transcript_writer import TranscriptWriter
from clawmark.agent.tools.policy import access_of, may_write
from clawmark.config.schema import Settings
from clawmark.config.schema.tools import Sandbox
from clawmark.model.errors import ClawmarkError
from clawmark.text.chunking.tokens import estimate_tokens
from clawmark.text.secrets.redact import Redactor
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
    flush_policy: FlushPolicy | None = FlushPolicy()
    """How the memory plugin flushes; None if it does not."""
    sandbox: Sandbox = Sandbox()
    gate: TrustGate = LABELS_ONLY
    """Leaves out of a flush what came from outside."""


class SessionCallbacks(NamedTuple):
    """What a conversation calls in the memory."""

    prompt: Callable[[], str]
    """Returns the current system prompt."""
    recall: Callable[[str], str]
    """(message) → a block of recalled memory, or an empty text."""
    started: Callable[[], object]
    compacted: Callable[[], object]
    hooks: Callable[[], SessionHooks] | None = None
    """Returns the lifecycle hooks of the session."""


class HostOptions(NamedTuple):
    """What the host says about a session."""

    rollover: Rollover | None = None
    """When the session ends by itself; None for the configured value."""
    source: str = ""
    """Where it takes place, for the note: `chat`, `telegram` …"""
    chat_type: str = ""
    """The type of chat, such as `group` or `heartbeat`; it can only make a session less private."""
    prompt_mode: str = "full"
    """How much of the prompt there is: `full`, `minimal` or `none`."""
    prompt_time: bool = False
    """Whether the prompt tells the time."""
    read_only: bool = False
    sandboxed: bool = False
    """Whether the host runs the session in a sandbox, whatever `sandbox.mode` says."""
    cli_backed: bool = False
    records_answers: bool = False
    """Whether every answer is passed to `on_usage`: a conversation without one has failed and gets
    no note.
    """


class UserTurn(NamedTuple):
    """What the host should do with a message of the user."""

    message: str
    """What to send to the model; empty if the message was only a command."""
    system: str
    """The current system prompt."""
    recalled: str
    """A block of recalled memory to send with the message; may be empty."""
    flush: FlushOutcome
    compact: bool
    """Whether the history must be shortened before the message is sent."""
    note: NoteOutcome | None = None
    """The note of the session that ended with this message, if one did."""
    line: str = ""
    """The id of the message's record in the transcript."""


class Conversation:
    """One session of one agent, from its first message to its note."""

    def __init__(
        self,
        session_key: str,
        parts: Parts,
        callbacks: SessionCallbacks,
        host_options: HostOptions | None = None,
    ) -> None:
        self.session_key = session_key
        self.parts = parts
        self._callbacks = callbacks
        self._host = host_options or HostOptions()
        self._writer: TranscriptWriter | None = None
        self._incoming = 0
        self._message = ""
        self._started = ""

    @property
    def session_id(self) -> str:
        return self.parts.store.get(self.session_key).session_id

    @property
    def transcript(self) -> str:
        """The path of the transcript."""
        return self.parts.store.get(self.session_key).session_file

    def start(self) -> str:
        """Start a session, or continue one that has not ended, and return the system prompt.

        A session whose time is over gets its note first.
        """
        self._roll_over()
        entry = self._begin()
        self._callbacks.started()
        self._fire_start(entry)
        return self._callbacks.prompt()

    def on_user(self, message: str) -> UserTurn:
        """Handle a message before the model gets it; `/new` and `/reset` start another session."""
        note = self._end_by_command(message) or self._roll_over()
        if _command(message):
            message = message.strip()[len(_command(message)) + 1 :].strip()
        entry = self._begin()
        self._fire_start(entry)
        self._incoming = estimate_tokens(message)
        self._message = message
        flush = flush_session(
            self._flush_parts(), self._state(entry), incoming_tokens=self._incoming
        )
        turn = UserTurn(message="", system="", recalled="", flush=flush, compact=False, note=note)
        if not message.strip():
            return turn._replace(system=self._callbacks.prompt())
        line = self._transcript(entry).add_message("user", message)
        self.parts.store.update(self.session_key, updated_at=self._now_ms())
        recalled = self._recalled(message)
        if recalled:
            self._transcript(entry).add_record("custom", recalled_record(recalled))
        limit = compaction_threshold(self.parts.models.window, self.parts.flush)
        return turn._replace(
            message=message,
            system=self._callbacks.prompt(),
            recalled=recalled,
            compact=entry.total_tokens + self._incoming >= limit,
            line=line,
        )

    def on_usage(self, tokens: int = 0, *, reply: str = "", succeeded: bool = True) -> None:
        """Record an answer and how full the context is; without `tokens` that is estimated.

        With `succeeded=False`, memory plugins learn that the answer is incomplete or missing."""

        def changes(entry: SessionEntry) -> Fields:
            estimate = entry.total_tokens + self._incoming + estimate_tokens(reply)
            return {
                "total_tokens": tokens if tokens > 0 else estimate,
                "total_tokens_fresh": tokens > 0,
                "updated_at": self._now_ms(),
            }

        entry = self.parts.store.change(self.session_key, changes)
        self._incoming = 0
        if reply.strip():
            usage = {"usage": {"totalTokens": tokens}} if tokens > 0 else {}
            self._transcript(entry).add_message("assistant", reply, **usage)
        if self._callbacks.hooks is not None and (reply.strip() or not succeeded):
            turn = (("user", self._message), ("assistant", reply))
            self._callbacks.hooks().agent_end(turn, succeeded=succeeded)
            self._message = ""

    def record(self, kind: str, fields: Fields) -> str:
        """Add another record to the transcript, such as a tool call; return its id."""
        return self._transcript(self._begin()).add_record(kind, fields)

    def before_compaction(self) -> FlushOutcome:
        """Flush unless this cycle was flushed, and start the next cycle.

        The history may be shortened when this returns.
        """
        if self._callbacks.hooks is not None:
            self._callbacks.hooks().before_compaction()
        outcome = flush_session(self._flush_parts(), self.state(), is_compacting=True)

        def changes(entry: SessionEntry) -> Fields:
            return {
                "compaction_count": entry.compaction_count + 1,
                "total_tokens": 0,
                "total_tokens_fresh": False,
            }

        self.parts.store.change(self.session_key, changes)
        self._callbacks.compacted()
        return outcome

    def flush(self, transcript: str | None = None) -> FlushOutcome:
        """Flush now what is new since the last flush, even if it is not due.

        With a `transcript`, that file is flushed instead of this session; raises ClawmarkError.
        """
        if transcript is None:
            return flush_session(self._flush_parts(), self.state(), is_asked_for=True)
        return flush_transcript(self._flush_parts(), os.path.realpath(transcript), self.session_key)

    def flush_forecast(self) -> FlushForecast:
        """Return whether the next message would cause a flush; nothing is written."""
        return forecast_flush(self._flush_parts(), self.state())

    def keep_messages(self, transcript: str | None = None) -> NoteOutcome:
        """Write the last messages of this session, or of a transcript, to a note, without a model.

        This is done even if session notes are switched off.
        """
        parts = self.note_parts(None)
        parts = parts._replace(settings=parts.settings._replace(enabled=True))
        if transcript is None:
            return note_session(parts, self.session_key, reason="flush")
        return note_transcript(parts, os.path.realpath(transcript), source="transcript")

    def state(self) -> SessionState:
        """Return the session as recorded now, and its restrictions."""
        return self._state(self.parts.store.get(self.session_key))

    def end(self, reason: Reason = "exit") -> NoteOutcome:
        """End the session and write its note; the next start is a new session."""
        outcome = self._note(reason)
        ended = self.parts.store.get(self.session_key)
        self.parts.store.change(
            self.session_key, lambda entry: {"ended": True} if entry.session_id else None
        )
        if self._callbacks.hooks is not None and ended.session_id and not ended.ended:
            self._callbacks.hooks().session_end()
        self._started = ""
        self._writer = None
        return outcome

    def _note(self, reason: Reason) -> NoteOutcome:
        if self.state().sandboxed:
            return NoNote("sandboxed")
        return note_session(
            self.note_parts(self.parts.models.usual),
            self.session_key,
            reason=reason,
            source=self._host.source,
            needs_answer=self._host.records_answers,
        )

    def note_parts(self, completer: Completer | None) -> NoteParts:
        """Return what a session note is made with; the completer names it."""
        return NoteParts(
            completer=completer,
            store=self.parts.store,
            workspace=self.parts.workspace,
            redactor=self.parts.redactor,
            settings=self.parts.note,
            now=self.parts.now,
        )

    def _flush_parts(self) -> FlushParts:
        return FlushParts(
            completer=self.parts.models.flushing,
            store=self.parts.store,
            workspace=self.parts.workspace,
            redactor=self.parts.redactor,
            settings=self.parts.flush,
            context_window=self.parts.models.window,
            now=self.parts.now,
            policy=self.parts.flush_policy,
            gate=self.parts.gate,
        )

    def _end_by_command(self, message: str) -> NoteOutcome | None:
        command = _command(message)
        if not command:
            return None
        return self.end("new" if command == "new" else "reset")

    def _roll_over(self) -> NoteOutcome | None:
        """End the session if its time is over."""
        entry = self.parts.store.get(self.session_key)
        if not entry.session_id or entry.ended:
            return None
        rollover = self._host.rollover or self.parts.rollover
        reason = rolled_over(entry.updated_at, self.parts.now(), rollover)
        return self.end(reason) if reason else None

    def _begin(self) -> SessionEntry:
        """Return the current session, or start a new one under the same key."""

        def changes(entry: SessionEntry) -> Fields | None:
            chat_type = self._host.chat_type
            declared: Fields = (
                {"chat_type": chat_type} if chat_type and chat_type != entry.chat_type else {}
            )
            if entry.session_id and not entry.ended:
                return declared or None
            session_id = new_session_id()
            path = os.path.join(self.parts.store.folder, f"{session_id}.jsonl")
            return {**fresh_fields(session_id, path, self._now_ms()), **declared}

        return self.parts.store.change(self.session_key, changes)

    def _fire_start(self, entry: SessionEntry) -> None:
        """Call the hook `session_start`, once for each session in this object."""
        if self._callbacks.hooks is not None and self._started != entry.session_id:
            self._started = entry.session_id
            self._callbacks.hooks().session_start()

    def _recalled(self, message: str) -> str:
        """Return recalled memory; empty if the memory cannot be searched, as the prompt reports."""
        try:
            return self._callbacks.recall(message)
        except ClawmarkError:
            return ""

    def _state(self, entry: SessionEntry) -> SessionState:
        host = self._host
        access = access_of(
            self.session_key,
            chat_type=host.chat_type or entry.chat_type,
            sandbox=self.parts.sandbox,
            sandboxed=host.sandboxed,
        )
        return SessionState(
            entry=entry,
            read_only=host.read_only or not os.access(self.parts.workspace.root, os.W_OK),
            sandboxed=not may_write(access.sandbox),
            cli_backed=host.cli_backed,
            heartbeat=access.kind == "heartbeat",
        )

    def _transcript(self, entry: SessionEntry) -> TranscriptWriter:
        if self._writer is None or self._writer.path != entry.session_file:
            self._writer = TranscriptWriter(
                path=entry.session_file,
                session_id=entry.session_id,
                cwd=self.parts.workspace.root,
                now=self.parts.now,
            )
        return self._writer

    def _now_ms(self) -> int:
        return int(self.parts.now().timestamp() * 1000)


def _command(message: str) -> str:
    """Return `new` or `reset` if a message is that command."""
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
    """Return the configured parts of a conversation.

    `folder` is for transcripts; `keys` are secrets that are never kept.
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
        sandbox=settings.sandbox,
    )
