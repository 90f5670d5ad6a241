"""Plan what to forget: find every place where it lives. Nothing is changed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator

from clawmark.agent.forget.parts import (
    ForgetParts,
    damaged_histories,
    derived_files,
)
from clawmark.agent.forget.scan import (
    Piece,
    copy_pieces,
    memory_paths,
    outside_pieces,
    pieces,
    proposal_pieces,
)
from clawmark.agent.forget.select import Wanted, select
from clawmark.agent.forget.unreachable import standing_limits
from clawmark.agent.forget.values import ForgetPlan, FoundText, PlaceKind, Selection
from clawmark.history.journal import entry_hash
from clawmark.text.forgetting import is_distinct, sentences_of, words_of
from clawmark.text.untrusted.origin_labels import IMPORTS

LONGEST_EXCERPT = 120
MOST_COMPARED = 1000
"""How many entries are looked for inside longer texts of the state folder."""
_IMPORT_DIGITS = re.compile(rf"{IMPORTS}([^/]+)/(?:.*-)?([0-9a-f]{{12}})\.md\Z")


def make_plan(parts: ForgetParts, selection: Selection) -> ForgetPlan:
    """Return what forgetting a selection would do; WorkspaceError if it means nothing."""
    wanted = select(parts, selection)
    problems = list[str]()
    matched = [piece for piece in pieces(parts, problems) if _is_wanted(wanted, piece)]
    # What the user wrote or accepted stays if only the writes of agents are forgotten.
    derived = frozenset[str]() if selection.since else _derived(parts, wanted, matched)
    if derived:  # the user may have accepted what a proposal made from it
        wanted = wanted._replace(derived=derived)
        matched = [piece for piece in pieces(parts, []) if _is_wanted(wanted, piece)]
    return plan_for(parts, selection, wanted, matched, problems)


def plan_for(
    parts: ForgetParts,
    selection: Selection,
    wanted: Wanted,
    matched: list[Piece],
    problems: list[str],
) -> ForgetPlan:
    """Return the plan for the entries that were found."""
    everywhere, local = _split(wanted, matched)
    copies = _copies(parts, wanted, everywhere, is_any=bool(matched or wanted.files))
    journal = {entry_hash(piece.unit.text) for piece in matched} | wanted.written
    tombstones = parts.tombstones
    hashes = {
        one
        for content, text in everywhere.items()
        for one in tombstones.hashes_of(content, text)
        if is_distinct(content) or wanted.needles
    }
    phrases = [phrase for one in wanted.needles if (phrase := tombstones.hash_phrase(one))]
    return ForgetPlan(
        selection=selection,
        found=(*_found(parts, wanted, matched), *copies),
        entries=tuple(sorted(map(tombstones.hash_entry, everywhere))),
        local=tuple(sorted((path, tombstones.hash_entry(one)) for path, one in local)),
        files=wanted.files,
        paths=tuple(sorted({one.path for one in matched if one.kind in ("memory", "history")})),
        transcripts=wanted.transcripts,
        sessions=wanted.sessions,
        sources=wanted.sources,
        copies=tuple(dict.fromkeys(one.where for one in copies)),
        journal=tuple(sorted(journal)),
        tombstones=tuple(sorted({*hashes, *(name for name, _ in phrases), *_names(parts, wanted)})),
        phrase_words=tuple(sorted({count for _, count in phrases})),
        unreachable=(*problems, *_outside(parts, wanted), *standing_limits(parts, matched)),
    )


def _is_wanted(wanted: Wanted, piece: Piece) -> bool:
    return piece.path in wanted.files or piece.path in wanted.transcripts or wanted.matches(piece)


def _split(wanted: Wanted, matched: Iterable[Piece]) -> tuple[dict[str, str], set[tuple[str, str]]]:
    """Return the entries to remove everywhere with their text, and those of one file only.

    What is in a file that is deleted as a whole needs no entry of its own."""
    everywhere, local = dict[str, str](), set[tuple[str, str]]()
    for piece in matched:
        content = piece.unit.content
        if wanted.covers(content):
            everywhere.setdefault(content, piece.unit.text)
        elif piece.path not in wanted.files and piece.path not in wanted.transcripts:
            if is_distinct(content):
                everywhere.setdefault(content, piece.unit.text)
            elif piece.kind in ("memory", "history"):
                local.add((piece.path, content))
    return everywhere, local


def _found(parts: ForgetParts, wanted: Wanted, matched: Iterable[Piece]) -> Iterator[FoundText]:
    seen = set[tuple[PlaceKind, str, str]]()
    for piece in matched:
        # Each entry is listed once of all versions that have it.
        place = piece.path if piece.kind in ("history", "version", "proposal") else piece.where
        key = (piece.kind, place, piece.unit.content)
        if key not in seen:
            seen.add(key)
            yield FoundText(piece.kind, piece.where, _excerpt(piece.unit.text))
    for path in wanted.transcripts:
        yield FoundText("session", path)
    for name in wanted.sources:
        yield FoundText("source", name)
    journal = {entry_hash(piece.unit.text) for piece in matched} | wanted.written
    records = [one for one in parts.journal.records() if journal.intersection(one.entries)]
    if records:
        yield FoundText(
            "journal",
            parts.journal.path,
            f"{len(records)} record{'' if len(records) == 1 else 's'}",
        )
    if (matched or wanted.transcripts or wanted.sources) and parts.store.exists():
        yield FoundText("index", parts.store.path)
        if os.path.isdir(parts.as_of_folder):
            yield FoundText("index", parts.as_of_folder)


def _excerpt(text: str) -> str:
    """Return the beginning of a text in one line; an ellipsis says that there is more."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_EXCERPT else line[: LONGEST_EXCERPT - 1].rstrip() + "…"


def _derived(parts: ForgetParts, wanted: Wanted, matched: Iterable[Piece]) -> frozenset[str]:
    """Return the entries of proposals that repeat a forgotten entry, or a sentence of it."""
    everywhere, _ = _split(wanted, matched)
    distinct = [content for content in everywhere if is_distinct(content)][:MOST_COMPARED]
    sentences = {one for text in everywhere.values() for one in sentences_of(text)}
    return frozenset(
        content
        for piece in proposal_pieces(parts)
        if not wanted.covers(content := piece.unit.content)
        and (content in sentences or any(one in content for one in distinct))
        and not _is_users_own(parts, piece)
    )


def _is_users_own(parts: ForgetParts, piece: Piece) -> bool:
    """Whether the user wrote an entry, other than by accepting a proposal."""
    return any(
        one.origin.trust == "owner" and one.origin.kind != "accepted"
        for one in parts.journal.look_up(piece.unit.text).origins
    )


def _copies(
    parts: ForgetParts, wanted: Wanted, everywhere: dict[str, str], *, is_any: bool
) -> list[FoundText]:
    """Return the files of the state folder that repeat something that is forgotten."""
    found = dict[str, FoundText]()
    distinct = [content for content in everywhere if is_distinct(content)]
    for piece in copy_pieces(parts):
        content = piece.unit.content
        is_repeated = wanted.covers(content) or content in everywhere
        if piece.path not in found and (
            is_repeated or any(one in content for one in distinct[:MOST_COMPARED])
        ):
            found[piece.path] = FoundText("copy", piece.path, _excerpt(piece.unit.text))
    derived = (*derived_files(parts), *damaged_histories(parts)) if is_any else ()
    return [*found.values(), *(FoundText("copy", path) for path in derived)]


def _names(parts: ForgetParts, wanted: Wanted) -> Iterator[str]:
    """Yield the hashes of forgotten sessions and imported notes."""
    for session in wanted.sessions:
        yield parts.tombstones.hash_name("session", session)
    for path in wanted.files:
        imported = _IMPORT_DIGITS.match(path)
        if imported:
            yield parts.tombstones.hash_name("import", f"{imported[1]}/{imported[2]}")


def _outside(parts: ForgetParts, wanted: Wanted) -> Iterator[str]:
    """Yield what was found in files that are only read."""
    for name in wanted.sources:
        source = next((one for one in parts.sources.read() if one.name == name), None)
        if source is not None:
            yield f"The files in {source.path} are yours and stay; they are no longer searched."
    for path in memory_paths(parts):
        words = " ".join(words_of(re.sub(r"[\W_]+", " ", path)))
        if path not in wanted.files and any(needle in words for needle in wanted.needles):
            yield f"The name of {path} says it; `clawmark forget --path {path}` removes the file."
    outside = dict[str, list[str]]()
    for piece in outside_pieces(parts):
        if wanted.covers(piece.unit.content):
            outside.setdefault(piece.path, []).append(piece.where)
    for where in outside.values():
        more = f" (and {len(where) - 1} more places in it)" if len(where) > 1 else ""
        yield f"{where[0]}{more} also says it; this file is only read. Edit it yourself."
