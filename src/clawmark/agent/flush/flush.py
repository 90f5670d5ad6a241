"""The memory flush: before a conversation is compacted, write what matters into the daily log.

`decide_flush` decides from numbers alone; `run_flush` lets a model write, in one turn that is not
part of the transcript; `flush_session` does both for a session, at most once per compaction cycle,
even if several processes try.

A flush is due when the tokens of the context and of the next message reach

    window - reserveTokensFloor - softThresholdTokens          (20,000 and 4,000)

In a window of less than 80,000 tokens both numbers shrink in proportion, so that the threshold is
70 % of the window; it is never less than a quarter of it. A flush is also due when the transcript
has grown by 2 MiB since the last one. After a failure, the next attempt waits for a pause that
doubles each time; a compaction that is about to happen does not wait."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from clawmark.agent.flush.daily_log import DailyLog
from clawmark.agent.flush.prompts import LOG, NUDGE, is_silent, system_prompt, user_prompt
from clawmark.agent.models.completer import Completer, Message, complete_with_tools
from clawmark.agent.notes.outside_text import hear
from clawmark.agent.plugins.base import FlushPolicy
from clawmark.agent.prompt.trust_gate import LABELS_ONLY, TrustGate
from clawmark.agent.session.session import Fields, SessionEntry, SessionStore
from clawmark.agent.session.transcript_reader import recent_messages, transcript_size
from clawmark.agent.tools.base import log_unexpected
from clawmark.model.documents import Written
from clawmark.model.errors import ClawmarkError, CompletionError, ContextTooLong, WorkspaceError
from clawmark.system.backoff import Backoff
from clawmark.text.secrets.redact import Redactor
from clawmark.text.transcripts.records import TranscriptMessage
from clawmark.workspace import Workspace

FULL_WINDOW = 80_000
"""From this window on, the configured numbers are not scaled."""
RETRY = Backoff(first=60.0, longest=3600.0)
"""The pause after a failed flush."""
ABANDONED_MS = 180_000
"""A flush that started longer ago has died: a flush has two minutes."""
SECONDS = 120.0
DEFAULT_POLICY = FlushPolicy()

SkipReason: TypeAlias = Literal[
    "no-policy",
    "disabled",
    "heartbeat",
    "read-only",
    "sandboxed",
    "cli-backed",
    "no-session",
    "no-model",
    "already-flushed",
    "in-progress",
    "below-threshold",
    "backing-off",
    "nothing-new",
]

SKIP_REASONS: dict[SkipReason, str] = {
    "no-policy": "the memory plugin has no flush",
    "disabled": "flushing is switched off",
    "heartbeat": "a heartbeat is not a conversation",
    "read-only": "the session may only read",
    "sandboxed": "the session's sandbox may not write to the workspace",
    "cli-backed": "the model keeps its own memory",
    "no-session": "there is no such session",
    "no-model": "no model is configured",
    "already-flushed": "it was flushed since the last compaction",
    "in-progress": "another process is flushing it",
    "below-threshold": "there is still room",
    "backing-off": "the last attempt failed a moment ago",
    "nothing-new": "nothing was said since the last flush",
}


class FlushSettings(NamedTuple):
    """The part of `agents.defaults.compaction` that is about flushing."""

    enabled: bool = True
    reserve_tokens_floor: int = 20_000
    soft_threshold_tokens: int = 4_000
    force_flush_transcript_bytes: int = 2 << 20
    """0 for never."""
    prompt: str = ""
    system_prompt: str = ""
    times: bool = False
    """Whether entries start with the time."""


class Usage(NamedTuple):
    """How full the context and the transcript are."""

    context_window: int
    total_tokens: int
    """In the context after the last answer."""
    incoming_tokens: int = 0
    """In the message that is about to be added."""
    transcript_bytes: int = 0
    now_ms: int = 0
    is_compacting: bool = False
    """The context is about to be compacted: thresholds and pauses do not apply."""
    is_asked_for: bool = False
    """The user wants a flush: settings and earlier flushes do not apply either."""


class SessionState(NamedTuple):
    """A session and its restrictions."""

    entry: SessionEntry
    read_only: bool = False
    sandboxed: bool = False
    cli_backed: bool = False
    heartbeat: bool = False


class Flush(NamedTuple):
    """The decision to flush."""

    because: Literal["tokens", "transcript", "compaction", "asked"]
    projected: int
    threshold: int


class SkipFlush(NamedTuple):
    """The decision not to flush."""

    because: SkipReason

    @property
    def message(self) -> str:
        """The reason in words."""
        return SKIP_REASONS[self.because]


class Flushed(NamedTuple):
    """The result of a flush."""

    written: tuple[Written, ...]
    """Empty if nothing was worth keeping, or nothing of it was new."""
    refused: tuple[str, ...]
    """Why some of what the model wanted to write was not written."""
    input_tokens: int
    output_tokens: int
    proposals: tuple[str, ...] = ()
    """What was not written, because the user has to accept it first."""


class FlushFailed(NamedTuple):
    """A flush that could not run; it is tried again later."""

    message: str
    hint: str


FlushOutcome: TypeAlias = Flushed | SkipFlush | FlushFailed


class FlushParts(NamedTuple):
    """What a flush works with."""

    completer: Completer | None
    store: SessionStore
    workspace: Workspace
    redactor: Redactor
    settings: FlushSettings
    context_window: int
    now: Callable[[], datetime]
    policy: FlushPolicy | None = DEFAULT_POLICY
    """What the memory plugin decides: prompts and log. None if it has no flush."""
    gate: TrustGate = LABELS_ONLY
    """Leaves out of the log what came from outside, where the model is shown it."""

    def now_ms(self) -> int:
        return int(self.now().timestamp() * 1000)

    def daily_log(
        self,
        session_key: str,
        chat_type: str,
        messages: Sequence[TranscriptMessage],
        transcript: str,
        *,
        since: int = 0,
        is_foreign: bool = False,
    ) -> DailyLog:
        """Return the log for what is kept of some messages of a transcript."""
        end = transcript_size(transcript)
        return DailyLog(
            workspace=self.workspace,
            now=self.now,
            redactor=self.redactor,
            session_key=session_key,
            chat_type=chat_type,
            log=self.policy.log if self.policy is not None else LOG,
            times=self.settings.times,
            heard=hear(messages, transcript, since, self.workspace),
            source=f"{os.path.basename(transcript)} bytes {min(since, end)}-{end}",
            is_foreign=is_foreign,
            gate=self.gate,
        )


# --- The decision ---


def flush_threshold(window: int, settings: FlushSettings) -> int:
    """Return the number of tokens at which a flush is due; from 1 to less than the window."""
    margin = settings.reserve_tokens_floor + settings.soft_threshold_tokens
    return max(1, window // 4, window - _scaled(margin, window))


def compaction_threshold(window: int, settings: FlushSettings) -> int:
    """Return the number of tokens at which only the reserve is left."""
    return max(
        flush_threshold(window, settings), window - _scaled(settings.reserve_tokens_floor, window)
    )


def decide_flush(
    usage: Usage,
    session: SessionState,
    settings: FlushSettings,
    policy: FlushPolicy | None = DEFAULT_POLICY,
) -> Flush | SkipFlush:
    """Decide whether to flush now; a pure function."""
    entry = session.entry
    started = entry.memory_flush_started_at
    always: tuple[tuple[SkipReason, bool], ...] = (
        ("no-policy", policy is None),
        ("no-session", not entry.session_id),
        ("in-progress", 0 < started <= usage.now_ms < started + ABANDONED_MS),
    )
    usually: tuple[tuple[SkipReason, bool], ...] = (
        ("disabled", not settings.enabled),
        ("heartbeat", session.heartbeat),
        ("read-only", session.read_only),
        ("sandboxed", session.sandboxed),
        ("cli-backed", session.cli_backed),
        ("already-flushed", entry.memory_flush_compaction_count == entry.compaction_count),
    )
    for because, applies in always if usage.is_asked_for else (*usually, *always):
        if applies:
            return SkipFlush(because)
    projected = usage.total_tokens + usage.incoming_tokens
    threshold = flush_threshold(usage.context_window, settings)
    if usage.is_asked_for:
        return Flush("asked", projected, threshold)
    if usage.is_compacting:
        return Flush("compaction", projected, threshold)
    if projected < threshold and not _has_grown(usage, entry, settings):
        return SkipFlush("below-threshold")
    if usage.now_ms < retry_at(entry):
        return SkipFlush("backing-off")
    return Flush("tokens" if projected >= threshold else "transcript", projected, threshold)


def _scaled(tokens: int, window: int) -> int:
    """Scale a number of tokens from a full window to this one, rounded up."""
    return -(-tokens * min(window, FULL_WINDOW) // FULL_WINDOW)


def _has_grown(usage: Usage, entry: SessionEntry, settings: FlushSettings) -> bool:
    """Check whether the transcript has grown enough since the last flush."""
    is_same_file = entry.memory_flush_bytes <= usage.transcript_bytes
    grown = usage.transcript_bytes - (entry.memory_flush_bytes if is_same_file else 0)
    return 0 < settings.force_flush_transcript_bytes <= grown


def retry_at(entry: SessionEntry) -> int:
    """Return when a flush that failed may be tried again, in milliseconds since 1970."""
    failures = entry.memory_flush_failures
    pause = int(1000 * RETRY.wait(failures)) if failures > 0 else 0
    return entry.memory_flush_failed_at + pause


# --- The turn ---


def run_flush(
    completer: Completer,
    messages: Sequence[TranscriptMessage],
    log: DailyLog,
    settings: FlushSettings,
    now: datetime,
    policy: FlushPolicy = DEFAULT_POLICY,
    *,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Flushed:
    """Let the model write down what matters in the messages; raises ClawmarkError.

    If they are too long for the model, the older half is dropped.
    """
    end = clock() + seconds
    while True:
        try:
            return _turn(
                completer, messages, log, _prompts(settings, policy), now, lambda: end - clock()
            )
        except ContextTooLong:
            if len(messages) < 2 or log.written:
                raise
            messages = messages[(len(messages) + 1) // 2 :]


def _prompts(settings: FlushSettings, policy: FlushPolicy) -> FlushPolicy:
    """Return the policy of the plugin with the prompts that the user has configured."""
    return policy._replace(
        prompt=settings.prompt or policy.prompt,
        system_prompt=settings.system_prompt or policy.system_prompt,
    )


def _turn(
    completer: Completer,
    messages: Sequence[TranscriptMessage],
    log: DailyLog,
    policy: FlushPolicy,
    now: datetime,
    seconds_left: Callable[[], float],
) -> Flushed:
    day = now.date().isoformat()
    system = system_prompt(policy.system_prompt, now, policy.log)
    prompt = user_prompt(policy.prompt, messages, log.read(day), now, policy.log)
    prompts = [Message("user", prompt)]
    tools = log.tools(day)
    turns = complete_with_tools(completer, system, prompts, tools, seconds=seconds_left())
    output = turns.output_tokens
    if not log.is_used and not is_silent(turns.text):
        # Small models often answer with what they should have written; remind them once.
        prompts += [*turns.added, Message("user", NUDGE)]
        turns = complete_with_tools(completer, system, prompts, tools, seconds=seconds_left())
        output += turns.output_tokens
        if not log.is_used and not is_silent(turns.text):
            raise CompletionError(
                "The model answered and wrote nothing down.",
                provider="model",
                hint="It is tried again later; another model may use its tools better.",
            )
    written = log.verified()
    if log.failure is not None and not written:
        raise log.failure
    if log.written and not written:
        raise WorkspaceError(
            "What the flush wrote is not in the log.",
            hint="Check which other program changes the files in memory/.",
        )
    return Flushed(
        written=written,
        refused=tuple(log.refused),
        input_tokens=turns.input_tokens,
        output_tokens=output,
        proposals=tuple(dict.fromkeys(log.proposals)),
    )


# --- A session or a transcript ---


def flush_session(
    parts: FlushParts,
    state: SessionState,
    *,
    incoming_tokens: int = 0,
    is_compacting: bool = False,
    is_asked_for: bool = False,
    seconds: float = SECONDS,
) -> FlushOutcome:
    """Flush a session if it is due, and record the outcome in sessions.json."""
    key, transcript = state.entry.key, state.entry.session_file
    size = transcript_size(transcript)
    now_ms = parts.now_ms()
    decided: list[Flush | SkipFlush] = []

    def decide(entry: SessionEntry) -> Fields | None:
        usage = Usage(
            context_window=parts.context_window,
            total_tokens=entry.total_tokens,
            incoming_tokens=incoming_tokens,
            transcript_bytes=size,
            now_ms=now_ms,
            is_compacting=is_compacting,
            is_asked_for=is_asked_for,
        )
        state_now = state._replace(entry=entry)
        decision = decide_flush(usage, state_now, parts.settings, parts.policy)
        if isinstance(decision, Flush) and parts.completer is None:
            decision = SkipFlush("no-model")
        decided.append(decision)
        return {"memory_flush_started_at": now_ms} if isinstance(decision, Flush) else None

    entry = parts.store.change(key, decide)
    if isinstance(decided[0], SkipFlush):
        return decided[0]
    try:
        outcome = _flush_now(parts, entry, seconds)
    except BaseException:  # Ctrl-C: the next flush must not wait until this one counts as dead
        parts.store.update(key, memory_flush_started_at=None)
        raise
    parts.store.update(key, **_recorded(outcome, entry, size, now_ms))
    return outcome


def flush_transcript(parts: FlushParts, path: str, session_key: str) -> FlushOutcome:
    """Flush a transcript that does not belong to a session; raises ClawmarkError."""
    assert parts.completer is not None
    if parts.policy is None:
        return SkipFlush("no-policy")
    most_chars = parts.context_window // 2 * 4
    messages = recent_messages(path, parts.redactor, most_chars=most_chars)
    if not messages:
        return SkipFlush("nothing-new")
    log = parts.daily_log(session_key, "", messages, path, is_foreign=True)
    return run_flush(parts.completer, messages, log, parts.settings, parts.now(), parts.policy)


def _flush_now(parts: FlushParts, entry: SessionEntry, seconds: float) -> FlushOutcome:
    assert parts.completer is not None and parts.policy is not None
    # Half of the window is left for the prompt, the tools and what the model reads and writes.
    messages = recent_messages(
        entry.session_file,
        parts.redactor,
        since=entry.memory_flush_bytes,
        most_chars=max(2_000, parts.context_window // 2 * 4),
    )
    if not messages:
        return SkipFlush("nothing-new")
    since = entry.memory_flush_bytes
    log = parts.daily_log(entry.key, entry.chat_type, messages, entry.session_file, since=since)
    try:
        return run_flush(
            parts.completer,
            messages,
            log,
            parts.settings,
            parts.now(),
            parts.policy,
            seconds=seconds,
        )
    except Exception as error:  # the boundary to a host's model: the conversation must go on
        if not isinstance(error, ClawmarkError):
            log_unexpected("flush")
        written = log.verified()
        if written or log.proposals:  # the model failed after writing: what was written counts
            return Flushed(
                written=written,
                refused=tuple(log.refused),
                input_tokens=0,
                output_tokens=0,
                proposals=tuple(dict.fromkeys(log.proposals)),
            )
        return _failed(error)


def _failed(error: Exception) -> FlushFailed:
    if isinstance(error, ClawmarkError):
        return FlushFailed(error.message, error.hint)
    return FlushFailed(
        f"The model stopped at an unexpected {type(error).__name__}.", "The log has more about it."
    )


def _recorded(
    outcome: FlushOutcome, entry: SessionEntry, size: int, now_ms: int
) -> dict[str, object]:
    """Return the fields of sessions.json for an outcome; a flush that wrote nothing is done too."""
    ended: dict[str, object] = {"memory_flush_started_at": None}
    if isinstance(outcome, FlushFailed):
        failures = entry.memory_flush_failures + 1
        return {**ended, "memory_flush_failed_at": now_ms, "memory_flush_failures": failures}
    written = outcome.written if isinstance(outcome, Flushed) else ()
    return {
        **ended,
        "memory_flush_at": now_ms,
        "memory_flush_compaction_count": entry.compaction_count,
        "memory_flush_bytes": size,
        "memory_flush_lines": sum(one.end_line - one.start_line + 1 for one in written),
        "memory_flush_failed_at": None,
        "memory_flush_failures": None,
    }
