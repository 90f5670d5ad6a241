"""`clawmark import`: import the memory of another tool as Markdown files."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Mapping

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.as_json import as_json
from clawmark.cli.commands.add import INDEX_NOTE, added_lines
from clawmark.cli.layout import short_path
from clawmark.cli.open_memory import open_memory
from clawmark.cli.output import emit, note, one_line, paint, plain, say
from clawmark.cli.progress import ProgressBar
from clawmark.importers.notes import Imported
from clawmark.importers.run import run_import, run_seeding
from clawmark.importers.seeds import databases_of, openclaw_folder
from clawmark.memory import Memory

SOURCES = ("chatgpt", "claude", "claude-code", "codex", "obsidian", "markdown", "openclaw")
DEFAULT_PATHS = {"claude-code": "~/.claude", "codex": "~/.codex"}
MAX_LINES = 40

EXAMPLES = """\
examples:
  clawmark import chatgpt ~/Downloads/export.zip --dry-run
  clawmark import claude ~/Downloads/claude-export.zip
  clawmark import claude-code
  clawmark import obsidian ~/Vault
  clawmark import openclaw ~/.openclaw     # reuse its vectors"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", choices=SOURCES, metavar="SOURCE", help=", ".join(SOURCES))
    parser.add_argument(
        "path",
        nargs="?",
        type=some_text,
        metavar="FILE",
        help="the export or folder (default for coding agents: their own folder)",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="show what would be written without writing it"
    )
    parser.add_argument(
        "--overwrite",
        action="store_true",
        help="also replace imported files that were edited here",
    )


def run(args: Namespace) -> int:
    path = args.path or DEFAULT_PATHS.get(args.source, "")
    if not path and args.source != "openclaw":
        raise UsageError(f"A path is missing: clawmark import {args.source} PATH.")
    path = os.path.abspath(os.path.expanduser(path)) if path else ""
    with open_memory(args) as memory:
        if args.source == "obsidian":
            return _obsidian(memory, path, args)
        if args.source == "openclaw":
            return _openclaw(memory, path, args)

        done = list[Imported]()
        with ProgressBar(enabled=not args.json) as bar:
            for one in run_import(
                memory, args.source, path, dry_run=args.dry_run, overwrite=args.overwrite
            ):
                done.append(one)
                if bar.is_shown:
                    bar.count("import", len(done), one.path)
        workspace = memory.places.workspace
    return _report(done, workspace, args)


def _report(done: list[Imported], workspace: str, args: Namespace) -> int:
    counts: Counter[str] = Counter(one.action for one in done)
    if args.json:
        entries = [{"action": one.action, "path": one.path, "what": one.what} for one in done]
        emit(
            {
                "workspace": workspace,
                "dryRun": args.dry_run,
                "counts": dict(counts),
                "entries": entries,
            }
        )
        return 0
    for one in [one for one in done if one.action != "same"][:MAX_LINES]:
        colour = {"new": "green", "changed": "yellow"}.get(one.action, "dim")
        say(
            f"  {paint(f'{one.action:8}', colour)} {plain(one.path)}  "
            f"{paint(one_line(one.what)[:80], 'dim')}".rstrip()
        )
    if len(done) - counts["same"] > MAX_LINES:
        say(f"  … and {len(done) - counts['same'] - MAX_LINES} more")
    say(_summary(counts, f"memory/imports/{args.source}/", dry_run=args.dry_run))
    if not args.dry_run and counts["new"] + counts["changed"]:
        say(INDEX_NOTE)
    return 0


def _summary(counts: Mapping[str, int], folder: str, *, dry_run: bool) -> str:
    """Format as `Imported into memory/imports/chatgpt/: 3 new, 1 unchanged. Left out: 2.`"""
    words = {
        "new": "new",
        "changed": "changed",
        "same": "unchanged",
        "edited": "edited here and kept",
    }
    parts = ", ".join(f"{counts[name]} {word}" for name, word in words.items() if counts.get(name))
    is_new = counts.get("new") or counts.get("changed")
    what = (
        ("Would be imported into" if dry_run else "Imported into") if is_new else "Nothing new for"
    )
    left_out = f" Left out: {counts['skipped']}." if counts.get("skipped") else ""
    return f"{what} {folder}{f': {parts}' if parts else ''}.{left_out}"


def _obsidian(memory: Memory, vault: str, args: Namespace) -> int:
    """Add a vault as a source; it is searched where it is and never written to."""
    known = next(
        (one for one in memory.sources() if one.name and one.path == os.path.realpath(vault)), None
    )
    if args.dry_run and known is None:
        if not os.path.isdir(vault):
            raise UsageError(
                f"{vault} is not a folder.",
                hint="Name the folder of the vault, which contains .obsidian.",
            )
        if args.json:
            emit({"vault": vault, "source": None, "dryRun": True})
        else:
            say(f"{short_path(vault)} would be added as a source and searched in place.")
        return 0
    source = known or memory.add_source(vault)
    if args.json:
        emit({"vault": vault, "source": as_json(source), "dryRun": args.dry_run})
    elif known is not None:
        say(f"{short_path(vault)} is already searched, as {plain(source.name)}.")
    else:
        say("\n".join(added_lines(source)))
    return 0


def _openclaw(memory: Memory, path: str, args: Namespace) -> int:
    agent = memory.places.agent
    path = path or openclaw_folder(memory.places.state_dir, agent, os.environ)
    found = [path] if os.path.isfile(path) else databases_of(path, agent)
    if not found:
        raise UsageError(
            f"There is no memory database of the agent {agent} under {path}.",
            hint="Name OpenClaw's state folder or the database itself.",
        )
    seeded = [run_seeding(memory, database, dry_run=args.dry_run) for database in found]
    if args.json:
        emit({"dryRun": args.dry_run, "databases": [one._asdict() for one in seeded]})
        return 0
    mode = memory.settings.memory_search.chunking.mode
    for one in seeded:
        would = "would be kept" if args.dry_run else "kept"
        say(
            f"{one.kept:,} vectors {would} from {plain(one.database)} "
            f"({plain(', '.join(one.identities)) or 'none'})."
        )
        if one.unsound:
            note(f"clawmark: {one.unsound:,} damaged vectors were left out.")
        if one.reusable < one.kept:
            say(
                f"{one.reusable:,} of them belong to the configured embedder: "
                f"{plain(memory.choice.reason)}."
            )
            say(
                "The others are used if provider, model and base URL are configured as in OpenClaw."
            )
        if one.reusable and one.chunking_mode != mode:
            say(
                f"They are reused only with the same chunking: set memorySearch.chunking.mode "
                f'to "{one.chunking_mode}".'
            )
    return 0
