"""`clawmark search`: search the memory and print the hits with their citations."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clawmark.cli.arguments import UsageError, count, share, some_text
from clawmark.cli.layout import duration, emphasise, plural, snippet_lines, table
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import (
    columns,
    emit,
    note,
    note_degraded,
    one_line,
    paint,
    place,
    plain,
    say,
)
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Found, Hit
from clawmark.system import log_file
from clawmark.text.untrusted.origin_labels import without_comments

if TYPE_CHECKING:
    from clawmark.cli.unsearched_files import Unsearched
    from clawmark.model.explanation import CandidateStory, Explanation
    from clawmark.model.provenance import Provenance

SHOWN_ORIGINS = 3
SHOWN_CANDIDATES = 40
"""Candidates that --explain prints; --json has all of them."""

EXAMPLES = """\
examples:
  clawmark search "which database did we pick?"
  clawmark search --max-results 3 --json deploy key rotation
  clawmark search --since 7d --path 'memory/projects/**' deploy
  clawmark search --as-of 2026-03-01 "when is the launch?"
  clawmark search --space team "who is on call?"
  clawmark search --files "release checklist"
  clawmark search --explain "why was the launch late"
  clawmark search --why-not MEMORY.md "why was the launch late"
  clawmark search --batch questions.jsonl > answers.jsonl"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "query", nargs="*", metavar="QUERY", help="what to search for; several words are one query"
    )
    parser.add_argument(
        "--query", dest="query_text", metavar="TEXT", help="the query, instead of QUERY"
    )
    parser.add_argument(
        "--max-results",
        type=count(1, 10_000),
        metavar="N",
        help="the most hits (default: 6)",
    )
    parser.add_argument(
        "--min-score",
        type=share,
        metavar="X",
        help="the lowest score of a hit, 0 to 1 (default: 0.35)",
    )
    parser.add_argument(
        "--since",
        metavar="DAY",
        help="only passages from this day on: 2026-02-24, or 7d or 2w ago",
    )
    parser.add_argument("--until", metavar="DAY", help="only passages up to this day")
    parser.add_argument(
        "--path", metavar="GLOB", help="only files whose path matches, such as 'memory/projects/**'"
    )
    parser.add_argument(
        "--source",
        metavar="NAME",
        help="only this source: memory, sessions, or the name of an added folder",
    )
    parser.add_argument(
        "--space",
        type=some_text,
        metavar="NAME",
        help="only this shared space; - for the workspace without its spaces",
    )
    parser.add_argument(
        "--as-of",
        type=some_text,
        metavar="DAY",
        help="search the memory files as they were on this day, written like --since",
    )
    parser.add_argument(
        "--files", action="store_true", help="print only the paths of the files, best first"
    )
    parser.add_argument(
        "--fail-if-empty", action="store_true", help="exit with code 1 if there are no hits"
    )
    parser.add_argument(
        "--explain",
        action="store_true",
        help="show where each hit came from, each step and the outcome of every candidate",
    )
    parser.add_argument(
        "--why-not",
        type=some_text,
        metavar="PATH",
        help="say why this file or line (memory/x.md#L12) is not among the hits, and what helps",
    )
    parser.add_argument(
        "--batch",
        type=some_text,
        metavar="FILE",
        help="read one query per line (text or {id, query, since, …}); - is standard input",
    )
    parser.add_argument(
        "--provider", type=some_text, metavar="NAME", help="the embedding provider: auto, none, …"
    )


def run(args: Namespace) -> int:
    if args.query_text is not None:
        args.query = [args.query_text]
    if args.batch is not None and args.query:
        raise UsageError(
            "--batch reads its queries from a file and cannot be combined with a query."
        )
    if args.batch is None and not args.query:
        raise UsageError(
            "A query is missing.", hint='Try `clawmark search "what you want to know"`.'
        )
    if args.batch is not None and (args.files or args.fail_if_empty):
        raise UsageError("--files and --fail-if-empty cannot be combined with --batch.")
    if args.files and args.explain:
        raise UsageError("--files prints paths only and cannot be combined with --explain.")
    if args.why_not is not None and (
        args.batch is not None or args.files or args.as_of or args.space
    ):
        raise UsageError("--why-not cannot be combined with --batch, --files, --as-of or --space.")
    with open_memory(args, provider=args.provider) as memory:
        if args.why_not is not None:
            # A module of its own: other searches do without it.
            from clawmark.cli.why_not import answer

            return answer(memory, args)
        if args.batch is not None:
            # Imported here: a single search does without it.
            from clawmark.cli.batch import answer_batch

            return answer_batch(memory, args)
        text = " ".join(args.query)
        found = memory.search(
            text,
            max_results=args.max_results,
            min_score=args.min_score,
            since=args.since,
            until=args.until,
            path=args.path,
            source=args.source,
            space=args.space,
            as_of=args.as_of,
            explain=args.explain,
        )
        if found.degraded is not None:
            log_file.write("warning", f"search degraded: {found.degraded.fix}")
        if args.explain:
            found = _with_replaced(memory, found)
        if args.files:
            show_files(found, as_json=args.json)
        elif args.json:
            emit(_as_json(found, memory, args))
        else:
            show(found, text, memory.loaded.warnings)
        if not args.json and (unsearched := _unsearched(found, memory, args)) is not None:
            note(unsearched.hint)
    return 1 if args.fail_if_empty and not found.hits else 0


def _with_replaced(memory: Memory, found: Found) -> Found:
    """Add what the lines of the hits have replaced; a history that cannot be read is reported."""
    try:
        return memory.with_replaced(found)
    except ClawmarkError as error:
        note(f"clawmark: {plain(error.message)} {plain(error.hint)}".rstrip())
        return found


def show_files(found: Found, *, as_json: bool) -> None:
    """Print the distinct paths of the hits, best first."""
    paths = list(dict.fromkeys(hit.path for hit in found.hits))
    if as_json:
        emit({"files": paths})
        return
    if found.degraded is not None:
        note_degraded(found.degraded, found.fallback_from)
    for path in paths:
        say(plain(path))
    if found.nothing is not None:
        note(plain(found.nothing.message))


def _as_json(found: Found, memory: Memory, args: Namespace) -> dict[str, object]:
    # Imported late: most searches print text.
    from clawmark.cli.as_json import as_json, found_as_json

    body = found_as_json(found, memory.absolute_path)
    unsearched = _unsearched(found, memory, args)
    return body if unsearched is None else body | {"unsearched": as_json(unsearched)}


def _unsearched(found: Found, memory: Memory, args: Namespace) -> Unsearched | None:
    """Return the Markdown files that a search without hits may have missed."""
    if found.nothing is None or found.as_of is not None:
        return None
    # Imported late: most searches find something.
    from clawmark.cli.unsearched_files import find_unsearched

    return find_unsearched(memory, args)


def show(found: Found, query: str, warned: Sequence[str] = ()) -> None:
    """Print the hits, or why there are none, and a summary.

    A reason that was already printed as a warning is not repeated."""
    if found.degraded is not None and found.degraded.reason not in warned:
        note_degraded(found.degraded, found.fallback_from)
    as_of = found.as_of.asked if found.as_of is not None else ""
    for hit in found.hits:
        say("\n".join(hit_lines(hit, query, as_of=as_of)) + "\n")
    if found.nothing is not None:
        say(plain(found.nothing.message))
    if found.explanation is not None:
        say("\n".join(explanation_lines(found.explanation)) + "\n")
    say(paint(summary(found), "dim"))


def hit_lines(hit: Hit, query: str, indent: str = "", as_of: str = "") -> list[str]:
    """Return score and citation, then the snippet with line numbers in the margin."""
    kind = paint(f"  {hit.mime}", "dim") if hit.mime else ""
    kind += paint(f"  {shared_by(hit)}", "dim") if hit.space else ""
    kind += paint(f"  as of {as_of}", "dim") if as_of else ""
    where = paint(place(hit.citation), "cyan") + kind
    lines = [f"{indent}{paint(f'{hit.score:.2f}', 'green')}  {where}"]
    parts = _parts(hit)
    margin = max(6, *(len(label) + 2 for label, _ in parts))
    for label, text in parts:
        shown = snippet_lines(without_comments(text), min(columns(), 110) - len(indent) - margin)
        for number, line in enumerate(shown):
            shown_label = "" if number else label
            space = " " * (margin - 2 - len(shown_label))
            lines.append(f"{indent}{space}{paint(shown_label, 'dim')}  {emphasise(line, query)}")
    for old in hit.replaced:
        until = old.until[:16].replace("T", " ")
        was = f'was: "{one_line(old.text)}" until {until}'
        lines.append(f"{indent}{' ' * margin}{paint(was, 'dim')}")
    if hit.origin is not None:
        lines += [f"{indent}      {paint(line, 'dim')}" for line in origin_lines(hit.origin)]
    return lines


def shared_by(hit: Hit) -> str:
    """Return whose a hit of a shared space is: `shared in team by ada`."""
    author = f" by {plain(hit.author)}" if hit.author else ""
    return f"shared in {plain(hit.space)}{author}"


def origin_lines(origin: Provenance) -> list[str]:
    """Return where a passage came from: one line for each record, the newest first."""
    lines = list[str]()
    for record in origin.origins[:SHOWN_ORIGINS]:
        by, when = record.origin, f"{record.time[:10]} {record.time[11:16]}"
        about = " · ".join(one_line(part) for part in (by.session, by.source) if part)
        line = f"origin: {by.kind} by {by.actor}, {when}, trust {by.trust}"
        lines.append(f"{line} · {about}" if about else line)
    if len(origin.origins) > SHOWN_ORIGINS:
        lines.append(f"origin: … and {len(origin.origins) - SHOWN_ORIGINS} more; --json has them")
    if origin.unknown:
        lines.append(f"origin: unknown ({_entries(origin.unknown)})")
    return lines


def _entries(number: int) -> str:
    return "1 entry" if number == 1 else f"{number:,} entries"


def _parts(hit: Hit) -> list[tuple[str, str]]:
    """Return the parts of a snippet with labels: `L12`, or `…` for a part of the same line."""
    parts = hit.snippet.split("\n…\n")
    # A transcript has no lines of its own, and a passage may itself contain such a separator.
    is_whole = len(parts) == 1 and hit.snippet_start == hit.start_line
    if is_whole or len(parts) != len(hit.snippet_ranges):
        return [("", hit.snippet)]
    labelled, last = list[tuple[str, str]](), 0
    for (first, end), part in zip(hit.snippet_ranges, parts, strict=True):
        labelled.append(("…" if first == last else f"L{first}", part))
        last = end
    return labelled


def summary(found: Found) -> str:
    """Format as `3 hits · hybrid (granite-30m) · 41 ms · 2 files due: clawmark index`."""
    names = {"hybrid": "hybrid", "fts-only": "keywords only", "vector-only": "vectors only"}
    how = names[found.mode] + (
        f" ({plain(found.model)})" if found.model and found.mode != "fts-only" else ""
    )
    how = f"QMD {plain(found.model)}" if found.provider == "qmd" else how
    parts = [plural(len(found.hits), "hit"), how, duration(found.milliseconds / 1000)]
    if found.as_of is not None:
        recorded = found.as_of.recorded[:16].replace("T", " ")
        parts.append(f"memory files of version {found.as_of.version[:8]}, recorded {recorded}")
    due = [plural(found.due_files, "file")] if found.due_files else []
    due += [plural(found.due_vectors, "better vector")] if found.due_vectors else []
    if found.due_files is None:
        parts.append("unknown whether files are due")
    if due:
        parts.append(f"{' and '.join(due)} due: clawmark index")
    return " · ".join(parts)


def explanation_lines(explanation: Explanation) -> list[str]:
    """Return the steps with their times, and the candidates with every factor, best first."""
    lines = [paint("Steps", "bold")]
    rows = [
        (f"  {step.number}", step.name, f"{step.milliseconds:.1f} ms", one_line(step.summary))
        for step in explanation.steps
    ]
    if rows:
        lines += table(rows, right=(0, 2))
    lines += ["", paint("Candidates", "bold")]
    shown = explanation.candidates[:SHOWN_CANDIDATES]
    if not shown:
        return [*lines, "  none"]
    more = [name for name in ("when", "rerank") if any(getattr(story, name) for story in shown)]
    head = (
        "  score",
        "text",
        "name",
        "vector",
        "line",
        "user",
        "stated",
        "decay",
        *more,
        "outcome",
        "citation",
        "matched terms",
    )
    lines += table(
        [head, *(_row(story, more) for story in shown)], right=tuple(range(8 + len(more)))
    )
    if len(explanation.candidates) > len(shown):
        lines.append(
            f"  … and {len(explanation.candidates) - len(shown)} more; --json has them all"
        )
    return lines


def _row(story: CandidateStory, more: Sequence[str]) -> tuple[str, ...]:
    return (
        f"  {story.score:.3f}",
        f"{story.text:.2f}",
        f"{story.name:.2f}",
        f"{story.vector:.2f}",
        f"{story.line:.2f}",
        f"{story.user:.2f}",
        f"{story.stated:.2f}",
        f"{story.decay:.2f}",
        *("–" if getattr(story, name) is None else f"{getattr(story, name):.2f}" for name in more),
        one_line(story.outcome),
        place(story.citation),
        one_line(story.terms),
    )
