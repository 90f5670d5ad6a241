"""The table of verbs, the overview that `clawmark --help` prints, and the module of each verb."""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TextIO

from clawmark import __version__
from clawmark.cli.arguments import UsageError, closest, make_parser
from clawmark.cli.output import note, paint, say

VERBS: dict[str, tuple[str, str]] = {
    "demo": ("Start", "See it work: a sample memory, indexed and asked three questions"),
    "init": ("Start", "Make a workspace with the files an agent begins with"),
    "add": ("Start", "Search a folder of Markdown too: notes, docs, a vault"),
    "sources": ("Start", "List the folders that were added, or remove one"),
    "remember": ("Use", "Add a note to today's log, or to MEMORY.md"),
    "search": ("Use", "Find what the memory holds about something, with citations"),
    "get": ("Use", "Print lines of a memory file, by path or by citation"),
    "chat": ("Use", "Talk with an agent that lives in the workspace and remembers"),
    "flush": ("Use", "Save what matters of a conversation now, or curate MEMORY.md"),
    "mcp": ("Connect", "Serve the memory to MCP hosts: Claude Code, Cursor and others"),
    "hook": ("Connect", "Answer a hook of Claude Code or Codex: JSON in, JSON out"),
    "install": ("Connect", "Connect a coding agent: its configuration edited, reversibly"),
    "sessions": ("Use", "List the transcripts of conversations, or print one as text"),
    "prompt": ("Use", "Print the memory's part of a session's system prompt, with sizes"),
    "import": ("Connect", "Bring in what other tools remember: chats, notes, vectors"),
    "index": ("Care", "Bring the index in step with the files"),
    "watch": ("Care", "Keep the index in step with the files until stopped"),
    "status": ("Care", "Show what is indexed, what is due, what embeds and why"),
    "doctor": ("Care", "Explain what is wrong and what to do; --fix does what is safe"),
    "verify": ("Care", "Derive every row of the index from its file and compare"),
    "memory": ("Care", "The commands of `openclaw memory`: status, index and search"),
    "eval": ("Care", "Measure how well questions with known answers are found"),
    "config": ("Care", "Show settings and where they come from"),
}
"""Each verb with its group in the overview and a one-line summary."""


_EXAMPLES = """\
  clawmark demo                               nothing to set up
  clawmark init ~/agent                       a workspace of your own
  clawmark remember "We chose PostgreSQL for billing"
  clawmark search "which database did we pick?"
  clawmark get memory/2026-11-15.md#L3-L9     read what a citation points to"""

_PLACES = """\
  Every command takes --workspace, --agent, --config, --state-dir and --json.
  The workspace is --workspace, CLAWMARK_WORKSPACE, the configured one, the
  current folder if it holds MEMORY.md or memory/, or ~/.clawmark/workspace."""


def overview(stream: TextIO | None = None) -> str:
    """Every verb in its group, examples, and where things are."""
    lines = [
        f"{paint('clawmark', 'bold', stream)} {__version__} · a memory for agents, made of "
        f"Markdown files",
        "",
    ]
    for group in dict.fromkeys(group for group, _ in VERBS.values()):
        lines.append(paint(group, "bold", stream))
        lines += [f"  {verb:<10}{line}" for verb, (of, line) in VERBS.items() if of == group]
        lines.append("")
    lines += [
        paint("Examples", "bold", stream),
        _EXAMPLES,
        "",
        paint("Places", "bold", stream),
        _PLACES,
        "",
    ]
    lines.append("`clawmark VERB --help` explains one command.")
    return "\n".join(lines)


def answer_without_verb(rest: list[str]) -> int:
    """`clawmark`, `--help`, `help VERB`, `--version`."""
    if not rest:
        note(overview(sys.stderr) + "\n")
        raise UsageError("A command is missing.")
    if rest[0] in ("-V", "--version"):
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
