"""What the database looks like, and the check that a file found on disk looks exactly like that.

The index is derived, so a file that differs in any object is not repaired but set aside and
rebuilt: a foreign trigger or view would run with our hands. Rows are left to the modules that write
them."""

from __future__ import annotations

from collections.abc import Iterable

from clawmark.model.errors import IndexDamaged, IndexFromTheFuture

APPLICATION_ID = 0x434C4D4B
"""`CLMK` in the file's header, so that `file` and other tools can name it."""
SCHEMA_VERSION = 3
QUERY_SECONDS = 2.0
"""How long one question to the index may take before it is stopped."""
PAGE_SIZE = 16384
"""Vectors and full-text leaves are long; 16 KB pages load them 1.5 times as fast as 4 KB and save
12 % of the file.
"""
WORDS_LEAF_BYTES = 16000
"""FTS5's own leaf size: one per page, which makes inserting 15 % cheaper than its default of 4050
bytes.
"""

DEAD, STAGED = 0, -1
"""In `files.died`: replaced or deleted, to be swept; and not finished yet.

Both come before every generation.
"""

WORDS = ("chunks_fts", "chunks_fts_b")
"""The full-text index that answers, and the one a rebuild fills; with each rebuild they change
places. How rare a word is depends on everything in its table, so rows that must not be seen yet may
not be in the same one."""


def _words_table(name: str) -> str:
    return (
        f"CREATE VIRTUAL TABLE {name} USING fts5(text, context, asked, content='', "
        f"contentless_delete=1, "
        'tokenize="porter unicode61 remove_diacritics 2")'
    )


# A file is visible at generation g when born <= g and (died is null or died > g); its chunks are
# when it is. So a file of any size appears, goes or is replaced by changing one row.
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
    # Covers the questions "which chunks are there" and "which of them are of these days", so that
    # they are answered without reading any text.
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
# With the sqlite-vec engine there is one virtual table per space, since each has its own number of
# dimensions.
VEC0_PREFIX = "chunks_vec_s"
# SQLite's own tables for FTS5, and the one it makes for a table that counts by itself, as vec0's
# do.
_INNER_TABLES = {
    "sqlite_sequence",
    *(f"{name}_{part}" for name in WORDS for part in ("data", "idx", "docsize", "config")),
}

FIX_HINT = "Run `clawmark index`: it sets the index aside and builds it again from your files."


def create_statements() -> list[str]:
    """What makes an empty database an index, to be run in one transaction."""
    settings = {
        "pgsz": WORDS_LEAF_BYTES,
        # By default a commit that leaves a tenth of a segment deleted rewrites the segment, which
        # takes as long as indexing it did. `generations.sweep` does that in small steps instead,
        # when nobody waits.
        "deletemerge": 0,
        # The same for merging small segments into large ones: left to itself, FTS5 now and then
        # does a lot of it within the commit that happens to come. `sweeping` does it in small
        # steps, and where 16 segments are alike.
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
    """Refuse a database of another schema; an older one is not migrated but built again."""
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
    """Refuse a database with one object more, less or different; `found` are rows (type, name,
    table, sql).
    """
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
    """Whether a virtual table keeps its data in this one, or it is a space's vec0 table."""
    number = name.removeprefix(VEC0_PREFIX).split("_")[0]
    return name in _INNER_TABLES or (name.startswith(VEC0_PREFIX) and number.isdecimal())
