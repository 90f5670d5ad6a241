"""Say what forgetting cannot reach: the user's own git, backups, services, running programs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from clawmark.agent.forget.parts import ForgetParts, read_file
from clawmark.agent.forget.scan import Piece
from clawmark.history.user_git import find_repository

_LEFTOVER = re.compile(r".*~\Z|\..*\.sw[a-p]\Z|\.#.*|#.*#\Z|.*\.(?:bak|orig|tmp)\Z")
"""What editors and tools leave next to a file."""
MOST_BYTES = 64 << 20


def standing_limits(parts: ForgetParts, matched: Iterable[Piece]) -> Iterator[str]:
    """Yield a sentence for each place outside the memory that may still hold the text."""
    found = list(matched)
    paths = sorted({piece.path for piece in found if piece.kind in ("memory", "history")})
    yield from _user_git(parts.workspace.root, paths)
    yield from _leftovers(parts.workspace.root, found)
    for provider in parts.providers:
        yield f"{provider} may keep texts that were sent to it in its logs."
    if parts.database:
        yield (
            f"The server of {parts.database} overwrites deleted rows later (VACUUM does), and its "
            "write-ahead log and backups may keep them longer."
        )
    if parts.spaces:
        yield (
            f"The shared spaces {', '.join(parts.spaces)} were not searched. The next sync "
            "replaces published files there; entries of their logs, and copies that others have "
            "pulled, stay."
        )
    others = _other_agents(parts)
    if others:
        yield f"The memories of other agents were not searched: {', '.join(others)}."
    yield (
        "Backups, snapshots of the disk, other machines, and programs that are running now (an "
        "agent, an MCP host, an editor) may still have copies."
    )


def _user_git(root: str, paths: list[str]) -> Iterator[str]:
    repository = find_repository(root, paths)
    if repository is None:
        return
    if repository.tracked:
        named = ", ".join(repository.tracked[:5])
        more = len(repository.tracked) - 5
        yield (
            f"Your own git repository {repository.folder} tracks {named}"
            f"{f' and {more} more' if more > 0 else ''}: its commits keep the text. "
            "`git filter-repo` rewrites them."
        )
    else:
        yield (
            f"Your own git repository {repository.folder} is around the workspace. It does not "
            "track these files now; older commits may."
        )


def _leftovers(root: str, found: list[Piece]) -> Iterator[str]:
    """Yield files that editors left in the workspace and that contain a forgotten line."""
    lines = {
        line.strip().encode("utf-8", "surrogateescape")
        for piece in found
        for line in piece.unit.text.split("\n")
        if len(line.strip()) > 8
    }
    for at, folders, names in os.walk(root):
        folders[:] = [name for name in folders if name not in (".git", "node_modules")]
        for name in filter(_LEFTOVER.match, names):
            path = os.path.join(at, name)
            if os.path.islink(path) or os.path.getsize(path) > MOST_BYTES:
                continue
            data = read_file(path) or b""
            if any(line in data for line in lines):
                yield f"{path} holds it too; it was left by an editor or another tool. Delete it."


def _other_agents(parts: ForgetParts) -> list[str]:
    folder, own = os.path.split(parts.agent_folder)
    sessions = {os.path.basename(os.path.dirname(one)) for one in parts.session_folders}
    if not os.path.isdir(folder):
        return []
    return sorted(name for name in os.listdir(folder) if name not in {own, *sessions})
