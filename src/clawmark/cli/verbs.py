"""The table of verbs, the overview that `clawmark --help` prints, and the module of each verb."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TextIO

from clawmark import __version__
from clawmark.cli.arguments import UsageError, asks_for_json, closest, make_parser
from clawmark.cli.output import emit, note, paint, say

VERBS: dict[str, tuple[str, str]] = {
    "demo": ("Start", "Index a sample memory and ask it three questions"),
    "init": ("Start", "Create a workspace with the files an agent starts with"),
    "add": ("Start", "Add a folder of Markdown to the search: notes, docs, a vault"),
    "sources": ("Start", "List the added folders, or remove one"),
    "remember": ("Use", "Add a note to today's log, or to MEMORY.md"),
    "search": ("Use", "Search the memory; every hit has a citation"),
    "get": ("Use", "Print lines of a memory file by path or citation"),
    "ls": ("Use", "List the memory files with their entries, size and last change"),
    "recent": ("Use", "Print the newest entries, newest first"),
    "log": ("Use", "Print who wrote what into the memory, and from what"),
    "edit": ("Use", "Edit a memory file in your editor"),
    "history": ("Use", "List the versions of the memory files and who changed them"),
    "diff": ("Use", "Show how the memory files changed between versions"),
    "restore": ("Use", "Bring back a memory file as it was in a version"),
    "undo": ("Use", "Take back the last write of an agent"),
    "forget": ("Use", "Forget something for good, wherever it is kept"),
    "review": ("Use", "Decide about the changes that agents want to make to the memory"),
    "chat": ("Use", "Chat with an agent that remembers, in the terminal"),
    "flush": ("Use", "Save what matters in a conversation, or curate MEMORY.md"),
    "consolidate": ("Use", "Propose how to keep MEMORY.md short and true, from the daily logs"),
    "heartbeat": ("Use", "Curate MEMORY.md and go through a checklist; for cron and timers"),
    "web": ("Use", "Browse, search and review the memory in the browser"),
    "mcp": ("Connect", "Serve the memory to MCP hosts: Claude Code, Cursor and others"),
    "serve": ("Connect", "Serve a team's memory: REST, MCP, a web page, metrics"),
    "hook": ("Connect", "Handle a hook event of Claude Code or Codex"),
    "install": ("Connect", "Connect a coding agent by editing its configuration, reversibly"),
    "sessions": ("Use", "List the session transcripts, or print one"),
    "prompt": ("Use", "Print the memory part of a system prompt, with token counts"),
    "import": ("Connect", "Import the memory of other tools: chats, notes, vectors"),
    "index": ("Maintain", "Update the index from the files"),
    "pull": ("Use", "Copy the shared spaces of a team into the workspace, or list them"),
    "watch": ("Maintain", "Keep the index up to date until stopped"),
    "status": ("Maintain", "Show what is indexed, what is due, and which embedder is used"),
    "doctor": ("Maintain", "Find problems and how to fix them; --fix fixes the safe ones"),
    "verify": ("Maintain", "Compare every row of the index with its file"),
    "memory": ("Maintain", "Run the commands of `openclaw memory`: status, index, search"),
    "eval": ("Maintain", "Measure search quality with questions whose answers are known"),
    "plugins": ("Maintain", "List the memory plugins: which one is used, and why not the others"),
    "db": ("Maintain", "Set up or examine the PostgreSQL database of the index"),
    "space": ("Maintain", "Manage the shared spaces of a team and their members"),
    "token": ("Maintain", "Make, list and revoke tokens for the server of a team"),
    "migrate": ("Maintain", "Move the index between SQLite and PostgreSQL, with its vectors"),
    "config": ("Maintain", "Show or change settings"),
    "uninstall": ("Maintain", "List what Clawmark has made on this machine, and remove it"),
    "completion": ("Maintain", "Print the completion script of bash, zsh or fish"),
}
"""Each verb with its group in the overview and a one-line summary."""


_EXAMPLES = """\
  clawmark demo                               no setup needed
  clawmark init ~/agent                       create your own workspace
  clawmark remember "We chose PostgreSQL for billing"
  clawmark search "which database did we pick?"
  clawmark get memory/2026-11-15.md#L3-L9     read what a citation points to"""

_WORKSPACE = """\
  Every command takes --workspace, --agent, --config, --state-dir, --json and
  --quiet, or -w, -a, -c, -j and -q.
  The workspace is --workspace, CLAWMARK_WORKSPACE, the configured one, the
  current folder if it holds MEMORY.md or memory/, or ~/.clawmark/workspace."""


def overview(stream: TextIO | None = None) -> str:
    """Return the verbs by group, examples, and how the workspace is found."""
    lines = [
        f"{paint('clawmark', 'bold', stream)} {__version__} · a memory for agents, made of "
        f"Markdown files",
        "",
    ]
    for group in dict.fromkeys(group for group, _ in VERBS.values()):
        lines.append(paint(group, "bold", stream))
        lines += [f"  {verb:<12}{line}" for verb, (of, line) in VERBS.items() if of == group]
        lines.append("")
    lines += [
        paint("Examples", "bold", stream),
        _EXAMPLES,
        "",
        paint("Workspace", "bold", stream),
        _WORKSPACE,
        "",
    ]
    lines.append("`clawmark COMMAND --help` explains a command.")
    return "\n".join(lines)


def answer_without_verb(rest: list[str], *, as_json: bool = False) -> int:
    """Handle `clawmark`, `--help`, `help VERB` and `--version`."""
    if not rest:
        note(overview(sys.stderr) + "\n")
        raise UsageError("A command is missing.")
    if rest[0] in ("-V", "--version"):
        if as_json or asks_for_json(rest):
            # Imported late: it asks for the versions of everything that is used.
            from clawmark.cli.versions import versions

            emit(versions())
        else:
            say(f"clawmark {__version__}")
        return 0
    if rest[0] == "help" and len(rest) > 1:
        if rest[1] not in VERBS:
            raise unknown_verb(rest[1])
        parser = make_parser(rest[1], VERBS[rest[1]][1], module_of(rest[1]))
        say(parser.format_help().rstrip())
        return 0
    say(overview())
    return 0


def module_of(verb: str) -> ModuleType:
    """Import the module of a verb; `import` is a keyword, so its module is called `imports`."""
    return import_module(f"clawmark.cli.commands.{'imports' if verb == 'import' else verb}")


def unknown_verb(verb: str) -> UsageError:
    """Return the error for a word that is not a verb; its hint names the closest one."""
    meant = closest(verb, VERBS)
    hint = f"Did you mean `clawmark {meant}`?" if meant else "`clawmark --help` lists the commands."
    return UsageError(f"There is no command {verb!r}.", hint=hint)
