"""The schema of the database, and the check that a file has exactly this schema.

The index is derived, so a file that differs is not repaired but set aside and rebuilt: a foreign
trigger or view would run with our permissions."""

from __future__ import annotations

from collections.abc import Iterable

from clawmark.model.errors import IndexDamaged, IndexFromTheFuture

APPLICATION_ID = 0x434C4D4B
"""`CLMK` in the file's header, so that `file` and other tools can identify it."""
SCHEMA_VERSION = 3
QUERY_SECONDS = 2.0
"""The time limit of one query."""
PAGE_SIZE = 16384
"""Vectors and full-text leaves are long; 16 KB pages load 1.5 times as fast as 4 KB and save 12 %
of the file."""
WORDS_LEAF_BYTES = 16000
"""FTS5's leaf size: one per page, which makes inserting 15 % cheaper than the default of 4050
bytes."""

DEAD, STAGED = 0, -1
"""Values of `files.died`: replaced or deleted, to be swept; and not complete yet.

Both are less than every generation."""

WORDS = ("chunks_fts", "chunks_fts_b")
"""The full-text table that answers, and the one a rebuild fills; they swap with each rebuild. How
rare a word is depends on all rows of its table, so invisible rows must be in another one."""


def _words_table(name: str) -> str:
    return (
        f"CREATE VIRTUAL TABLE {name} USING fts5(text, context, asked, content='', "
        f"contentless_delete=1, "
        'tokenize="porter unicode61 remove_diacritics 2")'
    )


# A file is visible at generation g if born <= g and (died is null or died > g); its chunks are
# visible with it. So a file of any size appears, disappears or is replaced by changing one row.
OBJECTS = {
    "meta": "CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID",
    "files": (
        "CREATE TABLE files (key INTEGER PRIMARY KEY, path TEXT NOT NULL, source TEXT NOT NULL, "
        "hash TEXT NOT NULL, "
        "size INTEGER NOT NULL, mtime_ns INTEGER NOT NULL, inode INTEGER NOT NULL, device "
        "INTEGER NOT NULL, "
        "seen_ns INTEGER NOT NULL, chunks INTEGER NOT NULL, progress TEXT NOT NULL DEFAULT '', "
        "origin TEXT NOT NULL DEFAULT '', scope TEXT NOT NULL DEFAULT '', born INTEGER NOT NULL, "
        "died INTEGER) STRICT"
    ),
    "files_of_path": "CREATE INDEX files_of_path ON files (path)",
    "files_died": "CREATE INDEX files_died ON files (died) WHERE died IS NOT NULL",
    "chunks": (
        "CREATE TABLE chunks (key INTEGER PRIMARY KEY, file INTEGER NOT NULL, start_line INTEGER "
        "NOT NULL, "
        "end_line INTEGER NOT NULL, hash BLOB NOT NULL, heading TEXT NOT NULL, first_day TEXT "
        "NOT NULL, "
        "last_day TEXT NOT NULL, text TEXT NOT NULL) STRICT"
    ),
    # Covers the queries for all chunks, and for the chunks of some days, without reading any text.
    "chunks_of_file": "CREATE INDEX chunks_of_file ON chunks (file, first_day, last_day)",
    **{name: _words_table(name) for name in WORDS},
    # id = space * 2^32 + block * 8 + part; `packed` explains the parts.
    "chunks_vec": (
        "CREATE TABLE chunks_vec (id INTEGER PRIMARY KEY, space INTEGER NOT NULL, block INTEGER "
        "NOT NULL, "
        "part TEXT NOT NULL, capacity INTEGER, count INTEGER, live INTEGER, revision INTEGER, "
        "data BLOB) STRICT"
    ),
    "embedding_cache": (
        "CREATE TABLE embedding_cache (id INTEGER PRIMARY KEY, provider TEXT NOT NULL, model "
        "TEXT NOT NULL, "
        "provider_key TEXT NOT NULL, hash BLOB NOT NULL, dims INTEGER NOT NULL, used_at INTEGER "
        "NOT NULL, "
        "embedding BLOB NOT NULL, UNIQUE (provider, model, provider_key, hash)) STRICT"
    ),
}
# With sqlite-vec there is one virtual table per space, since each has its own dimensions.
VEC0_PREFIX = "chunks_vec_s"
# SQLite's own tables for FTS5, and the one for autoincrement, which vec0 uses.
_INNER_TABLES = {
    "sqlite_sequence",
    *(f"{name}_{part}" for name in WORDS for part in ("data", "idx", "docsize", "config")),
}

FIX_HINT = "Run `clawmark index`: it sets the index aside and builds it again from your files."


def create_statements() -> list[str]:
    """Return the statements that create an index, to be run in one transaction."""
    settings = {
        "pgsz": WORDS_LEAF_BYTES,
        # By default a commit that leaves a tenth of a segment deleted rewrites the segment, which
        # takes as long as indexing it. `sweeping` does that in small steps instead.
        "deletemerge": 0,
        # The same for merging small segments: FTS5 would occasionally do a lot of it within one
        # commit. `sweeping` does it in small steps, where 16 segments are alike.
        "automerge": 0,
        "crisismerge": 1999,
        "usermerge": 16,
    }
    configure = [
        f"INSERT INTO {name} ({name}, rank) VALUES ('{key}', {value})"
        for name in WORDS
        for key, value in settings.items()
    ]
    return [*OBJECTS.values(), *configure, f"PRAGMA application_id = {APPLICATION_ID}"]


def check_version(stored: str, path: str) -> None:
    """Refuse a database with another schema version; an older one is not migrated but rebuilt."""
    if not stored.isdecimal():
        raise IndexDamaged(f"{path} does not say which schema it has.", hint=FIX_HINT)
    if int(stored) > SCHEMA_VERSION:
        raise IndexFromTheFuture(
            f"{path} was written by a newer Clawmark (schema {stored}, this one knows "
            f"{SCHEMA_VERSION}).",
            hint=FIX_HINT,
        )
    if int(stored) < SCHEMA_VERSION:
        raise IndexDamaged(
            f"{path} was written by an older Clawmark (schema {stored}).", hint=FIX_HINT
        )


def check_objects(found: Iterable[tuple[str, str, str, str | None]], path: str) -> None:
    """Refuse a database with a missing, additional or different object; `found` are rows (type,
    name, table, sql)."""
    missing = set(OBJECTS)
    for kind, name, table, sql in found:
        if name in OBJECTS:
            missing.discard(name)
            if sql != OBJECTS[name]:
                raise IndexDamaged(
                    f"{path} has another {kind} {name} than Clawmark makes.", hint=FIX_HINT
                )
        elif not (
            _is_inner_table(name) or (name.startswith("sqlite_autoindex_") and _is_known(table))
        ):
            raise IndexDamaged(
                f"{path} holds the {kind} {name}, which is not Clawmark's.", hint=FIX_HINT
            )
    if missing:
        raise IndexDamaged(f"{path} lacks {', '.join(sorted(missing))}.", hint=FIX_HINT)


def _is_known(table: str) -> bool:
    return table in OBJECTS or _is_inner_table(table)


def _is_inner_table(name: str) -> bool:
    """Return whether this is an internal table of a virtual table, or a space's vec0 table."""
    number = name.removeprefix(VEC0_PREFIX).split("_")[0]
    return name in _INNER_TABLES or (name.startswith(VEC0_PREFIX) and number.isdecimal())
