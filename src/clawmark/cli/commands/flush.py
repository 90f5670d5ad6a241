"""`clawmark flush`: a conversation in; what matters in it goes into today's log, or a proposal for
MEMORY.md comes out.
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from typing import TYPE_CHECKING

from clawmark.agent.flush.daylog import DayLog
from clawmark.agent.flush.flush import (
    Flush,
    FlushFailed,
    SkipFlush,
    Usage,
    decide_flush,
    flush_threshold,
    run_flush,
)
from clawmark.agent.models.catalog import choose_completer, parse_model
from clawmark.agent.notes.curate import accept, forget, keep, kept, propose
from clawmark.agent.notes.session_note import (
    NoNote,
    NoteFailed,
    NoteParts,
    note_session,
    note_transcript,
)
from clawmark.agent.session.recent_messages import last_said, transcript_size
from clawmark.agent.session.setup import model_name
from clawmark.cli.arguments import UsageError, count, some_text
from clawmark.cli.layout import facts, plural, size
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, flush, is_terminal, paint, plain, say
from clawmark.model.errors import ClawmarkError, ConfigError

if TYPE_CHECKING:
    from clawmark.agent.flush.flush import FlushOutcome
    from clawmark.agent.models.completer import Completer
    from clawmark.agent.notes.curate import Proposal
    from clawmark.agent.notes.session_note import NoteOutcome
    from clawmark.agent.session.conversation import Conversation
    from clawmark.memory import Memory

EXAMPLES = """\
examples:
  clawmark flush --model anthropic:claude-haiku-4-5
  clawmark flush --dry-run                     # whether it is time, and why
  clawmark flush --transcript talk.jsonl --no-model
  clawmark flush --curate --dry-run            # propose changes to MEMORY.md
  clawmark flush --curate --apply              # write what was proposed

A model is named by --model, CLAWMARK_MODEL or agents.defaults.model:
openai:…, anthropic:…, gemini:…, ollama:…, or by its address."""

WHY = {
    "disabled": "flushing is switched off",
    "heartbeat": "a heartbeat is no conversation",
    "read-only": "the session may only read",
    "sandboxed": "the session is sandboxed",
    "cli-backed": "the model keeps its own memory",
    "no-session": "there is no such session",
    "no-model": "no model is configured",
    "already-flushed": "it was flushed since the last compaction",
    "in-progress": "another process is flushing it",
    "below-threshold": "there is still room",
    "backing-off": "the last try failed a moment ago",
    "nothing-new": "nothing was said since the last flush",
    "automatic": "no person speaks in such a session",
    "empty": "nobody said anything",
    "nothing-stated": "nothing new was stated in it: only questions, "
    "requests, or what the memory itself gave",
    "already-noted": "it has its note already",
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--session",
        type=some_text,
        metavar="KEY",
        help="the session (default: the agent's main one)",
    )
    parser.add_argument(
        "--transcript",
        type=some_text,
        metavar="FILE",
        help="a transcript instead: OpenClaw's, Claude Code's, Codex's",
    )
    parser.add_argument(
        "--model",
        type=some_text,
        metavar="NAME",
        help="the model that writes (default: the configured one)",
    )
    parser.add_argument(
        "--no-model",
        action="store_true",
        help="keep the last messages as they are, in a note of their own",
    )
    parser.add_argument(
        "--dry-run",
        action="store_true",
        help="write nothing into the memory; say what would be done",
    )
    parser.add_argument(
        "--curate",
        action="store_true",
        help="review the last days' logs and propose changes to MEMORY.md",
    )
    parser.add_argument(
        "--apply", action="store_true", help="with --curate: write the proposal that was shown"
    )
    parser.add_argument(
        "--days",
        type=count(1, 90),
        default=7,
        metavar="N",
        help="with --curate: how many days (default: 7)",
    )


def run(args: Namespace) -> int:
    _check(args)
    with open_memory(args) as memory:
        key = args.session or f"agent:{memory.places.agent}:main"
        if args.curate:
            return _curate(memory, key, args)
        if args.no_model:
            return _show_note(_note(memory.conversation(key), args.transcript), args)
        if args.dry_run:
            return _show_decision(
                memory.conversation(key, context_window=_window(memory, args.model)), args
            )
        conversation = _with_model(memory, key, args.model, for_flush=True)
        return _show_flush(_flush(conversation, args.transcript), args)


def _check(args: Namespace) -> None:
    if args.apply and (not args.curate or args.dry_run):
        raise UsageError("--apply goes with --curate, and without --dry-run.")
    if args.no_model and (args.curate or args.model or args.dry_run):
        raise UsageError("--no-model stands alone, or beside --session or --transcript.")
    if args.transcript and (args.session or args.curate or args.dry_run):
        raise UsageError("--transcript stands alone, or beside --model or --no-model.")
    if args.transcript and not os.path.isfile(args.transcript):
        raise UsageError(f"There is no transcript {args.transcript}.")


def _with_model(memory: Memory, key: str, name: str | None, *, for_flush: bool) -> Conversation:
    """A conversation whose model is the named one, or the configured one; ConfigError without
    either.
    """
    wanted = name or model_name(memory.settings, os.environ, for_flush=for_flush)
    if not wanted:
        hint = "Name one with --model or in agents.defaults.model"
        raise ConfigError(
            f"No model is configured, and a model has to read the "
            f"{'conversation' if for_flush else 'logs'}.",
            key="agents.defaults.model",
            hint=f"{hint}; --no-model keeps the last messages as they are."
            if for_flush
            else f"{hint}.",
        )
    completer: Completer = choose_completer(wanted, os.environ)
    return memory.conversation(key, completer=completer, context_window=_window(memory, name))


def _window(memory: Memory, name: str | None) -> int:
    """How many tokens the model holds that was named; 0 for what is configured."""
    return parse_model(name).window if name and not memory.settings.context_tokens else 0


# --- flush -------------------------------------------------------------------------------------------------------


def _flush(conversation: Conversation, transcript: str | None) -> FlushOutcome:
    if transcript is None:
        return conversation.flush()

    parts = conversation.parts
    said = last_said(
        os.path.realpath(transcript), parts.redactor, most_chars=parts.models.window // 2 * 4
    )
    if not said:
        return SkipFlush("nothing-new")
    assert parts.models.flushing is not None
    log = DayLog(
        workspace=parts.workspace,
        now=parts.now,
        redactor=parts.redactor,
        session_key=conversation.session_key,
    )
    return run_flush(parts.models.flushing, said, log, parts.flush, parts.now())


def _show_flush(outcome: FlushOutcome, args: Namespace) -> int:
    if isinstance(outcome, FlushFailed):
        raise ClawmarkError(outcome.message, hint=outcome.hint)
    if isinstance(outcome, SkipFlush):
        return _skipped(outcome.because, args)
    citations = [one.citation for one in outcome.written]
    if args.json:
        tokens = {"input": outcome.input_tokens, "output": outcome.output_tokens}
        emit(
            {
                "flushed": True,
                "written": citations,
                "refused": list(outcome.refused),
                "tokens": tokens,
            }
        )
        return 0
    for citation in citations:
        say(f"Wrote {paint(plain(citation), 'cyan')}")
    if not citations:
        say("Nothing was written: the model found nothing that is new and worth keeping.")
    for reason in outcome.refused:
        say(paint(f"Not kept: {plain(reason)}", "dim"))
    return 0


def _skipped(because: str, args: Namespace) -> int:
    if args.json:
        emit({"flushed": False, "because": because})
    else:
        say(f"Nothing to do: {WHY[because]}.")
    return 0


def _show_decision(conversation: Conversation, args: Namespace) -> int:
    """Whether the next message would bring a flush, and the numbers behind it."""
    parts = conversation.parts
    standing = conversation.standing()
    entry = standing.entry
    window, length = parts.models.window, transcript_size(entry.session_file)
    usage = Usage(
        context_window=window,
        total_tokens=entry.total_tokens,
        incoming_tokens=0,
        transcript_bytes=length,
        now_ms=int(parts.now().timestamp() * 1000),
    )
    decision = decide_flush(usage, standing, parts.flush)
    is_time = isinstance(decision, Flush)
    threshold = flush_threshold(window, parts.flush)
    if args.json:
        emit(
            {
                "session": entry.key,
                "flush": is_time,
                "because": decision.because,
                "tokens": entry.total_tokens,
                "threshold": threshold,
                "contextWindow": window,
                "transcriptBytes": length,
                "compactions": entry.compaction_count,
            }
        )
        return 0
    most = parts.flush.force_flush_transcript_bytes
    because = f"it is time ({decision.because})" if is_time else WHY[decision.because]
    say(f"{paint('Flush', 'bold')} {'yes' if is_time else 'no'}: {because}")
    rows = [
        ("Session", plain(entry.key)),
        ("Tokens", f"{entry.total_tokens:,} of {window:,}; flushed at {threshold:,}"),
        (
            "Transcript",
            f"{size(length)}; {f'flushed after {size(most)} more' if most else 'its length does not count'}",
        ),
        ("Compactions", f"{entry.compaction_count}"),
    ]
    say("\n".join(facts(rows)))
    return 0


# --- without a model ---------------------------------------------------------------------------------------------


def _note(conversation: Conversation, transcript: str | None) -> NoteOutcome:
    store, workspace, _, redactor, _, settings, now, _ = conversation.parts
    parts = NoteParts(
        completer=None,
        store=store,
        workspace=workspace,
        redactor=redactor,
        settings=settings._replace(enabled=True),
        now=now,
    )
    if transcript is not None:
        return note_transcript(parts, os.path.realpath(transcript), source="transcript")
    return note_session(parts, conversation.session_key, reason="flush")


def _show_note(outcome: NoteOutcome, args: Namespace) -> int:
    if isinstance(outcome, NoteFailed):
        raise ClawmarkError(outcome.message, hint=outcome.hint)
    if isinstance(outcome, NoNote):
        return _skipped(outcome.because, args)
    if args.json:
        emit({"flushed": True, "written": [outcome.path], "refused": []})
    else:
        say(f"Wrote {paint(plain(outcome.path), 'cyan')}: the last messages, as they were said")
    return 0


# --- upkeep ------------------------------------------------------------------------------------------------------


def _curate(memory: Memory, key: str, args: Namespace) -> int:
    """Show what would change on MEMORY.md; write it when it is the one that was shown before, or
    somebody says yes now.
    """
    parts = memory.conversation(key).parts
    waiting = kept(parts.store.folder) if args.apply else None
    proposal = waiting or _proposed(memory, key, args)
    if not args.json:
        _show_diff(proposal)
    is_accepted = args.apply and bool(proposal.diff) and (waiting is not None or _agrees(args))
    if is_accepted:
        accept(parts.workspace, proposal)
        forget(parts.store.folder)
    if args.json:
        emit({"diff": proposal.diff, "reasons": list(proposal.reasons), "applied": is_accepted})
    elif not proposal.diff:
        say(f"MEMORY.md needs no change after {plural(args.days, 'day')} of logs.")
    elif is_accepted:
        say("Written to MEMORY.md.")
    else:
        say("Nothing is written. To accept it: clawmark flush --curate --apply")
    return 0


def _proposed(memory: Memory, key: str, args: Namespace) -> Proposal:
    """A new proposal, put aside so that exactly this one can be accepted."""
    parts = _with_model(memory, key, args.model, for_flush=False).parts
    assert parts.models.usual is not None
    proposal = propose(
        parts.models.usual, parts.workspace, parts.redactor, memory.today(), args.days
    )
    forget(parts.store.folder)
    if proposal.diff:
        keep(parts.store.folder, proposal)
    return proposal


def _agrees(args: Namespace) -> bool:
    """Whether the person at the terminal says yes; without one nothing is accepted unseen."""
    if args.json or not is_terminal(sys.stdin) or not is_terminal(sys.stdout):
        return False
    say("Write this into MEMORY.md? [y/N]")
    flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _show_diff(proposal: Proposal) -> None:
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in proposal.diff.splitlines():
        style = styles.get(line[:1])
        say(paint(plain(line), style) if style else plain(line))
    for reason in filter(None, proposal.reasons):
        say(paint(f"because: {plain(reason)}", "dim"))
