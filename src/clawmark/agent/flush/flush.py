"""The memory flush: before a conversation is compacted, what matters in it is written into the log
of the day.

`decide_flush` says whether it is time, from numbers alone; `run_flush` lets a model write, in one
turn that nobody sees and that is in no transcript; `flush_session` does both for a session, once in
a cycle, whoever else tries at the same time.

The rule: flush when the tokens of the context and of the message that is about to be added reach

    window - reserveTokensFloor - softThresholdTokens          (20,000 and 4,000)

In a window of less than 80,000 tokens both numbers shrink in proportion, so that the threshold is
70 % of it, and it is never less than a quarter of the window, whatever is configured. Or flush when
the transcript has grown by 2 MiB since the last flush (since its beginning, for the first). Once
between two compactions. After a failure not before a pause that doubles each time; only a
compaction that is about to happen does not wait for the pause."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Literal, NamedTuple, TypeAlias

from clawmark.agent.flush.daylog import DayLog
from clawmark.agent.flush.prompts import NUDGE, is_silent, system_prompt, user_prompt
from clawmark.agent.models.completer import Completer, Message, complete_with_tools
from clawmark.agent.session.recent_messages import last_said, transcript_size
from clawmark.agent.session.session import Fields, SessionEntry, SessionStore
from clawmark.agent.tools.base import log_surprise
from clawmark.model.documents import Written
from clawmark.model.errors import ClawmarkError, CompletionError, ContextTooLong, WorkspaceError
from clawmark.text.secrets.redact import Redactor
from clawmark.text.transcripts.records import Said
from clawmark.workspace import Workspace

FULL_WINDOW = 80_000
"""From this window on the configured numbers count as they are."""
FIRST_PAUSE_MS = 60_000
LONGEST_PAUSE_MS = 3_600_000
ABANDONED_MS = 180_000
"""A flush that began longer ago than this has died: it has two minutes."""
SECONDS = 120.0

Because: TypeAlias = Literal[
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


class FlushSettings(NamedTuple):
    """`agents.defaults.compaction`, as far as it is about flushing."""

    enabled: bool = True
    reserve_tokens_floor: int = 20_000
    soft_threshold_tokens: int = 4_000
    force_flush_transcript_bytes: int = 2 << 20
    """0 is never."""
    prompt: str = ""
    system_prompt: str = ""


class Usage(NamedTuple):
    """How full things are."""

    context_window: int
    total_tokens: int
    """In the context after the last answer."""
    incoming_tokens: int = 0
    """In the message that is about to be added."""
    transcript_bytes: int = 0
    now_ms: int = 0
    is_compacting: bool = False
    """The context will be compacted now: thresholds and pauses no longer matter."""
    is_asked_for: bool = False
    """A person wants it now: settings and earlier flushes do not matter either."""


class Standing(NamedTuple):
    """A session, and what it is allowed to do."""

    entry: SessionEntry
    read_only: bool = False
    sandboxed: bool = False
    cli_backed: bool = False
    heartbeat: bool = False


class Flush(NamedTuple):
    """It is time."""

    because: Literal["tokens", "transcript", "compaction", "asked"]
    projected: int
    threshold: int


class SkipFlush(NamedTuple):
    """It is not, and why."""

    because: Because


class Flushed(NamedTuple):
    """A flush that ran."""

    written: tuple[Written, ...]
    """Empty when nothing was worth keeping, or nothing of it was new."""
    refused: tuple[str, ...]
    """Why some of what the model wanted to write was not written."""
    input_tokens: int
    output_tokens: int


class FlushFailed(NamedTuple):
    """A flush that could not run; it is tried again later."""

    message: str
    hint: str


FlushOutcome: TypeAlias = Flushed | SkipFlush | FlushFailed


def flush_threshold(window: int, settings: FlushSettings) -> int:
    """How many tokens make it time to flush; always more than none and less than the window."""
    margin = settings.reserve_tokens_floor + settings.soft_threshold_tokens
    return max(1, window // 4, window - _scaled(margin, window))


def compaction_threshold(window: int, settings: FlushSettings) -> int:
    """How many tokens make it time to compact: the reserve is all that is left."""
    return max(
        flush_threshold(window, settings), window - _scaled(settings.reserve_tokens_floor, window)
    )


def decide_flush(usage: Usage, session: Standing, settings: FlushSettings) -> Flush | SkipFlush:
    """Whether to flush now; reads nothing but its arguments."""
    entry = session.entry
    began = entry.memory_flush_started_at
    always: tuple[tuple[Because, bool], ...] = (
        ("no-session", not entry.session_id),
        ("in-progress", 0 < began <= usage.now_ms < began + ABANDONED_MS),
    )
    usually: tuple[tuple[Because, bool], ...] = (
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
    if projected < threshold and not _is_long(usage, entry, settings):
        return SkipFlush("below-threshold")
    if usage.now_ms < entry.memory_flush_failed_at + _pause(entry.memory_flush_failures):
        return SkipFlush("backing-off")
    return Flush("tokens" if projected >= threshold else "transcript", projected, threshold)


def _scaled(tokens: int, window: int) -> int:
    """A number of tokens that was meant for a full window, for this one; rounded up, so that
    nothing comes too late.
    """
    return -(-tokens * min(window, FULL_WINDOW) // FULL_WINDOW)


def _is_long(usage: Usage, entry: SessionEntry, settings: FlushSettings) -> bool:
    """Whether the transcript has grown enough.

    Its whole length would count again at the beginning of every later cycle.
    """
    is_same_file = entry.memory_flush_bytes <= usage.transcript_bytes
    grown = usage.transcript_bytes - (entry.memory_flush_bytes if is_same_file else 0)
    return 0 < settings.force_flush_transcript_bytes <= grown


def _pause(failures: int) -> int:
    return 0 if failures <= 0 else min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS << min(failures - 1, 10))


# --- the turn ------------------------------------------------------------------------------------------------------------


def run_flush(
    completer: Completer,
    said: Sequence[Said],
    log: DayLog,
    settings: FlushSettings,
    now: datetime,
    *,
    seconds: float = SECONDS,
    clock: Callable[[], float] = time.monotonic,
) -> Flushed:
    """One silent turn over what was said; raises ClawmarkError.

    When it is too much for the model, less of it is tried.
    """
    end = clock() + seconds
    while True:
        try:
            return _turn(completer, said, log, settings, now, lambda: end - clock())
        except ContextTooLong:
            if len(said) < 2 or log.written:
                raise
            said = said[(len(said) + 1) // 2 :]


def _turn(
    completer: Completer,
    said: Sequence[Said],
    log: DayLog,
    settings: FlushSettings,
    now: datetime,
    left: Callable[[], float],
) -> Flushed:
    system = system_prompt(settings.system_prompt, now)
    messages = [Message("user", user_prompt(settings.prompt, said, log.held(), now))]
    tools = log.tools()
    turns = complete_with_tools(completer, system, messages, tools, seconds=left())
    output = turns.output_tokens
    if not log.is_used and not is_silent(turns.text):
        # Small models often say what they should have written; they are told once.
        messages += [*turns.added, Message("user", NUDGE)]
        turns = complete_with_tools(completer, system, messages, tools, seconds=left())
        output += turns.output_tokens
        if not log.is_used and not is_silent(turns.text):
            raise CompletionError(
                "The model spoke and wrote nothing down.",
                provider="model",
                hint="It is tried again later; another model may use its tools better.",
            )
    written = log.verified()
    if log.failure is not None and not written:
        raise log.failure
    if log.written and not written:
        raise WorkspaceError(
            "What the flush wrote is not in the log.",
            hint="Look who else changes the files in memory/.",
        )
    return Flushed(
        written=written,
        refused=tuple(log.refused),
        input_tokens=turns.input_tokens,
        output_tokens=output,
    )


# --- for a session -------------------------------------------------------------------------------------------------------


class FlushParts(NamedTuple):
    """What a flush works with."""

    completer: Completer | None
    store: SessionStore
    workspace: Workspace
    redactor: Redactor
    settings: FlushSettings
    context_window: int
    now: Callable[[], datetime]


def flush_session(
    parts: FlushParts,
    standing: Standing,
    *,
    incoming_tokens: int = 0,
    is_compacting: bool = False,
    is_asked_for: bool = False,
    seconds: float = SECONDS,
) -> FlushOutcome:
    """Flush a session if it is time; what happened is noted in sessions.json."""
    key, transcript = standing.entry.key, standing.entry.session_file
    size = transcript_size(transcript)
    now_ms = int(parts.now().timestamp() * 1000)
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
        decision = decide_flush(usage, standing._replace(entry=entry), parts.settings)
        if isinstance(decision, Flush) and parts.completer is None:
            decision = SkipFlush("no-model")
        decided.append(decision)
        return {"memory_flush_started_at": now_ms} if isinstance(decision, Flush) else None

    entry = parts.store.change(key, decide)
    if isinstance(decided[0], SkipFlush):
        return decided[0]
    try:
        outcome = _flush_now(parts, entry, seconds)
    except (
        BaseException
    ):  # somebody pressed Ctrl-C: the next one need not wait until this one counts as dead
        parts.store.update(key, memory_flush_started_at=None)
        raise
    parts.store.update(key, **_noted(outcome, entry, size, now_ms))
    return outcome


def _flush_now(parts: FlushParts, entry: SessionEntry, seconds: float) -> FlushOutcome:
    assert parts.completer is not None
    # Half of the window is left for the prompt, the tools and what the model reads and writes.
    budget = max(2_000, parts.context_window // 2 * 4)
    said = last_said(
        entry.session_file, parts.redactor, since=entry.memory_flush_bytes, most_chars=budget
    )
    if not said:
        return SkipFlush("nothing-new")
    log = DayLog(
        workspace=parts.workspace,
        now=parts.now,
        redactor=parts.redactor,
        session_key=entry.key,
        chat_type=entry.chat_type,
    )
    try:
        return run_flush(parts.completer, said, log, parts.settings, parts.now(), seconds=seconds)
    except Exception as error:
        if not isinstance(
            error, ClawmarkError
        ):  # a host's own model fails in its own way; the talk goes on
            log_surprise("flush")
        written = log.verified()
        if written:  # the model failed after it had written: what is kept is kept, once
            return Flushed(
                written=written, refused=tuple(log.refused), input_tokens=0, output_tokens=0
            )
        return _failed(error)


def _failed(error: Exception) -> FlushFailed:
    if isinstance(error, ClawmarkError):
        return FlushFailed(error.message, error.hint)
    return FlushFailed(
        f"The model stopped at an unexpected {type(error).__name__}.", "The log has more about it."
    )


def _noted(outcome: FlushOutcome, entry: SessionEntry, size: int, now_ms: int) -> dict[str, object]:
    """What sessions.json keeps of an outcome; a flush that wrote nothing is done too."""
    ended: dict[str, object] = {"memory_flush_started_at": None}
    if isinstance(outcome, FlushFailed):
        return {
            **ended,
            "memory_flush_failed_at": now_ms,
            "memory_flush_failures": entry.memory_flush_failures + 1,
        }
    lines = (
        sum(one.end_line - one.start_line + 1 for one in outcome.written)
        if isinstance(outcome, Flushed)
        else 0
    )
    return {
        **ended,
        "memory_flush_at": now_ms,
        "memory_flush_compaction_count": entry.compaction_count,
        "memory_flush_bytes": size,
        "memory_flush_lines": lines,
        "memory_flush_failed_at": None,
        "memory_flush_failures": None,
    }
