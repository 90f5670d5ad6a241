"""The meta table: which generation answers, which vector spaces exist, the next keys, and facts.

Read once per snapshot, changed in memory, and written by the transaction that changed it."""

import json
import os
from typing import Any, NamedTuple

from clawmark.model.errors import IndexDamaged
from clawmark.model.values import Identity, Space
from clawmark.store.sqlite.db import Database
from clawmark.store.sqlite.schema import FIX_HINT, SCHEMA_VERSION

_NAMES = {"identity": "memory_index_meta_v1"}
"""Facts that are stored under another key than their name."""


class SpaceFacts(NamedTuple):
    """A vector space and what its engine needs to know."""

    space: Space
    uncovered: int
    """Chunks that the model does not cover and that never get a vector."""
    revision: int
    """Grows with every change, so that data kept in memory between searches can be validated."""


def first_rows(engine: str) -> list[tuple[str, str]]:
    """Return the meta table of a new index."""
    return [
        ("schema_version", str(SCHEMA_VERSION)),
        ("index_id", os.urandom(8).hex()),
        ("generation", "1"),
        ("next_key", "1"),
        ("next_space", "1"),
        ("vector_engine", engine),
        ("sources", ""),
    ]


class Meta:
    """The rows of the meta table, and which of them changed."""

    def __init__(self, db: Database) -> None:
        self._values: dict[str, str] = dict(db.rows("SELECT key, value FROM meta"))
        self._stored = dict(self._values)
        self._path = db.path
        self._spaces: dict[int, SpaceFacts] | None = None
        self.counts: dict[str, int] = {}
        """What snapshots with this state of the index have counted."""

    @property
    def index_id(self) -> str:
        """The random id of this index: data kept about one index is not used for another at the
        same path."""
        return self._values.get("index_id", "")

    @property
    def engine(self) -> str:
        """Which vector engine wrote the vectors."""
        return self._values.get("vector_engine", "blocks")

    @engine.setter
    def engine(self, name: str) -> None:
        self._values["vector_engine"] = name

    def has(self, key: str) -> bool:
        """Return whether something is stored under a key."""
        return key in self._values

    def text(self, key: str) -> str:
        """Return a short text; empty if absent."""
        return self._values.get(key, "")

    def add_source(self, source: str) -> None:
        """Record that a file of a source was stored: a search that excludes the source can skip
        looking for its files."""
        held = self._values.get("sources")
        if held is not None and source not in held.split():
            self._values["sources"] = f"{held} {source}".strip()

    def number(self, key: str) -> int:
        """Return a counter; 0 if absent."""
        value = self._values.get(key, "0")
        try:
            return int(value)
        except ValueError:
            raise IndexDamaged(f"{self._path} says {key} is {value!r}.", hint=FIX_HINT) from None

    def set_number(self, key: str, value: int) -> None:
        """Set a counter; 0 removes it."""
        if value:
            self._values[key] = str(value)
        else:
            self._values.pop(key, None)

    def end_rebuild(self) -> None:
        """Clear the counters of a rebuild that was published or removed."""
        for key in ("building", "building_from", "building_next", "building_identity"):
            self._values.pop(key, None)

    def has_facts(self, key: str, facts: dict[str, Any]) -> bool:
        """Return whether an equal JSON object is stored; tuples equal lists."""
        return bool(self.facts(key) == json.loads(json.dumps(facts)))

    def facts(self, key: str) -> dict[str, Any]:
        """Return a stored JSON object; empty if there is none."""
        return dict(self._json(_NAMES.get(key, key), {}))

    def set_facts(self, key: str, facts: dict[str, Any]) -> None:
        """Store a JSON object; an empty one is removed."""
        key = _NAMES.get(key, key)
        if facts:
            self._values[key] = json.dumps(
                facts, ensure_ascii=False, allow_nan=False, sort_keys=True
            )
        else:
            self._values.pop(key, None)

    @property
    def spaces(self) -> dict[int, SpaceFacts]:
        """The vector spaces by number; read-only, changed with `set_space`."""
        if self._spaces is None:
            try:
                self._spaces = {item["id"]: _space(item) for item in self._json("spaces", [])}
            except (KeyError, TypeError, ValueError):
                raise IndexDamaged(
                    f"{self._path} has an unreadable vector space.", hint=FIX_HINT
                ) from None
        return self._spaces

    def set_space(self, number: int, facts: SpaceFacts | None) -> None:
        """Add, replace or (with None) remove a space."""
        spaces = dict(self.spaces)
        if facts is None:
            spaces.pop(number, None)
        else:
            spaces[number] = facts
        self._spaces = spaces
        self._values["spaces"] = json.dumps(
            [_item(facts) for facts in spaces.values()], ensure_ascii=False
        )

    def save(self, db: Database) -> None:
        """Write what changed."""
        changed = [item for item in self._values.items() if self._stored.get(item[0]) != item[1]]
        if changed:
            db.many("INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)", changed)
        gone = [(key,) for key in self._stored if key not in self._values]
        if gone:
            db.many("DELETE FROM meta WHERE key = ?", gone)
        self._stored = dict(self._values)

    def _json(self, key: str, default: Any) -> Any:
        try:
            value = json.loads(self._values[key]) if key in self._values else default
        except ValueError:
            value = None
        if not isinstance(value, type(default)):
            raise IndexDamaged(f"{self._path} has unreadable facts under {key}.", hint=FIX_HINT)
        return value


def read_meta(db: Database) -> Meta:
    """Return the meta table of a snapshot; it is read again only if the database has changed."""
    meta: Meta | None = db.remembered.get("meta")
    if meta is None:
        meta = db.remembered["meta"] = Meta(db)
    return meta


def _space(item: dict[str, Any]) -> SpaceFacts:
    identity = Identity(
        provider=item["provider"],
        model=item["model"],
        provider_key=item["providerKey"],
        dims=int(item["dims"]),
    )
    space = Space(
        id=int(item["id"]),
        identity=identity,
        ready=bool(item["ready"]),
        vectors=int(item["vectors"]),
    )
    return SpaceFacts(space, uncovered=int(item["uncovered"]), revision=int(item["revision"]))


def _item(facts: SpaceFacts) -> dict[str, Any]:
    space = facts.space
    return {
        "id": space.id,
        "provider": space.identity.provider,
        "model": space.identity.model,
        "providerKey": space.identity.provider_key,
        "dims": space.identity.dims,
        "ready": space.ready,
        "vectors": space.vectors,
        "uncovered": facts.uncovered,
        "revision": facts.revision,
    }
