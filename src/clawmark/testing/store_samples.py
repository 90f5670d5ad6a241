"""Sample files and queries for the contract of index stores."""

from __future__ import annotations

from clawmark.model.values import KeywordQuery, SourceName
from clawmark.store.base import IndexStore, SearchSnapshot
from clawmark.testing.vectors import file_of


def any_of(*terms: str) -> KeywordQuery:
    """A query for chunks with any of the terms."""
    return KeywordQuery(terms)


def put(store: IndexStore, path: str, *texts: str, building: int = 0) -> list[int]:
    """Store a file with one chunk per text and return their keys."""
    with store.transaction() as transaction:
        return transaction.put_file(*file_of(path, *texts), building=building)


def put_dated(
    store: IndexStore, path: str, *days: tuple[str, str], source: SourceName = "memory"
) -> None:
    """Store a file with one chunk about a heron per range of days."""
    row, chunks, words = file_of(path, *[f"heron {path} {number}" for number in range(len(days))])
    dated = [
        chunk._replace(first_day=first, last_day=last)
        for chunk, (first, last) in zip(chunks, days, strict=True)
    ]
    with store.transaction() as transaction:
        transaction.put_file(row._replace(source=source), dated, words)


def found(snapshot: SearchSnapshot, *terms: str) -> list[str]:
    """The texts of the chunks with any of the terms, best first."""
    keys = [key for key, _ in snapshot.search_keywords(any_of(*terms), 100)]
    rows = snapshot.chunks(keys)
    return [rows[key].text for key in keys]


def texts_of(store: IndexStore, *terms: str) -> list[str]:
    """The same in a snapshot of its own, sorted."""
    with store.snapshot() as snapshot:
        return sorted(found(snapshot, *terms))
