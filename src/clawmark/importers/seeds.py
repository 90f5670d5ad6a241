"""Read the vectors of an OpenClaw index.

Two formats are known: that of March 2026 (`embedding_cache` and `chunks`, vectors as JSON) and that
of September 2026 (`memory_embedding_cache` and `memory_index_chunks`, vectors as float64 blobs).
The database is opened read-only and immutable; if it is in use, with rows in its log, a copy is
read. Invalid vectors (wrong size, not finite, all zero) are ignored."""

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

import apsw

from clawmark.config.check import Source
from clawmark.config.files import read_config
from clawmark.config.sections import sections_for
from clawmark.model.errors import ClawmarkError
from clawmark.model.values import Identity, Vector

CONFIG_FILE = "openclaw.json"


class Seed(NamedTuple):
    """The vector of a text."""

    identity: Identity
    """As OpenClaw names it."""
    hash: str
    """SHA-256 hex of the text."""
    vector: Vector


class SeedsUnreadable(ClawmarkError):
    """Raised when a database is not OpenClaw's, or cannot be read."""

    exit_code = 2


_CACHES = ("embedding_cache", "memory_embedding_cache")
_CHUNKS = ("chunks", "memory_index_chunks")
_META = ("meta", "memory_index_meta")
_LOGS = ("-wal", "-journal")
_ATTEMPTS = 5


def openclaw_folder(state_dir: str, agent: str, environ: Mapping[str, str]) -> str:
    """Return the state folder of the OpenClaw installation that ours belongs to, or the default."""
    around = os.path.dirname(state_dir)
    if os.path.isfile(os.path.join(around, CONFIG_FILE)):
        return around
    if databases_of(state_dir, agent):
        return state_dir
    return os.path.expanduser(environ.get("OPENCLAW_STATE_DIR") or "~/.openclaw")


def databases_of(state_dir: str, agent: str) -> list[str]:
    """Return the databases of an agent in an OpenClaw installation, newest format first."""
    places = [
        os.path.join(state_dir, "agents", agent, "agent", "openclaw-agent.sqlite"),
        _configured_database(state_dir, agent),
        os.path.join(state_dir, "memory", f"{agent}.sqlite"),
    ]
    return [path for path in dict.fromkeys(places) if os.path.isfile(path)]


def _configured_database(state_dir: str, agent: str) -> str:
    """Return the path configured in `memorySearch.store.path`; empty if there is none."""
    file = os.path.join(state_dir, CONFIG_FILE)
    if not os.path.isfile(file):
        return ""

    config = read_config(file)
    path = ""
    for section in sections_for(config.tree, agent, Source(f"file {file}", file, config.text)):
        store = section.values.get("store") if section.name == "memorySearch" else None
        if isinstance(store, dict) and isinstance(store.get("path"), str):
            path = store["path"]
    name = os.path.expanduser(path.replace("{agentId}", agent))
    return os.path.join(state_dir, name) if path else ""


@contextmanager
def open_index(path: str) -> Iterator[OpenClawIndex]:
    """Open an index of OpenClaw for reading; raises SeedsUnreadable if it is not one."""
    flags = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
    try:
        with _stable_copy(path) as address:
            connection = apsw.Connection(address, flags=flags)
            try:
                names = connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")
                tables = {name for (name,) in names}
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
def _stable_copy(path: str) -> Iterator[str]:
    """Return the URI of a database, or of a copy if its last changes are still in a log."""
    if not any(size for _, _, size in _file_states(path)[1:]):
        # `immutable` prevents SQLite from creating lock or journal files.
        yield f"file:{quote(os.path.abspath(path))}?mode=ro&immutable=1"
        return

    with tempfile.TemporaryDirectory(prefix="clawmark-") as folder:
        copy = os.path.join(folder, "copy.sqlite")
        for _ in range(_ATTEMPTS):
            before = _file_states(path)
            try:
                for ending, _, _ in before:
                    shutil.copyfile(path + ending, copy + ending)
            except OSError as error:
                raise SeedsUnreadable(
                    f"{path} cannot be copied: {error.strerror}.", hint="Stop OpenClaw first."
                ) from error
            if _file_states(path) == before:
                yield f"file:{quote(copy)}"
                return
        raise SeedsUnreadable(
            f"{path} keeps changing.", hint="Stop OpenClaw, import, and start it again."
        )


def _file_states(path: str) -> list[tuple[str, int, int]]:
    """Return suffix, modification time and size of the database and its existing logs."""
    suffixes = (suffix for suffix in ("", *_LOGS) if os.path.isfile(path + suffix))
    found = [(suffix, os.stat(path + suffix)) for suffix in suffixes]
    return [(suffix, info.st_mtime_ns, info.st_size) for suffix, info in found]


class OpenClawIndex:
    """The vectors of an open database, and its chunking mode."""

    def __init__(self, connection: Any, tables: set[str]) -> None:
        self._connection = connection
        self._tables = tables
        self._meta = self._read_meta()

    @property
    def chunking_mode(self) -> str:
        """The chunking mode that produces the same chunks."""
        version = self._meta.get("chunkingVersion")
        return "lines-v5" if isinstance(version, int) and version >= 5 else "lines"

    def seeds(self) -> Iterator[Seed | None]:
        """Yield each vector once; None for each text without a valid one."""
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
        """Yield provider, model, provider key, hash of the text, and vector."""
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
        """Return the metadata of the index."""
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
    """Return the vector at unit length in float32; None if it is invalid."""
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
