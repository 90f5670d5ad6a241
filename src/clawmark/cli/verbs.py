"""What `clawmark` says without a verb: the overview, the version, or the help of one verb."""

from __future__ import annotations

import sys
from typing import TextIO

from clawmark import __version__
from clawmark.cli import VERBS, module_of, unknown_verb
from clawmark.cli.arguments import UsageError, make_parser
from clawmark.cli.output import note, paint, say

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
