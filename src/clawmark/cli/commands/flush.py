"""`clawmark flush`: write what matters in a conversation to today's log, or curate MEMORY.md."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from clawmark.agent.flush.flush import Flush, FlushFailed, SkipFlush
from clawmark.agent.models.catalog import parse_model
from clawmark.agent.notes.curate import keep_curation, pending_curations, propose
from clawmark.agent.notes.session_note import NoNote, NoteFailed
from clawmark.agent.review.hunks import NoLongerApplies, hunk_diff
from clawmark.agent.session.setup import needed_model
from clawmark.cli.arguments import UsageError, count, some_text
from clawmark.cli.layout import facts, plural, size
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, flush, is_terminal, paint, plain, say
from clawmark.cli.review.text import no_longer_applies
from clawmark.model.errors import ClawmarkError

if TYPE_CHECKING:
    from clawmark.agent.flush.flush import FlushOutcome
    from clawmark.agent.notes.curate import Curation
    from clawmark.agent.notes.session_note import NoteOutcome
    from clawmark.agent.review.proposals import Proposal
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
            return _show_note(memory.conversation(key).keep_messages(args.transcript), args)
        if memory.slot.flush_policy() is None:
            return _show_skipped(SkipFlush("no-policy"), args)
        if args.dry_run:
            window = _window(memory, args.model)
            return _show_forecast(memory.conversation(key, context_window=window), args)
        return _show_flush(_conversation(memory, key, args).flush(args.transcript), args)


def _check(args: Namespace) -> None:
    if args.apply and (not args.curate or args.dry_run):
        raise UsageError("--apply goes with --curate, and without --dry-run.")
    if args.no_model and (args.curate or args.model or args.dry_run):
        raise UsageError("--no-model can be combined with --session or --transcript only.")
    if args.transcript and (args.session or args.curate or args.dry_run):
        raise UsageError("--transcript can be combined with --model or --no-model only.")
    if args.transcript and not os.path.isfile(args.transcript):
        raise UsageError(f"There is no transcript {args.transcript}.")


def _conversation(memory: Memory, key: str, args: Namespace) -> Conversation:
    """Return the conversation with the model that is named or configured."""
    completer = needed_model(
        memory.settings,
        os.environ,
        f"read the {'logs' if args.curate else 'conversation'}",
        args.model or "",
        for_flush=not args.curate,
    )
    window = _window(memory, args.model)
    return memory.conversation(key, completer=completer, context_window=window)


def _window(memory: Memory, name: str | None) -> int:
    """Return the context window of the named model; 0 if it is configured."""
    is_configured = memory.settings.context_tokens
    return parse_model(name).window if name and not is_configured else 0


def _show_flush(outcome: FlushOutcome, args: Namespace) -> int:
    if isinstance(outcome, FlushFailed):
        raise ClawmarkError(outcome.message, hint=outcome.hint)
    if isinstance(outcome, SkipFlush):
        return _show_skipped(outcome, args)
    citations = [one.citation for one in outcome.written]
    if args.json:
        tokens = {"input": outcome.input_tokens, "output": outcome.output_tokens}
        refused = list(outcome.refused)
        proposals = list(outcome.proposals)
        emit(
            {
                "flushed": True,
                "written": citations,
                "proposals": proposals,
                "refused": refused,
                "tokens": tokens,
            }
        )
        return 0
    for citation in citations:
        say(f"Wrote {paint(plain(citation), 'cyan')}")
    for proposal in outcome.proposals:
        say(f"Kept as proposal {paint(proposal, 'cyan')}; decide with: clawmark review")
    if not citations and not outcome.proposals:
        say("Nothing was written: the model found nothing that is new and worth keeping.")
    for reason in outcome.refused:
        say(paint(f"Not kept: {plain(reason)}", "dim"))
    return 0


def _show_note(outcome: NoteOutcome, args: Namespace) -> int:
    if isinstance(outcome, NoteFailed):
        raise ClawmarkError(outcome.message, hint=outcome.hint)
    if isinstance(outcome, NoNote):
        return _show_skipped(outcome, args)
    if args.json:
        emit({"flushed": True, "written": [outcome.path], "refused": []})
    else:
        say(f"Wrote {paint(plain(outcome.path), 'cyan')}: the last messages, as they were said")
    return 0


def _show_skipped(outcome: SkipFlush | NoNote, args: Namespace) -> int:
    if args.json:
        emit({"flushed": False, "because": outcome.because})
    else:
        say(f"Nothing to do: {outcome.message}.")
    return 0


def _show_forecast(conversation: Conversation, args: Namespace) -> int:
    """Show whether the next message would cause a flush, and the numbers behind it."""
    decision, usage, threshold = conversation.flush_forecast()
    entry = conversation.state().entry
    is_due = isinstance(decision, Flush)
    if args.json:
        emit(
            {
                "session": entry.key,
                "flush": is_due,
                "because": decision.because,
                "tokens": usage.total_tokens,
                "threshold": threshold,
                "contextWindow": usage.context_window,
                "transcriptBytes": usage.transcript_bytes,
                "compactions": entry.compaction_count,
            }
        )
        return 0
    because = (
        decision.message if isinstance(decision, SkipFlush) else f"it is time ({decision.because})"
    )
    most = conversation.parts.flush.force_flush_transcript_bytes
    growth = f"flushed after {size(most)} more" if most else "its length does not count"
    tokens = f"{usage.total_tokens:,} of {usage.context_window:,}; flushed at {threshold:,}"
    say(f"{paint('Flush', 'bold')} {'yes' if is_due else 'no'}: {because}")
    rows = [
        ("Session", plain(entry.key)),
        ("Tokens", tokens),
        ("Transcript", f"{size(usage.transcript_bytes)}; {growth}"),
        ("Compactions", f"{entry.compaction_count}"),
    ]
    say("\n".join(facts(rows)))
    return 0


def _curate(memory: Memory, key: str, args: Namespace) -> int:
    """Show the changes to MEMORY.md; write them if they were shown before or are confirmed now."""
    stored = pending_curations(memory.review) if args.apply else ()
    if stored:
        return _accept_stored(memory, stored, args)
    curation = _propose(memory, key, args)
    kept = keep_curation(memory.review, curation, key)
    if not args.json:
        show_diff(curation)
    is_accepted = args.apply and kept is not None and confirm(args)
    if kept is not None and is_accepted:
        accept(memory, kept)
    if args.json:
        body = {"diff": curation.diff, "reasons": list(curation.reasons), "applied": is_accepted}
        emit({**body, "proposal": kept.id if kept is not None else ""})
    elif not curation.diff:
        say(f"MEMORY.md needs no change after {plural(args.days, 'day')} of logs.")
    elif is_accepted:
        say("Written to MEMORY.md.")
    elif kept is None:
        say("Nothing is written: you have rejected these changes before.")
    else:
        say(f"Nothing is written. It waits as proposal {kept.id}: clawmark review")
    return 0


def _accept_stored(memory: Memory, stored: Sequence[Proposal], args: Namespace) -> int:
    """Accept the curations that were shown before."""
    hunks = [hunk for proposal in stored for hunk in proposal.hunks if hunk.state == "pending"]
    diff = [line for hunk in hunks for line in hunk_diff(hunk)]
    reasons = [hunk.reason for hunk in hunks]
    for proposal in stored:
        accept(memory, proposal)
    if args.json:
        emit({"diff": "\n".join(diff), "reasons": reasons, "applied": True})
        return 0
    show_lines(diff, reasons)
    say("Written to MEMORY.md.")
    return 0


def accept(memory: Memory, proposal: Proposal) -> None:
    """Write a proposal; WriteConflict if it no longer applies."""
    outcome = memory.review.accept(proposal.id)
    if isinstance(outcome, NoLongerApplies):
        raise no_longer_applies(proposal.id, outcome)


def _propose(memory: Memory, key: str, args: Namespace) -> Curation:
    parts = _conversation(memory, key, args).parts
    assert parts.models.usual is not None
    return propose(parts.models.usual, parts.workspace, parts.redactor, memory.today(), args.days)


def confirm(args: Namespace) -> bool:
    """Ask the user at the terminal; without a terminal nothing is accepted."""
    if args.json or not is_terminal(sys.stdin) or not is_terminal(sys.stdout):
        return False
    say("Write this into MEMORY.md? [y/N]")
    flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def show_diff(curation: Curation) -> None:
    """Print the changes of a curation and the reasons for them."""
    show_lines(curation.diff.splitlines(), curation.reasons)


def show_lines(diff: Iterable[str], reasons: Iterable[str]) -> None:
    """Print the lines of a diff and the reasons for it."""
    styles = {"+": "green", "-": "red", "@": "dim"}
    for line in diff:
        style = styles.get(line[:1])
        say(paint(plain(line), style) if style else plain(line))
    for reason in filter(None, reasons):
        say(paint(f"because: {plain(reason)}", "dim"))
