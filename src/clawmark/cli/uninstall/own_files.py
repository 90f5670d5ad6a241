"""Recognise files outside of the state folder that Clawmark has made, by their content."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping

from clawmark.workspace.bootstrap import STATE_FOLDER, template
from clawmark.workspace.places import AGENT_FILES, ROOT_FILES

COMPLETION = "# Completion of clawmark in "
MANUAL = '.TH CLAWMARK 1 "" "clawmark '
MAX_BYTES = 1 << 20
SHELL_SETTINGS = (".bashrc", ".bash_profile", ".profile", ".zshrc", ".config/fish/config.fish")


def shell_files(home: str, environ: Mapping[str, str]) -> list[str]:
    """Return the completion scripts and the copied manual page, where the docs say to put them."""
    data = environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    places = (
        (os.path.join(data, "bash-completion", "completions", "clawmark"), COMPLETION),
        (os.path.join(home, ".zfunc", "_clawmark"), COMPLETION),
        (os.path.join(config, "fish", "completions", "clawmark.fish"), COMPLETION),
        (os.path.join(data, "man", "man1", "clawmark.1"), MANUAL),
    )
    return [path for path, mark in places if mark in _start(path)]


def shell_mentions(home: str, environ: Mapping[str, str]) -> Iterator[str]:
    """Yield the lines of shell settings that run clawmark; they are not changed."""
    for name in SHELL_SETTINGS:
        path = os.path.join(environ.get("ZDOTDIR") or home, name) if "zsh" in name else ""
        path = path or os.path.join(home, name)
        for number, line in enumerate(_start(path).split("\n"), 1):
            if re.search(r"\bclawmark\b", line) and not line.lstrip().startswith("#"):
                yield f"{path}, line {number} runs clawmark: remove the line."


def workspace_files(root: str, kept: list[str]) -> Iterator[str]:
    """Yield the memory files of a workspace, and unchanged files of `clawmark init`."""
    for name in (*ROOT_FILES, "memory", STATE_FOLDER):
        if os.path.lexists(os.path.join(root, name)):
            yield os.path.join(root, name)
    for name in AGENT_FILES:
        path = os.path.join(root, name)
        if not os.path.lexists(path):
            continue
        if _start(path) == template(name):
            yield path
        else:
            kept.append(f"{path} (changed since it was made, or not made by Clawmark)")


def _start(path: str) -> str:
    """Return the text of a small file; empty if it cannot be read."""
    try:
        if not os.path.isfile(path):
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read(MAX_BYTES)
    except OSError:
        return ""
