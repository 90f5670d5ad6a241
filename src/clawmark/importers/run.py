"""Run an import: choose the reader of a source and write its notes, or copy its vectors."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from clawmark.composition import make_tombstones
from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.history.tombstones import Tombstones
from clawmark.importers.chats import chatgpt_notes, claude_notes
from clawmark.importers.exports import conversations
from clawmark.importers.folders import claude_code_notes, codex_notes, folder_notes
from clawmark.importers.notes import (
    FOLDER,
    Imported,
    Note,
    Skip,
    Target,
    digits_in,
    digits_of,
    import_notes,
)
from clawmark.importers.seeds import open_index
from clawmark.model.provenance import Origin
from clawmark.text.forgetting import remove_entries

if TYPE_CHECKING:
    from clawmark.memory import Memory
    from clawmark.model.values import Identity

SOURCES = ("chatgpt", "claude", "claude-code", "codex", "markdown")
SEEDS_AT_ONCE = 500


class Seeded(NamedTuple):
    """The result of copying the vectors of another index."""

    database: str
    kept: int
    """Number of distinct vectors."""
    reusable: int
    """Those that the configured embedder would return for the same text."""
    unsound: int
    identities: tuple[str, ...]
    """Their models, such as `openai text-embedding-3-small`."""
    chunking_mode: str
    """The `memorySearch.chunking.mode` that produces the same chunks."""


def notes_of(source: str, path: str) -> Iterator[Note | Skip]:
    """Yield the notes of a source."""
    match source:
        case "chatgpt":
            return chatgpt_notes(conversations(path))
        case "claude":
            return claude_notes(conversations(path))
        case "claude-code":
            return claude_code_notes(path)
        case "codex":
            return codex_notes(path)
    return folder_notes(path)


def run_import(
    memory: Memory, source: str, path: str, *, dry_run: bool = False, overwrite: bool = False
) -> Iterator[Imported]:
    """Import a source into `memory/imports/<source>/`, note by note."""
    workspace = memory.workspace
    below = f"{FOLDER}/{source}/"
    states = {state.path: state for state in workspace.scan().files if state.path.startswith(below)}
    existing = {digits: at for at in states if (digits := digits_in(at))}

    def read(at: str) -> tuple[str, str]:
        known = states.get(at) or next(
            state for state in workspace.scan().files if state.path == at
        )
        document = workspace.read_document(known)
        return document.text, document.hash

    origin = Origin(
        actor="import",
        kind="import",
        trust="external",
        source=f"{source}: {os.path.abspath(path)}",
    )

    def replace(at: str, text: str, base: str) -> object:
        return memory.replace(at, text, base, force=True, origin=origin)

    target = Target(existing, read, replace)
    notes = without_forgotten(source, notes_of(source, path), make_tombstones(memory.places))
    return import_notes(source, notes, target, dry_run=dry_run, overwrite=overwrite)


def without_forgotten(
    source: str, notes: Iterable[Note | Skip], tombstones: Tombstones
) -> Iterator[Note | Skip]:
    """Yield notes without what the user had forgotten."""
    for note in notes:
        if isinstance(note, Skip):
            yield note
            continue
        body = remove_entries(note.body, tombstones.is_forgotten)
        is_forgotten = tombstones.has_name("import", f"{source}/{digits_of(note.id)}")
        if is_forgotten or not body.strip() or tombstones.is_forgotten(note.title):
            yield Skip(note.id, "was forgotten")
        else:
            yield note._replace(body=body)


def run_seeding(memory: Memory, database: str, *, dry_run: bool = False) -> Seeded:
    """Copy the vectors of an OpenClaw index to our cache, so that no text is embedded again."""
    kept = reusable = unsound = 0
    models: dict[str, None] = {}
    ours = _own_identities(memory)
    with open_index(database) as index:
        found = index.seeds()
        while batch := list(islice(found, SEEDS_AT_ONCE)):
            sound = [seed for seed in batch if seed is not None]
            unsound += len(batch) - len(sound)
            for theirs, group in groupby(sound, key=lambda seed: seed.identity):
                vectors = {seed.hash: seed.vector for seed in group}
                own = ours.get(theirs[:3])
                is_reusable = own is not None and own.dims in (0, theirs.dims)
                if not dry_run:
                    memory.keep_vectors(
                        own._replace(dims=theirs.dims) if own is not None else theirs, vectors
                    )
                kept += len(vectors)
                reusable += len(vectors) if is_reusable else 0
                models.setdefault(f"{theirs.provider} {theirs.model}")
        mode = index.chunking_mode
    return Seeded(
        database=database,
        kept=kept,
        reusable=reusable,
        unsound=unsound,
        identities=tuple(models),
        chunking_mode=mode,
    )


def _own_identities(memory: Memory) -> dict[tuple[str, str, str], Identity]:
    """Return the identity of each configured embedder by the keys that OpenClaw uses for it."""
    found: dict[tuple[str, str, str], Identity] = {}
    for embedder in (*memory.choice.embedders, *memory.choice.fallbacks):
        identity = embedder.identity
        keys = embedder.openclaw_keys if isinstance(embedder, RemoteEmbedder) else ()
        for key in (identity.provider_key, *keys):
            found[identity.provider, identity.model, key] = identity
    return found
