"""Markdown that a user may expect to be searched, and is not: the command that adds it.

In: an open memory and the flags it was opened with. Out: how many Markdown files there are in the
current folder, or else in the workspace, that are not memory. The agent's own files (`AGENTS.md` …)
do not count."""

from __future__ import annotations

import os
import shlex
from argparse import Namespace
from typing import NamedTuple

from clawmark.cli.layout import plural, short_path
from clawmark.cli.output import note
from clawmark.memory import Memory
from clawmark.workspace.file_counts import survey
from clawmark.workspace.places import AGENT_FILES, is_below

MOST_ENTRIES = 10_000


class Unsearched(NamedTuple):
    """A folder with Markdown files that are not memory."""

    folder: str
    files: int
    is_complete: bool
    """Whether all files were counted."""
    command: str
    """What makes them searched."""

    @property
    def sentence(self) -> str:
        at_least = "" if self.is_complete else "at least "
        verb = "is" if self.files == 1 else "are"
        return (
            f"{at_least}{plural(self.files, 'Markdown file')} in "
            f"{short_path(self.folder)} {verb} not searched"
        )


def find_unsearched(memory: Memory, args: Namespace) -> Unsearched | None:
    """The first of the current folder and the workspace that has such files."""
    workspace = memory.workspace
    known = {(state.device, state.inode) for state in workspace.scan().files}
    skipped = {
        source.path for source in workspace.sources()
    }  # what a pattern leaves out is meant to be
    for folder in dict.fromkeys(filter(None, (current_folder(), workspace.root))):
        if folder not in skipped:
            found = look_at(folder, args, known)
            if found is not None:
                return found
    return None


def look_at(
    folder: str, args: Namespace, known: set[tuple[int, int]] | None = None
) -> Unsearched | None:
    """The Markdown files of one folder that are not memory; never of the home folder or one above
    it.
    """
    if is_below(os.path.realpath(os.path.expanduser("~")), folder):
        return None
    found = survey(folder, known=known or (), left_out=AGENT_FILES, most_entries=MOST_ENTRIES)
    if not found.markdown:
        return None
    return Unsearched(
        folder=folder,
        files=found.markdown,
        is_complete=found.is_complete,
        command=_command(folder, args),
    )


def hint(found: Unsearched | None) -> None:
    """Print it for a person, on standard error."""
    if found is not None:
        sentence = found.sentence
        note(
            f"clawmark: {sentence[:1].upper()}{sentence[1:]}. To search them too:\n  "
            f"{found.command}"
        )


def current_folder() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:  # it was deleted
        return ""


def _command(folder: str, args: Namespace) -> str:
    flags = {
        "--workspace": args.workspace,
        "--agent": args.agent,
        "--config": args.config,
        "--state-dir": args.state_dir,
    }
    given = [f" {flag} {shlex.quote(value)}" for flag, value in flags.items() if value is not None]
    is_plain = shlex.quote(folder) == folder
    return f"clawmark add {short_path(folder) if is_plain else shlex.quote(folder)}{''.join(given)}"
