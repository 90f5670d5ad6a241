"""Search an earlier version of the memory files with an index of exactly these files.

The index of a version is built when it is first asked for and kept for a while. The built-in
backend builds it and answers from it, so the answers are those of a new index of that day's files.
Vectors are taken from the cache of the main index, and new ones are added to it: no text is
embedded twice. A build that is killed is continued by the next question about that version."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator
from contextlib import closing, contextmanager
from typing import NamedTuple

from clawmark.backends.as_of import kept
from clawmark.backends.as_of.files import VersionWorkspace, open_version
from clawmark.backends.builtin import BuiltinBackend
from clawmark.engine.parts import IndexParts
from clawmark.engine.sync.scan import SyncRequest, is_chunked_by
from clawmark.history.history import History
from clawmark.history.repository import Version
from clawmark.model.errors import IndexDamaged, IndexFromTheFuture
from clawmark.model.values import Degraded, Found, Identity, Query
from clawmark.store.sqlite.store import SqliteStore

ATTEMPTS = 3
"""Another process may remove an index between its build and the answer."""
COPIED_AT_ONCE = 500
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
    open_store: Callable[[str], SqliteStore]

    def search(self, query: Query, version: Version) -> Found:
        """Answer a query from the files of a version."""
        with open_version(self.root, self.history, version) as files:
            for _ in range(ATTEMPTS):
                with closing(self.open_store(kept.index_path(self.folder, version.id))) as store:
                    parts = self._parts(store, files)
                    degraded = self._ensure(parts, version)
                    mark = store.mark()
                    found = BuiltinBackend(parts, freshen=False).search(query, freshen=False)
                    if os.path.exists(store.path) and not store.was_replaced(mark):
                        break
        return found._replace(due_files=0, degraded=found.degraded or degraded)

    def _parts(self, store: SqliteStore, files: VersionWorkspace) -> IndexParts:
        sync = self.main.sync._replace(store=store, workspace=files, deltas=None, media=None)
        return self.main._replace(store=store, workspace=files, sync=sync)

    def _ensure(self, parts: IndexParts, version: Version) -> Degraded | None:
        """Build the index of a version unless it is complete; return why vectors are missing."""
        if is_complete(parts):
            return None
        with kept.building(self.folder):
            if is_complete(parts):  # another process was building it
                return None
            BuiltinBackend(without_embedders(parts), freshen=False).run_sync(SyncRequest())
            with self._sharing_vectors(parts):
                # The reason is not `manual`: a service that fails is not asked again at once.
                request = SyncRequest(reason="search")
                report = BuiltinBackend(parts, freshen=False).run_sync(request)
            with parts.store.transaction() as transaction:
                transaction.set_facts(FACT, {"version": version.id})
            kept.remove_old(self.folder, self.history.has, version.id)
            return report.degraded

    @contextmanager
    def _sharing_vectors(self, parts: IndexParts) -> Iterator[None]:
        """Take known vectors from the main index, and afterwards add the new ones to it."""
        hashes = _chunk_hashes(parts.store)
        embedders = (*parts.embedders, *parts.fallbacks)
        for embedder in embedders:
            _copy_vectors(embedder.identity, hashes, self.main.store, parts.store)
        try:
            yield
        finally:  # also if a service failed in the middle: what it gave was paid for
            if self.main.setup.cache_limit:
                new = [
                    _copy_vectors(embedder.identity, hashes, parts.store, self.main.store)
                    for embedder in embedders
                ]
                if any(new):
                    self.main.store.trim_cache()


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


def without_embedders(parts: IndexParts) -> IndexParts:
    """Return the parts for the text alone."""
    return parts._replace(
        sync=parts.sync._replace(embedders=(), fallbacks=()),
        choice=parts.choice._replace(embedders=(), fallbacks=()),
    )


def _chunk_hashes(store: SqliteStore) -> list[str]:
    with store.snapshot() as snapshot:
        rows = (chunk for path in snapshot.files() for chunk in snapshot.chunks_of(path))
        return list(dict.fromkeys(chunk.hash for chunk in rows))


def _copy_vectors(
    identity: Identity, hashes: Collection[str], source: SqliteStore, target: SqliteStore
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
