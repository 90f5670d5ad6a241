"""A source's name and a path in; what was imported out: the one place that knows which reader
belongs to which source.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby, islice
from typing import TYPE_CHECKING, NamedTuple

from clawmark.embed.services.remote import RemoteEmbedder
from clawmark.importers.chats import chatgpt_notes, claude_notes
from clawmark.importers.exports import conversations
from clawmark.importers.folders import claude_code_notes, codex_notes, folder_notes
from clawmark.importers.notes import FOLDER, Imported, Note, Skip, Target, digits_in, import_notes
from clawmark.importers.seeds import open_index

if TYPE_CHECKING:
    from clawmark.memory import Memory
    from clawmark.model.values import Identity

SOURCES = ("chatgpt", "claude", "claude-code", "codex", "markdown")
SEEDS_AT_ONCE = 500


class Seeded(NamedTuple):
    """What came of the vectors of another index."""

    database: str
    kept: int
    """Different vectors, each counted once."""
    reusable: int
    """Those of them that the configured embedder would make for the same text."""
    unsound: int
    identities: tuple[str, ...]
    """The models they belong to, as `openai text-embedding-3-small`."""
    chunking_mode: str
    """The `memorySearch.chunking.mode` that cuts text as this OpenClaw did."""


def notes_of(source: str, path: str) -> Iterator[Note | Skip]:
    """What a source holds."""
    if source == "chatgpt":
        return chatgpt_notes(conversations(path))
    if source == "claude":
        return claude_notes(conversations(path))
    if source == "claude-code":
        return claude_code_notes(path)
    if source == "codex":
        return codex_notes(path)
    return folder_notes(path)


def run_import(
    memory: Memory, source: str, path: str, *, dry_run: bool = False, overwrite: bool = False
) -> Iterator[Imported]:
    """Bring a source into `memory/imports/<source>/`, one note after the other."""
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

    def replace(at: str, text: str, base: str) -> object:
        return memory.replace(at, text, base, force=True)

    target = Target(existing, read, replace)
    return import_notes(
        source, notes_of(source, path), target, dry_run=dry_run, overwrite=overwrite
    )


def run_seeding(memory: Memory, database: str, *, dry_run: bool = False) -> Seeded:
    """Bring the vectors of an OpenClaw index into our cache, so that nothing is paid for twice."""
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
    """The identity of each configured embedder, by every name under which OpenClaw would keep the
    same vectors.
    """
    found: dict[tuple[str, str, str], Identity] = {}
    for embedder in (*memory.choice.embedders, *memory.choice.fallbacks):
        identity = embedder.identity
        keys = embedder.openclaw_keys if isinstance(embedder, RemoteEmbedder) else ()
        for key in (identity.provider_key, *keys):
            found[identity.provider, identity.model, key] = identity
    return found
