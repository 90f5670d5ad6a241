"""The vectors an OpenClaw installation has paid for, in; the same vectors in our embedding cache
out.

Two databases are known: the one of March 2026 (`embedding_cache` and `chunks`, vectors as JSON
text) and that of September 2026 (`memory_embedding_cache` and `memory_index_chunks`, vectors as
float64 blobs). Both are opened read-only and immutable: not a byte of them or beside them is
written. One that OpenClaw has at work, with rows still in its log, is copied with the log, and the
copy is read. A vector that is not sound (wrong size, not finite, all zero) is left out."""

from __future__ import annotations

import json
import math
import os
import re
import shutil
import tempfile
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import quote

from clawmark.config.check import Source
from clawmark.config.files import read_config
from clawmark.config.sections import sections_for
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Identity, Vector

CONFIG_FILE = "openclaw.json"


class Seed(NamedTuple):
    """One vector of one text."""

    identity: Identity
    """As OpenClaw names it."""
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


def openclaw_folder(state_dir: str, agent: str, environ: Mapping[str, str]) -> str:
    """The OpenClaw installation that belongs to our state folder, or the usual one.

    In an OpenClaw state folder, our state is the folder `clawmark` in its state folder.
    """
    around = os.path.dirname(state_dir)
    if os.path.isfile(os.path.join(around, CONFIG_FILE)):
        return around
    if databases_of(state_dir, agent):
        return state_dir
    return os.path.expanduser(environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw")


def databases_of(state_dir: str, agent: str) -> list[str]:
    """Where an OpenClaw installation keeps the index of an agent, newest kind first; only those
    that are there.
    """
    places = [
        os.path.join(state_dir, "agents", agent, "agent", "openclaw-agent.sqlite"),
        _configured_database(state_dir, agent),
        os.path.join(state_dir, "memory", f"{agent}.sqlite"),
    ]
    return [path for path in dict.fromkeys(places) if os.path.isfile(path)]


def _configured_database(state_dir: str, agent: str) -> str:
    """Where `memorySearch.store.path` of its configuration puts the index; empty when it does not
    say.
    """
    file = os.path.join(state_dir, CONFIG_FILE)
    if not os.path.isfile(file):
        return ""

    config = read_config(file)
    path = ""
    for section in sections_for(config.tree, agent, Source(f"file {file}", file, config.text)):
        store = section.values.get("store") if section.name == "memorySearch" else None
        if isinstance(store, dict) and isinstance(store.get("path"), str):
            path = store["path"]
    return (
        os.path.join(state_dir, os.path.expanduser(path.replace("{agentId}", agent)))
        if path
        else ""
    )


@contextmanager
def open_index(path: str) -> Iterator[OpenClawIndex]:
    """An index of OpenClaw, for reading; SeedsUnreadable when it is not one."""
    import apsw

    try:
        with _at_rest(path) as address:
            connection = apsw.Connection(
                address, flags=apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
            )
            try:
                tables = {
                    name
                    for (name,) in connection.execute(
                        "SELECT name FROM sqlite_schema WHERE type = 'table'"
                    )
                }
                if not tables & {*_CACHES, *_CHUNKS}:
                    raise SeedsUnreadable(
                        f"{path} is not a memory database of OpenClaw.",
                        hint="Name its main.sqlite.",
                    )
                yield OpenClawIndex(connection, tables)
            finally:
                connection.close()
    except apsw.Error as error:
        raise SeedsUnreadable(
            f"{path} cannot be read: {error}.", hint="Is it OpenClaw's memory database?"
        ) from error


@contextmanager
def _at_rest(path: str) -> Iterator[str]:
    """The address of a database that nobody writes: itself, or a copy when its last changes are in
    a log beside it.
    """
    if not any(size for _, _, size in _signs(path)[1:]):
        # `immutable` keeps SQLite from making a lock, a journal or a shared-memory file beside
        # somebody else's database.
        yield f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
        return

    with tempfile.TemporaryDirectory(prefix="clawmark-") as folder:
        copy = os.path.join(folder, "copy.sqlite")
        for _ in range(_ATTEMPTS):
            before = _signs(path)
            try:
                for ending, _, _ in before:
                    shutil.copyfile(path + ending, copy + ending)
            except OSError as error:
                raise SeedsUnreadable(
                    f"{path} cannot be copied: {error.strerror}.", hint="Stop OpenClaw first."
                ) from error
            if _signs(path) == before:
                yield f"file:{quote(copy)}"
                return
        raise SeedsUnreadable(
            f"{path} changes all the time.", hint="Stop OpenClaw, import, and start it again."
        )


def _signs(path: str) -> list[tuple[str, int, int]]:
    """The files of a database that are there, each with the time of its last change and its size;
    it comes first.
    """
    found = [
        (ending, os.stat(path + ending)) for ending in ("", *_LOGS) if os.path.isfile(path + ending)
    ]
    return [(ending, info.st_mtime_ns, info.st_size) for ending, info in found]


class OpenClawIndex:
    """The vectors of an opened database, and how its text was cut."""

    def __init__(self, connection: Any, tables: set[str]) -> None:
        self._connection = connection
        self._tables = tables
        self._meta = self._read_meta()

    @property
    def chunking_mode(self) -> str:
        """Our chunking mode that makes the same chunks."""
        version = self._meta.get("chunkingVersion")
        return "lines-v5" if isinstance(version, int) and version >= 5 else "lines"

    def seeds(self) -> Iterator[Seed | None]:
        """Every vector once, though most are stored in the cache and with a chunk; None for a text
        without a sound one.
        """
        taken: set[tuple[object, ...]] = set()
        unsound: set[tuple[object, ...]] = set()
        for *name, value in self._rows():
            if tuple(name) in taken:
                continue
            seed = _seed(name[:3], name[3], value)
            if seed is None:
                unsound.add(tuple(name))
                continue
            taken.add(tuple(name))
            yield seed
        yield from (None for _ in unsound - taken)

    def _rows(self) -> Iterator[tuple[object, ...]]:
        """Provider, model, provider key, hash of the text, and vector."""
        for table in self._tables.intersection(_CACHES):
            yield from self._connection.execute(
                f"SELECT provider, model, provider_key, hash, embedding FROM {table}"
            )
        names = [self._meta.get(key) for key in ("provider", "model", "providerKey")]
        if not all(isinstance(name, str) for name in names):
            return
        for table in self._tables.intersection(_CHUNKS):
            for text_hash, value in self._connection.execute(
                f"SELECT hash, embedding FROM {table} WHERE model = ?", (names[1],)
            ):
                if value not in ("[]", "", b"", None):
                    yield (*names, text_hash, value)

    def _read_meta(self) -> dict[str, Any]:
        """What the index was made with."""
        for table in self._tables.intersection(_META):
            for (value,) in self._connection.execute(
                f"SELECT value FROM {table} WHERE key = 'memory_index_meta_v1'"
            ):
                try:
                    found = json.loads(value)
                except (ValueError, TypeError):
                    continue
                if isinstance(found, dict):
                    return found
        return {}


def _seed(owner: Sequence[object], text_hash: object, value: object) -> Seed | None:
    vector = _unit(value)
    words = [word for word in (*owner, text_hash) if isinstance(word, str)]
    if vector is None or len(words) != 4 or not re.fullmatch("[0-9a-fA-F]{64}", words[3]):
        return None
    return Seed(
        Identity(provider=words[0], model=words[1], provider_key=words[2], dims=len(vector) // 4),
        words[3].lower(),
        vector,
    )


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
    is_list = isinstance(found, list) and all(
        isinstance(x, (int, float)) and not isinstance(x, bool) for x in found
    )
    return [float(x) for x in found] if is_list else []
