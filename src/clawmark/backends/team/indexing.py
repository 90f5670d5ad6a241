"""Put documents and logs of a space into its index, within the transaction that stores them.

Every space is cut with the same chunker; the settings of its members do not matter. Fast embedders
cover new passages at once; slower ones follow with `DirectSpaces.embed_due`."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import NamedTuple

from clawmark.backends.team.log_chunks import RenderedEntry, chunk_log
from clawmark.config.schema import Chunking
from clawmark.embed.base import Embedder, check_vectors
from clawmark.embed.passage import embeddable
from clawmark.engine.sync.text import dated_chunks, words_of
from clawmark.engine.sync.vectors import due_noise
from clawmark.model.documents import Chunk
from clawmark.model.errors import EmbeddingError
from clawmark.model.values import ChunkRow, FileRow, Vector, noise_fact
from clawmark.store.base import ChunkWords, WriteTransaction
from clawmark.text.space_paths import SpacePath

CHUNKER = Chunking()
LOG_CHUNKER = f"log-1:{CHUNKER.tokens}/{CHUNKER.overlap}"
"""How logs are cut; a log that was cut in another way is cut again as a whole."""
LAST_LINE = 2**31 - 1


class Prepared(NamedTuple):
    """A document that is ready to be put into the index."""

    path: SpacePath
    row: FileRow
    chunks: list[Chunk]


def prepare(path: SpacePath, text: str, changed_ns: int) -> Prepared:
    """Cut a document into passages."""
    chunks = dated_chunks(path.cited, text, CHUNKER)
    data = text.encode()
    row = FileRow(
        path=path.cited,
        source="memory",
        hash=sha256(data).hexdigest(),
        size=len(data),
        mtime_ns=changed_ns,
        inode=0,
        device=0,
        seen_ns=changed_ns,
        chunks=len(chunks),
        progress=CHUNKER.name,
    )
    return Prepared(path, row, chunks)


def put(transaction: WriteTransaction, document: Prepared) -> list[int]:
    """Replace a document in the index, and return the keys of its passages."""
    return transaction.put_file(document.row, document.chunks, _words(document, document.chunks))


def prepare_log(
    path: SpacePath, entries: Sequence[RenderedEntry], version: int, changed_ns: int
) -> Prepared:
    """Cut a log into passages: all of it, or from the first entry of one of its passages on.

    The version of the log takes the place of its hash; its size is not known."""
    day = path.path.removesuffix(".md")
    chunks = chunk_log(day, entries, CHUNKER)
    row = FileRow(
        path=path.cited,
        source="memory",
        hash=str(version),
        size=0,
        mtime_ns=changed_ns,
        inode=0,
        device=0,
        seen_ns=changed_ns,
        chunks=len(chunks),
        progress=LOG_CHUNKER,
    )
    return Prepared(path, row, chunks)


def extend(transaction: WriteTransaction, document: Prepared) -> list[ChunkRow]:
    """Replace the last passages of a log, and return those that take their place."""
    first_line = document.chunks[0].start_line
    words = _words(document, document.chunks)
    was = document.row.progress
    if first_line == 1 or not transaction.extend_file(
        document.row, first_line, document.chunks, words, was=was
    ):
        transaction.put_file(document.row, document.chunks, words)
    return transaction.chunks_of(document.path.cited, (first_line, LAST_LINE))


def embed(embedder: Embedder, texts: dict[str, str]) -> dict[str, Vector | None]:
    """Return the vectors of some texts by their hashes; without one if the model does not cover it.

    Nothing is returned if the embedder fails: `DirectSpaces.embed_due` tries again."""
    wanted = {
        text_hash: shown
        for text_hash, text in texts.items()
        if (shown := embeddable(embedder, text)) is not None
    }
    try:
        vectors = embedder.embed_texts(list(wanted.values())) if wanted else []
        check_vectors(vectors, len(wanted), embedder.identity)
    except EmbeddingError:
        return {}
    return dict.fromkeys(texts) | dict(zip(wanted, vectors, strict=True))


def cover(
    transaction: WriteTransaction,
    embedder: Embedder,
    passages: Sequence[tuple[int, str]],
    vectors: dict[str, Vector | None],
) -> None:
    """Store the vectors of passages, given as key and hash of the text, as far as there are any.

    A vector space that covers all passages may answer from then on."""
    space = transaction.add_space(embedder.identity)
    rows = [
        (key, text_hash, vectors[text_hash]) for key, text_hash in passages if text_hash in vectors
    ]
    transaction.put_vectors(space.id, rows)
    if transaction.count_due(space.id):
        return
    if not space.ready:
        transaction.set_ready(space.id)
    facts = due_noise(transaction, space.id)
    if facts:
        name = noise_fact(space.id)
        transaction.set_facts(name, transaction.facts(name) | facts)


def _words(document: Prepared, chunks: Sequence[Chunk]) -> list[ChunkWords]:
    """Return the words of passages; the name of the space is not one of them."""
    author, _, path = document.path.path.partition("/")
    return words_of(f"{author}/{path.removeprefix('memory/')}" if path else author, chunks)
