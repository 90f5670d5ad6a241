"""Count the files below a folder: Markdown, and other files by extension.

No file is opened, links are not followed, and the folders that a scan skips are skipped. The count
is bounded, because the folder may be any.
"""

import os
from collections import Counter
from collections.abc import Container
from typing import NamedTuple

from clawmark.workspace.guard import MAX_COMPONENTS
from clawmark.workspace.places import is_hidden, is_markdown, is_visible_folder

MOST_ENTRIES = 50_000


class Survey(NamedTuple):
    """What a folder holds."""

    markdown: int
    others: dict[str, int]
    """Other files by their extension in lower case, the most frequent first."""
    is_complete: bool
    """Whether everything was counted."""


def survey(
    folder: str,
    *,
    known: Container[tuple[int, int]] = (),
    left_out: Container[str] = (),
    most_entries: int = MOST_ENTRIES,
) -> Survey:
    """Count the files below a folder, except those `known` by device and inode, and the names
    `left_out` at its top."""
    markdown, others, seen = 0, Counter[str](), 0
    waiting = [(folder, 0)]
    while waiting:
        path, depth = waiting.pop()
        try:
            with os.scandir(path) as entries:
                for entry in entries:
                    seen += 1
                    if seen > most_entries:
                        return Survey(markdown, dict(others.most_common()), False)
                    if entry.is_symlink() or (depth == 0 and entry.name in left_out):
                        continue
                    if entry.is_dir(follow_symlinks=False):
                        if is_visible_folder(entry.name) and depth < MAX_COMPONENTS:
                            waiting.append((entry.path, depth + 1))
                    elif is_markdown(entry.name):
                        info = entry.stat(follow_symlinks=False)
                        markdown += (info.st_dev, info.st_ino) not in known
                    elif not is_hidden(entry.name):
                        others[os.path.splitext(entry.name)[1].lower()] += 1
        except OSError:
            continue
    return Survey(markdown, dict(others.most_common()), True)
