"""`clawmark import`: what another tool remembers in; Markdown files of this memory out, or the plan of them."""

from __future__ import annotations

import os
from argparse import ArgumentParser, Namespace
from collections import Counter
from typing import TYPE_CHECKING

from clawmark.cli.arguments import UsageError, some_text
from clawmark.cli.opening import open_memory
from clawmark.cli.output import emit, note, one_line, paint, plain, say
from clawmark.config.private import make_private_folder
from clawmark.errors import ConfigError

if TYPE_CHECKING:
    from clawmark.importers.notes import Imported
    from clawmark.memory import Memory

SOURCES = ("chatgpt", "claude", "claude-code", "codex", "obsidian", "markdown", "openclaw")
USUAL_PLACES = {"claude-code": "~/.claude", "codex": "~/.codex"}
MOST_LINES = 40
_EXTRA_PATHS = (
    ("agents", "defaults", "memorySearch", "extraPaths"),
    ("memory", "search", "extraPaths"),
    ("memorySearch", "extraPaths"),
)
"""Where a file may have the list; the first is where it is put when there is none."""

EXAMPLES = """\
examples:
  clawmark import chatgpt ~/Downloads/export.zip --dry-run
  clawmark import claude ~/Downloads/claude-export.zip
  clawmark import claude-code
  clawmark import obsidian ~/Vault
  clawmark import openclaw ~/.openclaw     # the vectors it has paid for"""


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("source", choices=SOURCES, metavar="SOURCE", help=", ".join(SOURCES))
    parser.add_argument(
        "path", nargs="?", type=some_text, metavar="PATH", help="the export or folder; the coding agents' own by default"
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be written, and write nothing")
    parser.add_argument("--overwrite", action="store_true", help="replace imported files that were edited here since")


def run(args: Namespace) -> int:
    path = args.path or USUAL_PLACES.get(args.source, "")
    if not path and args.source != "openclaw":
        raise UsageError(f"Say what to import: clawmark import {args.source} PATH.")
    path = os.path.abspath(os.path.expanduser(path)) if path else ""
    with open_memory(args) as memory:
        if args.source == "obsidian":
            return _obsidian(memory, path, args)
        if args.source == "openclaw":
            return _openclaw(memory, path, args)
        from clawmark.importers.run import run_import

        done = list(run_import(memory, args.source, path, dry_run=args.dry_run, overwrite=args.overwrite))
        workspace = memory.places.workspace
    return _report(done, workspace, args)


def _report(done: list[Imported], workspace: str, args: Namespace) -> int:
    counts = Counter(one.action for one in done)
    if args.json:
        entries = [{"action": one.action, "path": one.path, "what": one.what} for one in done]
        emit({"workspace": workspace, "dryRun": args.dry_run, "counts": dict(counts), "entries": entries})
        return 0
    for one in [one for one in done if one.action != "same"][:MOST_LINES]:
        colour = {"new": "green", "changed": "yellow"}.get(one.action, "dim")
        say(f"  {paint(f'{one.action:8}', colour)} {plain(one.path)}  {paint(one_line(one.what)[:80], 'dim')}".rstrip())
    if len(done) - counts["same"] > MOST_LINES:
        say(f"  … and {len(done) - counts['same'] - MOST_LINES} more")
    would = "would be " if args.dry_run else ""
    parts = ", ".join(f"{counts[name]} {name}" for name in ("new", "changed", "same", "edited", "skipped") if counts[name])
    is_new = counts["new"] + counts["changed"] > 0
    if is_new:
        say(f"{parts} {would}imported into memory/imports/{args.source}/.")
    else:
        say(f"Nothing new for memory/imports/{args.source}/{f': {parts}' if parts else ''}.")
    if not args.dry_run and is_new:
        say("Run `clawmark index` to have it all searchable now; the next search does a part of it by itself.")
    return 0


def _obsidian(memory: Memory, vault: str, args: Namespace) -> int:
    """A vault stays where it is: it becomes an extra path in our own settings, read and never written."""
    if not os.path.isdir(vault):
        raise UsageError(f"{vault} is not a folder.", hint="Name the vault's folder, the one with .obsidian in it.")
    search = memory.settings.memory_search
    whole = [path for path in search.extra_paths if path not in search.extra_patterns]
    known = {os.path.realpath(os.path.expanduser(path)) for path in whole}
    is_known = os.path.realpath(vault) in known
    file = _own_file(memory)
    is_ours = os.path.basename(file) != "openclaw.json"
    written = is_ours and not (is_known or args.dry_run)
    if written:
        _add_extra_path(memory, file, vault)
    if args.json:
        emit({"vault": vault, "extraPath": is_known or written, "configFile": file, "dryRun": args.dry_run})
    elif is_known:
        say(f"{plain(vault)} is searched already: it is one of memorySearch.extraPaths.")
    elif written:
        say(f"{plain(vault)} is searched from now on ({plain(file)}); its files stay where they are and are never written.")
    elif is_ours:
        say(f"{plain(vault)} would be added to memorySearch.extraPaths in {plain(file)}.")
    else:
        say(f"To search {plain(vault)} where it is, add this to {plain(file)}:")
        say(f"  {{ agents: {{ defaults: {{ memorySearch: {{ extraPaths: [{_quoted(vault)}] }} }} }} }}")
    return 0


def _own_file(memory: Memory) -> str:
    """The file of settings that may be written: beside an OpenClaw the one that is put over OpenClaw's."""
    state, file = memory.places.state_dir, memory.places.config_file
    is_beside = file == os.path.join(os.path.dirname(state), "openclaw.json")
    return os.path.join(state, "clawmark.json") if is_beside else file


def _add_extra_path(memory: Memory, file: str, vault: str) -> None:
    """One more path in the user's file, every other byte as it was; a copy of it goes where `install` keeps such copies."""
    from clawmark.hooks.install import Edit, Plan, carry_out
    from clawmark.hooks.jsontext import get, put

    before = None
    if os.path.lexists(file):
        with open(file, "rb") as opened:
            before = opened.read()
    try:
        text = (before or b"").decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8.", file=file, hint="Save it as UTF-8 and try again.") from None
    path = next((path for path in _EXTRA_PATHS if isinstance(get(text, path, file), list)), _EXTRA_PATHS[0])
    after = put(text, path, vault, file, as_item=True).text.encode("utf-8", "surrogatepass")
    make_private_folder(memory.places.state_dir)
    folder = os.path.join(memory.places.state_dir, "install", "obsidian")
    carry_out(Plan((Edit(file, before, after),), {}, ()), {}, folder, mode=0o600)


def _quoted(text: str) -> str:
    import json

    return json.dumps(text, ensure_ascii=False)


def _openclaw(memory: Memory, path: str, args: Namespace) -> int:
    from clawmark.importers.run import run_seeding
    from clawmark.importers.seeds import databases_of, openclaw_folder

    agent = memory.places.agent
    path = path or openclaw_folder(memory.places.state_dir, agent, os.environ)
    found = [path] if os.path.isfile(path) else databases_of(path, agent)
    if not found:
        raise UsageError(
            f"There is no memory database of the agent {agent} under {path}.",
            hint="Name OpenClaw's state folder, or the database itself.",
        )
    seeded = [run_seeding(memory, database, dry_run=args.dry_run) for database in found]
    if args.json:
        emit({"dryRun": args.dry_run, "databases": [one._asdict() for one in seeded]})
        return 0
    mode = memory.settings.memory_search.chunking.mode
    for one in seeded:
        would = "would be kept" if args.dry_run else "kept"
        say(f"{one.kept:,} vectors {would} from {plain(one.database)} ({plain(', '.join(one.identities)) or 'none'}).")
        if one.unsound:
            note(f"clawmark: {one.unsound:,} vectors were damaged and are left out.")
        if one.reusable < one.kept:
            say(f"{one.reusable:,} of them belong to the configured embedder: {plain(memory.choice.reason)}.")
            say("The others are used when provider, model and address are set as they are in OpenClaw.")
        if one.reusable and one.chunking_mode != mode:
            say(f'They are reused where text is cut the same way: set memorySearch.chunking.mode to "{one.chunking_mode}".')
    return 0
