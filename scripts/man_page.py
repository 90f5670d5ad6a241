"""Render the manual page `clawmark.1` from the parsers that print `--help`."""

from __future__ import annotations

import argparse
import re
from collections.abc import Mapping

from clawmark import __version__
from clawmark.cli.arguments import COMMON, Parser
from clawmark.cli.verbs import VERBS

ABOUT = """\
Clawmark gives an agent a memory made of Markdown files:
MEMORY.md and the files below memory/.
The files are the source of truth.
The index for searching them is made from the files and can be deleted at any time.
"""

PLACES = """\
The workspace is the folder of the memory files:
\\-\\-workspace, CLAWMARK_WORKSPACE, the configured one,
the current folder if it holds MEMORY.md or memory/, or ~/.clawmark/workspace.
"""

FILES = {
    "~/.clawmark/clawmark.json": "the configuration; `clawmark config schema` lists the keys",
    "~/.clawmark/workspace": "the default workspace",
    "~/.clawmark/memory": "the indexes, which can be deleted",
}

VARIABLES = {
    "CLAWMARK_WORKSPACE": "the workspace",
    "CLAWMARK_CONFIG": "the configuration file",
    "CLAWMARK_STATE_DIR": "the folder of the index and other state",
    "CLAWMARK_DEBUG": "print the traceback of an unexpected error",
    "VISUAL, EDITOR": "the editor of `clawmark edit` and `clawmark config edit`",
    "NO_COLOR": "print without colours",
}


def man_page(parsers: Mapping[str, Parser], exit_codes: Mapping[str, str]) -> str:
    """Return the page in the man macros."""
    lines = [
        '.\\" Written by scripts/reference from the code; change it there.',
        f'.TH CLAWMARK 1 "" "clawmark {__version__}" "User Commands"',
        ".SH NAME",
        "clawmark \\- a memory for agents, made of Markdown files",
        ".SH SYNOPSIS",
        ".B clawmark",
        ".I COMMAND",
        "[\\fIoptions\\fR] [\\fIarguments\\fR]",
        ".SH DESCRIPTION",
        *ABOUT.splitlines(),
        ".PP",
        *PLACES.splitlines(),
        ".SH COMMANDS",
    ]
    for group in dict.fromkeys(group for group, _ in VERBS.values()):
        lines.append(f".SS {group}")
        for verb, (of, summary) in VERBS.items():
            lines += _item(verb, summary) if of == group else []
    lines.append(".SH OPTIONS OF EVERY COMMAND")
    for action in parsers["search"]._actions:
        if action.dest == "help" or f"--{action.dest.replace('_', '-')}" in COMMON:
            lines += _item(_names(action), action.help or "")
    lines.append(".SH COMMANDS IN DETAIL")
    for verb, parser in parsers.items():
        lines += _command(verb, parser)
    for title, entries in (
        ("EXIT STATUS", exit_codes),
        ("ENVIRONMENT", VARIABLES),
        ("FILES", FILES),
    ):
        lines.append(f".SH {title}")
        for name, meaning in entries.items():
            lines += _item(name, meaning)
    return "\n".join(lines) + "\n"


def _command(verb: str, parser: Parser) -> list[str]:
    lines = [f".SS clawmark {verb}", escaped(parser.description or "")]
    own = [
        action
        for action in parser._actions
        if action.dest != "help" and f"--{action.dest.replace('_', '-')}" not in COMMON
    ]
    for action in own:
        lines += _item(_names(action), action.help or "")
    first, *others = (parser.epilog or "").removeprefix("examples:\n").split("\n\n")
    lines += [".PP", "Examples:", ".PP", ".nf"]
    lines += [f".RS 4\n{escaped(line.strip())}\n.RE" for line in first.splitlines()]
    lines.append(".fi")
    for paragraph in others:
        lines += [".PP", escaped(" ".join(paragraph.split()))]
    return lines


def _names(action: argparse.Action) -> str:
    """Return the flags of an argument with the placeholder of its value, or its placeholder."""
    place = action.metavar if isinstance(action.metavar, str) else action.dest
    if not action.option_strings:
        return place if action.choices is None or action.metavar else "|".join(action.choices)
    return ", ".join(action.option_strings) + (f" {place}" if action.nargs != 0 else "")


def _item(name: str, text: str) -> list[str]:
    return [".TP", f".B {escaped(name)}", escaped(text)]


def escaped(text: str) -> str:
    """Escape what roff would interpret, at the start of a line too."""
    text = text.replace("%%", "%").replace("\\", "\\e").replace("-", "\\-")
    return re.sub(r"^([.'])", r"\\&\1", text)
