"""The embedding cache: each float32 vector once, by the identity of its embedder and the hash of
its text.

A text that moves, reappears or occurs twice is not embedded again. The least recently used vectors
are evicted first, but none that a chunk uses: exact scores are computed from them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clawmark.model.values import Identity, Vector
from clawmark.store.sqlite.db import Database, as_list

TOUCH_AFTER_NS = 60 * 1_000_000_000
"""A use within a minute of the last one is not recorded, so that fewer pages are written."""

_OF_IDENTITY = "provider = ? AND model = ? AND provider_key = ?"


def find(db: Database, identity: Identity, hashes: Sequence[str]) -> dict[str, tuple[int, Vector]]:
    """Return the cached vectors of some texts (SHA-256 hex) with their row numbers."""
    owner = identity[:3]
    found = db.many(
        f"SELECT hash, id, embedding FROM embedding_cache WHERE {_OF_IDENTITY} AND hash = ?",
        [(*owner, bytes.fromhex(text)) for text in hashes],
    )
    return {
        text.hex(): (row, vector) for text, row, vector in found if len(vector) == identity.dims * 4
    }


def dims_of(db: Database, provider: str, model: str, provider_key: str) -> int:
    """Return the dimensions of some vector of an embedder; 0 if there is none."""
    found = db.rows(
        f"SELECT dims FROM embedding_cache WHERE {_OF_IDENTITY} LIMIT 1",
        (provider, model, provider_key),
    )
    return int(found[0][0]) if found else 0


def hashes(db: Database) -> dict[Identity, list[str]]:
    """Return the hashes of all texts by embedder, least recently used first."""
    found: dict[Identity, list[str]] = {}
    for provider, model, provider_key, dims, text in db.rows(
        "SELECT provider, model, provider_key, dims, hash FROM embedding_cache "
        "ORDER BY used_at, id",
        patient=True,
    ):
        identity = Identity(provider=provider, model=model, provider_key=provider_key, dims=dims)
        found.setdefault(identity, []).append(text.hex())
    return found


def touch(db: Database, rows: Iterable[int], now_ns: int) -> None:
    """Record that these vectors are in use."""
    db.rows(
        "UPDATE embedding_cache SET used_at = ? WHERE id IN (SELECT value FROM json_each(?)) AND "
        "used_at < ?",
        (now_ns, as_list(rows), now_ns - TOUCH_AFTER_NS),
    )


def store(
    db: Database, identity: Identity, vectors: dict[str, Vector], now_ns: int
) -> tuple[dict[str, int], int]:
    """Store vectors by the hash of their text; return the row of each, and how many are new.

    Existing ones are kept."""
    owner = identity[:3]
    # Rows are numbered here: RETURNING takes longer than all the rest.
    first = 1 + db.rows("SELECT ifnull(max(id), 0) FROM embedding_cache")[0][0]
    changes = db.total_changes()
    db.many(
        "INSERT INTO embedding_cache (id, provider, model, provider_key, hash, dims, used_at, "
        "embedding) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        [
            (row, *owner, bytes.fromhex(text), identity.dims, now_ns, vector)
            for row, (text, vector) in enumerate(vectors.items(), first)
        ],
    )
    new = db.total_changes() - changes
    if new == len(vectors):
        return {text: row for row, text in enumerate(vectors, first)}, new
    known = db.many(
        f"SELECT hash, id, dims FROM embedding_cache WHERE {_OF_IDENTITY} AND hash = ?",
        [(*owner, bytes.fromhex(text)) for text in vectors],
    )
    # A provider may return another number of dimensions under the same name; the latest vector is
    # kept.
    changed = [
        (identity.dims, now_ns, vectors[text.hex()], row)
        for text, row, dims in known
        if dims != identity.dims
    ]
    db.many("UPDATE embedding_cache SET dims = ?, used_at = ?, embedding = ? WHERE id = ?", changed)
    return {text.hex(): row for text, row, _ in known}, new


def oldest(db: Database, excess: int, used: frozenset[int]) -> list[int]:
    """Return up to `excess` rows, least recently used first, without those in `used`."""
    rows = db.rows("SELECT id FROM embedding_cache ORDER BY used_at, id", patient=True)
    return [row for (row,) in rows if row not in used][:excess]


def delete(db: Database, rows: Sequence[int]) -> int:
    """Delete rows and return how many there were."""
    before = db.total_changes()
    db.many("DELETE FROM embedding_cache WHERE id = ?", [(row,) for row in rows])
    return db.total_changes() - before
