"""A LangGraph store whose items are Markdown files below `memory/`.

    graph = builder.compile(store=MemoryStore(memory))

The item `("users", "carla")`, `"prefs"` is the file `memory/langgraph/users/carla/prefs.md`: front
matter with names and times, and the value as a block of JSON, which users can edit and searches
find. A search with a query is a search of the memory. An item is on disk when `put` returns. Needs
the extra `langgraph`."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from clawmark.adapters.store_files import Stored, item_path, names_path, parse, render, satisfies
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, WriteConflict
from clawmark.model.provenance import Origin

BY_AGENT = Origin(actor="agent", kind="tool", trust="agent", source="LangGraph store")
_ATTEMPTS = 5
_FIRST_ASKED = 50
_MOST_ASKED = 5000
"""Hits of the whole memory that are searched for those of a namespace."""
_DEEPEST = 64


class MemoryStore(BaseStore):
    """A LangGraph store in a folder below `memory/`; expiry (`ttl`) is not supported."""

    def __init__(self, memory: Memory, folder: str = "langgraph") -> None:
        self._memory = memory
        self._root = f"memory/{folder}"

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Run several operations; reads see the state before the writes."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        results: list[Result] = []
        puts: dict[tuple[tuple[str, ...], str], PutOp] = {}
        for op in asked:
            match op:
                case GetOp():
                    results.append(self._get(op))
                case SearchOp():
                    results.append(self._search(op))
                case ListNamespacesOp():
                    results.append(self._namespaces(op))
                case PutOp():
                    puts[op.namespace, op.key] = op  # the last one for a key counts
                    results.append(None)
        for put in puts.values():
            self._put(put)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Run `batch` in a worker thread."""
        return await asyncio.to_thread(self.batch, list(ops))

    def _get(self, op: GetOp) -> Item | None:
        found = self._memory.workspace.read_exact(item_path(self._root, op.namespace, op.key))
        stored = parse(found.text) if found is not None else None
        if stored is None or (stored.namespace, stored.key) != (op.namespace, op.key):
            return None
        return Item(
            value=stored.value,
            key=op.key,
            namespace=op.namespace,
            created_at=stored.created,
            updated_at=stored.updated,
        )

    def _put(self, op: PutOp) -> None:
        path, workspace = item_path(self._root, op.namespace, op.key), self._memory.workspace
        if op.value is None:
            workspace.delete(path, origin=BY_AGENT)
            return
        for attempt in range(1, _ATTEMPTS + 1):
            before, now = workspace.read_exact(path), datetime.now(UTC)
            stored = parse(before.text) if before is not None else None
            if stored is not None and (stored.namespace, stored.key) != (op.namespace, op.key):
                # On a case-insensitive disk one item would replace another.
                raise WriteConflict(
                    f"{path} holds the item {stored.key!r} of {stored.namespace}.",
                    path=path,
                    base_hash="",
                    current_hash=before.hash if before is not None else "",
                    hint="Choose a key that differs by more than upper and lower case.",
                )
            new = Stored(
                namespace=op.namespace,
                key=op.key,
                value=dict(op.value),
                created=stored.created if stored is not None else now,
                updated=now,
                indexed=op.index is not False,
            )
            try:
                base_hash = before.hash if before is not None else ""
                workspace.replace(path, render(new), base_hash, origin=BY_AGENT)
                return
            except WriteConflict:
                if attempt == _ATTEMPTS:
                    raise

    def _search(self, op: SearchOp) -> list[SearchItem]:
        wanted = op.offset + op.limit
        if op.query:
            found = self._ranked(op, wanted)
        else:
            found = [
                _item(one)
                for one in self._stored(op.namespace_prefix)
                if satisfies(one.value, op.filter)
            ]
        return found[op.offset : wanted]

    def _ranked(self, op: SearchOp, wanted: int) -> list[SearchItem]:
        """Return the best items of a namespace.

        Hits outside of it are ignored, so more are requested until there are enough.
        """
        asked = max(_FIRST_ASKED, 2 * wanted)
        below = names_path(self._root, op.namespace_prefix) + "/"
        while True:
            hits = self._memory.search(op.query or "", max_results=asked, min_score=0.0).hits
            scores: dict[str, float] = {}
            for hit in hits:
                if hit.path.startswith(below):
                    scores.setdefault(hit.path, hit.score)
            stored = [(self._read(path), score) for path, score in scores.items()]
            found = [
                _item(one, score)
                for one, score in stored
                if one and one.indexed and satisfies(one.value, op.filter)
            ]
            if len(found) >= wanted or len(hits) < asked or asked >= _MOST_ASKED:
                return found
            asked = min(4 * asked, _MOST_ASKED)

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        found = {one.namespace for one in self._stored(())}
        kept = {
            name[: op.max_depth]
            for name in found
            if all(_fits(name, one) for one in op.match_conditions or ())
        }
        return sorted(kept)[op.offset : op.offset + op.limit]

    def _stored(self, prefix: tuple[str, ...]) -> Iterator[Stored]:
        """Yield the items below a namespace in the order of their paths."""
        folder = names_path(self._root, prefix)
        for entry in self._memory.workspace.list_folder(folder, _DEEPEST) or ():
            stored = None if entry.is_folder else self._read(entry.path)
            if stored is not None and stored.namespace[: len(prefix)] == prefix:
                yield stored

    def _read(self, path: str) -> Stored | None:
        """Return the item in a file; None if it is missing or malformed."""
        try:
            found = self._memory.workspace.read_exact(path)
        except ClawmarkError:
            return None
        return parse(found.text) if found is not None else None


def _item(stored: Stored, score: float | None = None) -> SearchItem:
    return SearchItem(
        stored.namespace, stored.key, stored.value, stored.created, stored.updated, score
    )


def _fits(namespace: tuple[str, ...], condition: MatchCondition) -> bool:
    path: tuple[Any, ...] = tuple(condition.path)
    if len(namespace) < len(path):
        return False
    part = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wanted in ("*", label) for label, wanted in zip(part, path, strict=True))
