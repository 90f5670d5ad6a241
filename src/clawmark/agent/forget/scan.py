"""Read every place where a text may live, entry by entry."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import NamedTuple

from clawmark.agent.forget.parts import (
    ForgetParts,
    copy_files,
    is_own_file,
    read_file,
    transcript_files,
    version_files,
)
from clawmark.agent.forget.values import PlaceKind
from clawmark.model.errors import WorkspaceError
from clawmark.model.values import citation
from clawmark.text.forgetting import TextUnit, line_strings, units_of
from clawmark.workspace.places import AGENT_FILES


class Piece(NamedTuple):
    """An entry, and where it is."""

    kind: PlaceKind
    path: str
    """The path of the memory file; of other files, where they are."""
    where: str
    unit: TextUnit


class Outside(NamedTuple):
    """An entry in a file that is only read."""

    path: str
    where: str
    unit: TextUnit


def memory_paths(parts: ForgetParts) -> list[str]:
    """Return the memory files that can be written."""
    return [file.path for file in parts.workspace.scan().files if is_own_file(file.path)]


def pieces(parts: ForgetParts, problems: list[str]) -> Iterator[Piece]:
    """Yield the entries of every place; files that cannot be read are added to `problems`."""
    yield from memory_pieces(parts, problems)
    for path, cited in transcript_files(parts).items():
        yield from transcript_pieces(path, cited)
    for path in version_files(parts):
        for unit in units_of(_text(read_file(path))):
            yield Piece(kind="version", path=path, where=path, unit=unit)
    for version, path, data in parts.history.contents():
        for unit in units_of(_text(data)):
            where = f"{path}@{version.id[:7]}"
            yield Piece(kind="history", path=path, where=where, unit=unit)
    yield from proposal_pieces(parts)


def memory_pieces(parts: ForgetParts, problems: list[str]) -> Iterator[Piece]:
    """Yield the entries of the memory files."""
    for path in memory_paths(parts):
        try:
            found = parts.workspace.read_exact(path)
        except WorkspaceError as error:
            problems.append(f"{path} was not searched: {error.message}")
            continue
        for unit in units_of(found.text if found is not None else ""):
            where = citation(path, unit.first_line, unit.last_line)
            yield Piece(kind="memory", path=path, where=where, unit=unit)


def transcript_pieces(path: str, cited: str) -> Iterator[Piece]:
    """Yield the entries of the messages of a transcript, and of everything else in it."""
    for number, line in enumerate(_text(read_file(path)).split("\n"), 1):
        for string in line_strings(line) if line.strip() else ():
            for unit in units_of(string):
                where = citation(cited, number, number)
                yield Piece(kind="transcript", path=path, where=where, unit=unit)


def proposal_pieces(parts: ForgetParts) -> Iterator[Piece]:
    """Yield the entries of the proposals, also of those that the user has decided about."""
    for proposal in parts.proposals.list(decided=True):
        texts = [
            text
            for hunk in proposal.hunks
            for text in (hunk.old, hunk.new, hunk.before, hunk.after, hunk.reason, hunk.note)
        ]
        where = f"proposal {proposal.id}"
        for unit in (unit for text in (proposal.title, *texts) for unit in units_of(text)):
            yield Piece(kind="proposal", path=where, where=where, unit=unit)


def copy_pieces(parts: ForgetParts) -> Iterator[Piece]:
    """Yield the entries of other files in the state folder."""
    for path in copy_files(parts):
        text = _text(read_file(path))
        strings = line_strings(text)
        if strings == [text]:
            strings = [one for line in text.split("\n") for one in line_strings(line)] + strings
        for unit in (unit for string in strings for unit in units_of(string)):
            yield Piece(kind="copy", path=path, where=path, unit=unit)


def outside_pieces(parts: ForgetParts) -> Iterator[Outside]:
    """Yield the entries of files that are only read: added folders and the agent's own files."""
    for name in AGENT_FILES:
        text = _text(read_file(os.path.join(parts.workspace.root, name)))
        for unit in units_of(text):
            yield Outside(name, citation(name, unit.first_line, unit.last_line), unit)
    for state in parts.workspace.scan().files:
        if state.source == "sessions" or is_own_file(state.path):
            continue
        try:
            full = parts.workspace.absolute(state.path)
            text = parts.workspace.read_document(state).text
        except WorkspaceError:
            continue
        for unit in units_of(text):
            yield Outside(full, citation(full, unit.first_line, unit.last_line), unit)


def _text(data: bytes | None) -> str:
    return (data or b"").decode("utf-8", "surrogateescape")
