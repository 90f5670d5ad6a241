"""Every command a document shows exists, with every flag it shows; every command and flag that
exists is documented.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from docblocks import ROOT, blocks, documents, prose, where

from clawmark.cli import VERBS, module_of
from clawmark.cli.arguments import COMMON, SHORT, Parser, make_parser

SHOWN = re.compile(r"(?:^|[|&;] *)clawmark ([a-z]+)([^|&;\n]*)")


def parser_of(verb: str) -> Parser:
    return make_parser(verb, VERBS[verb][1], module_of(verb))


def flags_of(verb: str) -> set[str]:
    return set(parser_of(verb)._option_string_actions)


def shown_commands(file: Path) -> list[tuple[str, str]]:
    """Verb and words of every command in fenced blocks of a shell and in code spans."""
    shells = [
        line
        for block in blocks(file)
        if block.language == "console"
        for line in block.text.split("\n")
    ]
    typed = [
        line.removeprefix("$ ")
        for line in shells
        if line.startswith("$ ") or "clawmark" in line.split()[:1]
    ]
    spans = re.findall(r"`([^`\n]+)`", prose(file))
    return [(match[1], match[2]) for text in (*typed, *spans) for match in SHOWN.finditer(text)]


@pytest.mark.parametrize("file", documents(), ids=where)
def test_every_command_shown_exists_with_its_flags(file: Path) -> None:
    wrong = []
    for verb, words in shown_commands(file):
        if (
            verb == "memory" and words.split()[:1]
        ):  # the flags are those of the command that follows
            verb = words.split()[0]
        unquoted = re.sub(r"\"[^\"]*\"|'[^']*'", "", words)
        flags = re.findall(r"(?<!\S)--[a-z-]+", unquoted)
        if verb not in VERBS or not set(flags) <= flags_of(verb):
            wrong.append(f"clawmark {verb}{words}")
    assert wrong == []


@pytest.mark.parametrize("verb", VERBS)
def test_every_command_and_flag_is_in_the_reference(verb: str) -> None:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    section = text.split(f"\n## {verb}\n")[1].split("\n## ")[0] if f"\n## {verb}\n" in text else ""
    assert section, f"docs/reference/cli.md has no section `## {verb}`"
    everywhere = {"-h", "--help", *COMMON, *(SHORT[flag] for flag in COMMON if flag in SHORT)}
    assert [flag for flag in sorted(flags_of(verb) - everywhere) if flag not in section] == []
    assert [flag for flag in sorted(everywhere - {"-h"}) if flag not in text] == []
