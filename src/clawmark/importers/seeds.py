"""The vectors an OpenClaw installation has paid for, in; the same vectors in our embedding cache out.

Two databases are known: the one of March 2026 (`embedding_cache` and `chunks`, vectors as JSON text) and that of September
2026 (`memory_embedding_cache` and `memory_index_chunks`, vectors as float64 blobs). Both are opened read-only and immutable:
not a byte of them or beside them is written. One that OpenClaw has at work, with rows still in its log, is copied with the
log, and the copy is read. A vector that is not sound (wrong size, not finite, all zero) is left out.
"""

from __future__ import annotations

import json
import math
import os
import re
from array import array
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

from clawmark.errors import ClawmarkError
from clawmark.types import Identity, Vector
from clawmark.values import NamedTuple


class Seed(NamedTuple):
    """One vector of one text."""

    identity: Identity
    hash: str
    """SHA-256 hex of the text."""
    vector: Vector


class SeedsUnreadable(ClawmarkError):
    """The database is not one of OpenClaw's, or cannot be read."""

    exit_code = 2


_CACHES = ("embedding_cache", "memory_embedding_cache")
_CHUNKS = ("chunks", "memory_index_chunks")
_META = ("meta", "memory_index_meta")
_LOGS = ("-wal", "-journal")
_ATTEMPTS = 5


def databases_of(state_dir: str, agent: str) -> list[str]:
    """Where an OpenClaw installation keeps the index of an agent, newest kind first; only those that are there."""
    places = [
        os.path.join(state_dir, "agents", agent, "agent", "openclaw-agent.sqlite"),
        os.path.join(state_dir, "memory", f"{agent}.sqlite"),
    ]
    return [path for path in places if os.path.isfile(path)]


def seeds(path: str) -> Iterator[Seed | None]:
    """Every sound vector of a database; None for one that is not."""
    import apsw

    try:
        with _at_rest(path) as address:
            connection = apsw.Connection(address, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI)
            try:
                yield from _seeds(connection, path)
            finally:
                connection.close()
    except apsw.Error as error:
        raise SeedsUnreadable(f"{path} cannot be read: {error}.", hint="Is it OpenClaw's memory database?") from error


@contextmanager
def _at_rest(path: str) -> Iterator[str]:
    """The address of a database that nobody writes: itself, or a copy when its last changes are in a log beside it."""
    if not any(size for _, _, size in _signs(path)[1:]):
        # `immutable` keeps SQLite from making a lock, a journal or a shared-memory file beside somebody else's database.
        yield f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
        return
    import shutil
    import tempfile

    with tempfile.TemporaryDirectory(prefix="clawmark-") as folder:
        copy = os.path.join(folder, "copy.sqlite")
        for _ in range(_ATTEMPTS):
            before = _signs(path)
            try:
                for ending, _, _ in before:
                    shutil.copyfile(path + ending, copy + ending)
            except OSError as error:
                raise SeedsUnreadable(f"{path} cannot be copied: {error.strerror}.", hint="Stop OpenClaw first.") from error
            if _signs(path) == before:
                yield f"file:{quote(copy)}"
                return
        raise SeedsUnreadable(f"{path} changes all the time.", hint="Stop OpenClaw, import, and start it again.")


def _signs(path: str) -> list[tuple[str, int, int]]:
    """The files of a database that are there, each with the time of its last change and its size; it comes first."""
    found = [(ending, os.stat(path + ending)) for ending in ("", *_LOGS) if os.path.isfile(path + ending)]
    return [(ending, info.st_mtime_ns, info.st_size) for ending, info in found]


def _seeds(connection: Any, path: str) -> Iterator[Seed | None]:
    tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
    if not tables & {*_CACHES, *_CHUNKS}:
        raise SeedsUnreadable(f"{path} is not a memory database of OpenClaw.", hint="Name its main.sqlite.")
    for table in _CACHES:
        if table in tables:
            for *owner, text_hash, value in connection.execute(
                f"SELECT provider, model, provider_key, hash, embedding FROM {table}"
            ):
                yield _seed(owner, text_hash, value)
    identity = _active(connection, tables)
    for table in _CHUNKS:
        if table in tables and identity is not None:
            rows = connection.execute(f"SELECT hash, embedding FROM {table} WHERE model = ?", (identity[1],))
            for text_hash, value in rows:
                if value not in ("[]", "", b"", None):
                    yield _seed(list(identity), text_hash, value)


def _active(connection: Any, tables: set[str]) -> tuple[str, str, str] | None:
    """Who made the vectors that stand beside the chunks."""
    for table in _META:
        if table in tables:
            for (value,) in connection.execute(f"SELECT value FROM {table} WHERE key = 'memory_index_meta_v1'"):
                try:
                    facts = json.loads(value)
                    return str(facts["provider"]), str(facts["model"]), str(facts["providerKey"])
                except (ValueError, KeyError, TypeError):
                    return None
    return None


def _seed(owner: list[Any], text_hash: object, value: object) -> Seed | None:
    vector = _unit(value)
    words = [word for word in (*owner, text_hash) if isinstance(word, str)]
    if vector is None or len(words) != 4 or not re.fullmatch("[0-9a-fA-F]{64}", words[3]):
        return None
    return Seed(Identity(words[0], words[1], words[2], len(vector) // 4), words[3].lower(), vector)


def _unit(value: object) -> Vector | None:
    """The vector at unit length in float32, or nothing when it is not sound."""
    numbers = _numbers(value)
    if not numbers or not all(map(math.isfinite, numbers)):
        return None
    length = math.sqrt(math.fsum(x * x for x in numbers))
    return array("f", [x / length for x in numbers]).tobytes() if length > 1e-10 else None


def _numbers(value: object) -> list[float]:
    if isinstance(value, bytes):
        return array("d", value).tolist() if value and len(value) % 8 == 0 else []
    try:
        found = json.loads(value) if isinstance(value, str) else []
    except (ValueError, RecursionError):
        return []
    is_list = isinstance(found, list) and all(isinstance(x, (int, float)) and not isinstance(x, bool) for x in found)
    return [float(x) for x in found] if is_list else []
