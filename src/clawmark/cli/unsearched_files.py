"""Find Markdown files that a user may expect to be searched but are not, and how to add them.

Looks in the current folder, then in the workspace. The agent's own files (`AGENTS.md` …) and the
copies of shared spaces do not count."""

import os
from argparse import Namespace
from collections.abc import Container
from typing import NamedTuple

from clawmark.cli.arguments import common_flags
from clawmark.cli.layout import plural, short_path
from clawmark.memory import Memory
from clawmark.model.sync_report import SyncReport
from clawmark.text.space_paths import FOLDER as COPIES
from clawmark.workspace.file_counts import survey
from clawmark.workspace.places import AGENT_FILES, ROOT_FILES, is_below

MAX_ENTRIES = 10_000


class Unsearched(NamedTuple):
    """A folder with Markdown files that are not memory."""

    folder: str
    files: int
    is_complete: bool
    """Whether all files were counted."""
    command: str
    """The command that adds the folder."""

    @property
    def sentence(self) -> str:
        at_least = "" if self.is_complete else "at least "
        verb = "is" if self.files == 1 else "are"
        return (
            f"{at_least}{plural(self.files, 'Markdown file')} in "
            f"{short_path(self.folder)} {verb} not searched"
        )

    @property
    def hint(self) -> str:
        """What is not searched, and the command that adds it."""
        sentence = f"{self.sentence[:1].upper()}{self.sentence[1:]}"
        return f"clawmark: {sentence}. To search them too:\n  {self.command}"


def find_unsearched(
    memory: Memory, args: Namespace, synced: SyncReport | None = None
) -> Unsearched | None:
    """Look for unsearched files in the current folder and in the workspace.

    `synced` is the report of a sync that has just ended. If it left out nothing, the files of the
    memory folder are not looked at again."""
    workspace = memory.workspace
    sources = workspace.sources()
    has_only_memory = not sources and not workspace.extra_paths
    is_all_indexed = (
        synced is not None
        and not (synced.skipped or synced.scan_failures)
        and "memory" in memory.settings.memory_search.sources
    )
    # The files that the pattern of a source leaves out are left out on purpose.
    skipped = {source.path for source in sources}
    copies = os.path.join(workspace.root, COPIES)
    for folder in dict.fromkeys(filter(None, (current_folder(), workspace.root))):
        if folder in skipped or _is_above_home(folder) or is_below(folder, copies):
            continue
        left_out = (*AGENT_FILES, COPIES) if folder == workspace.root else AGENT_FILES
        if folder == workspace.root and is_all_indexed and has_only_memory:
            left_out = (*left_out, *ROOT_FILES, "memory")
            found = count_unsearched(folder, args, left_out=left_out)
        else:
            found = count_unsearched(folder, args, left_out=left_out)
            if found is not None:  # some of them may be memory
                known = {(state.device, state.inode) for state in workspace.scan().files}
                found = count_unsearched(folder, args, known, left_out)
        if found is not None:
            return found
    return None


def count_unsearched(
    folder: str,
    args: Namespace,
    known: Container[tuple[int, int]] = (),
    left_out: Container[str] = AGENT_FILES,
) -> Unsearched | None:
    """Count the Markdown files of a folder that are not memory; not above the home folder."""
    if _is_above_home(folder):
        return None
    found = survey(folder, known=known, left_out=left_out, most_entries=MAX_ENTRIES)
    if not found.markdown:
        return None
    return Unsearched(
        folder=folder,
        files=found.markdown,
        is_complete=found.is_complete,
        command=_command(folder, args),
    )


def _is_above_home(folder: str) -> bool:
    return is_below(os.path.realpath(os.path.expanduser("~")), folder)


def current_folder() -> str:
    try:
        return os.path.realpath(os.getcwd())
    except OSError:  # the folder was deleted
        return ""


def _command(folder: str, args: Namespace) -> str:
    # Imported late: nearly every sync finds that nothing is left out.
    from shlex import quote

    words = [short_path(folder) if quote(folder) == folder else quote(folder)]
    return " ".join(["clawmark add", *words, *map(quote, common_flags(args))])
