"""Search an earlier version of the memory files with an index of exactly these files.

The index of a version is built when it is first asked for and kept for a while. The built-in
backend builds it and answers from it, so the answers are those of a new index of that day's files.
Vectors are taken from the cache of the main index, and new ones are added to it: no text is
embedded twice. As in the present, a search sends no passages to a service and does not wait long
for a local model; an explicit build does. A build that is killed is continued by the next one."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from typing import TYPE_CHECKING, NamedTuple

from clawmark.backends.as_of import kept
from clawmark.backends.as_of.files import VersionWorkspace, open_version
from clawmark.backends.builtin import BuiltinBackend
from clawmark.embed.base import Embedder, Traits
from clawmark.embed.passage import embeddable
from clawmark.engine.parts import IndexParts
from clawmark.engine.sync.scan import SyncRequest, is_chunked_by
from clawmark.history.history import History
from clawmark.history.repository import Version
from clawmark.model.errors import IndexDamaged, IndexFromTheFuture
from clawmark.model.values import Degraded, Found, Identity, Query
from clawmark.store.base import ManagedStore

if TYPE_CHECKING:
    from clawmark.model.sync_report import Progress, SyncReport

ATTEMPTS = 3
"""Another process may remove an index between its build and the answer."""
COPIED_AT_ONCE = 500
MOST_EMBEDDED = 256
"""More texts than this are left to an explicit build: a search should not take minutes."""
FACT = "as_of"
"""Where an index says that it holds every file of its version."""


class AsOfIndexes(NamedTuple):
    """The indexes of the earlier versions of one workspace."""

    folder: str
    history: History
    root: str
    """The workspace, which says how absolute paths are cited."""
    main: IndexParts
    """The parts of the present index: embedders, reranker, chunking and the cache of vectors."""
    open_store: Callable[[str], ManagedStore]

    def search(self, query: Query, version: Version) -> Found:
        """Answer a query from the files of a version."""
        with open_version(self.root, self.history, version) as files:
            for _ in range(ATTEMPTS):
                with closing(self._store(version)) as store:
                    parts, degraded = self._parts(store, files), None
                    if not is_complete(parts):
                        with kept.building(self.folder):
                            degraded = self._build(parts, version, SyncRequest(reason="search"))[1]
                    mark = store.mark()
                    found = BuiltinBackend(parts, freshen=False).search(query, freshen=False)
                    if os.path.exists(store.path) and not store.was_replaced(mark):
                        break
        return found._replace(due_files=0, degraded=found.degraded or degraded)

    def build(
        self, version: Version, progress: Callable[[Progress], None] | None = None
    ) -> SyncReport:
        """Build the index of a version with all its vectors, also those of a service."""
        with (
            open_version(self.root, self.history, version) as files,
            closing(self._store(version)) as store,
            kept.building(self.folder),
        ):
            request = SyncRequest(progress=progress)
            return self._build(self._parts(store, files), version, request)[0]

    def _store(self, version: Version) -> ManagedStore:
        return self.open_store(kept.index_path(self.folder, version.id))

    def _parts(self, store: ManagedStore, files: VersionWorkspace) -> IndexParts:
        sync = self.main.sync._replace(store=store, workspace=files, deltas=None, media=None)
        return self.main._replace(store=store, workspace=files, sync=sync)

    def _build(
        self, parts: IndexParts, version: Version, request: SyncRequest
    ) -> tuple[SyncReport, Degraded | None]:
        """Build the index of a version; return what was done, and why vectors are missing.

        A manual request embeds everything. Requires the lock."""
        text = BuiltinBackend(with_embedders(parts, ()), freshen=False).run_sync(request)
        chunks = _chunk_texts(parts.store)
        embedders = (*parts.embedders, *parts.fallbacks)
        for embedder in embedders:
            _copy_vectors(embedder.identity, chunks, self.main.store, parts.store)
        used = [
            embedder
            for embedder in embedders
            if request.reason == "manual"
            or may_embed(embedder.traits, _count_missing(parts.store, embedder, chunks))
        ]
        try:
            report = BuiltinBackend(with_embedders(parts, used), freshen=False).run_sync(request)
        finally:  # also if a service failed in the middle: what it gave was paid for
            self._keep_vectors(parts, chunks)
        with parts.store.transaction() as transaction:
            transaction.set_facts(FACT, {"version": version.id})
        kept.remove_old(self.folder, self.history.has, version.id)
        report = report._replace(
            added=text.added,
            chunks=text.chunks,
            unchanged=text.unchanged,
            failures=text.failures,
            seconds=text.seconds + report.seconds,
        )
        left_out = next((one for one in reversed(parts.embedders) if one not in used), None)
        return report, report.degraded or (_unembedded(left_out) if left_out else None)

    def _keep_vectors(self, parts: IndexParts, chunks: Mapping[str, str]) -> None:
        """Add new vectors to the cache of the main index."""
        if not self.main.setup.cache_limit:
            return
        new = [
            _copy_vectors(embedder.identity, chunks, parts.store, self.main.store)
            for embedder in (*parts.embedders, *parts.fallbacks)
        ]
        if any(new):
            self.main.store.trim_cache()


def may_embed(traits: Traits, missing: int) -> bool:
    """Whether a search of an earlier day embeds texts that have no vector yet."""
    return not missing or traits.instant or (not traits.remote and missing <= MOST_EMBEDDED)


def is_complete(parts: IndexParts) -> bool:
    """Whether an index holds all files of its version, and all vectors of the best embedder."""
    try:
        with parts.store.snapshot() as snapshot:
            if not snapshot.facts(FACT) or not is_chunked_by(snapshot, parts.sync.chunker.name):
                return False
            if snapshot.building:
                return False
            spaces = {space.identity: space for space in snapshot.spaces() if space.ready}
            return all(
                embedder.identity in spaces and not snapshot.count_due(spaces[embedder.identity].id)
                for embedder in parts.embedders
            )
    except (IndexDamaged, IndexFromTheFuture):
        return False  # the sync replaces it


def with_embedders(parts: IndexParts, used: Sequence[Embedder]) -> IndexParts:
    """Return the parts with only these of their embedders."""
    embedders = tuple(one for one in parts.embedders if one in used)
    fallbacks = tuple(one for one in parts.fallbacks if one in used)
    return parts._replace(
        sync=parts.sync._replace(embedders=embedders, fallbacks=fallbacks),
        choice=parts.choice._replace(embedders=embedders, fallbacks=fallbacks),
    )


def _unembedded(embedder: Embedder) -> Degraded:
    return Degraded(
        f"Not all passages of that day have a vector of {embedder.traits.label}.",
        "`clawmark index --as-of` with the same day makes them.",
    )


def _chunk_texts(store: ManagedStore) -> dict[str, str]:
    """Return the text of every chunk by its hash."""
    with store.snapshot() as snapshot:
        rows = (chunk for path in snapshot.files() for chunk in snapshot.chunks_of(path))
        return {chunk.hash: chunk.text for chunk in rows}


def _count_missing(store: ManagedStore, embedder: Embedder, chunks: Mapping[str, str]) -> int:
    """Count the texts that would have to be embedded."""
    with store.snapshot() as snapshot:
        known = snapshot.cached(embedder.identity, list(chunks)) if embedder.identity.dims else {}
    return sum(
        text_hash not in known and embeddable(embedder, text) is not None
        for text_hash, text in chunks.items()
    )


def _copy_vectors(
    identity: Identity, hashes: Collection[str], source: ManagedStore, target: ManagedStore
) -> int:
    """Copy the vectors of some texts that `target` does not have; return how many."""
    copied = 0
    wanted = list(hashes) if identity.dims else []  # a service may not have said its size yet
    for start in range(0, len(wanted), COPIED_AT_ONCE):
        some = wanted[start : start + COPIED_AT_ONCE]
        with target.snapshot() as snapshot:
            known = snapshot.cached(identity, some)
        missing = [text for text in some if text not in known]
        with source.snapshot() as snapshot:
            vectors = snapshot.cached(identity, missing)
        if vectors:
            with target.transaction() as transaction:
                transaction.cache_vectors(identity, vectors)
        copied += len(vectors)
    return copied
