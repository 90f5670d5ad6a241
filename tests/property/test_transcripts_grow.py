"""However a transcript comes to its length, its rows are those of an index made of it at once."""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clawmark.config.schema import Chunking
from clawmark.engine.sync.transcripts import Work, apply_transcripts, derive
from clawmark.model.values import ChunkRow
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.workspace.transcripts.files import TranscriptFiles

CHUNKER = Chunking(tokens=24, overlap=8)
WORDS = st.sampled_from(
    ["amber", "birch", "cedar", "delta", "ember", "fjord", "日本", "émigré", "\n", "🙂"]
)
TEXTS = st.one_of(
    st.lists(WORDS, min_size=1, max_size=12).map(" ".join),
    st.lists(WORDS, min_size=60, max_size=400).map(" ".join),
)


def record(role: str, text: str) -> str:
    return json.dumps(
        {
            "type": "message",
            "timestamp": "2026-02-24T10:00:00Z",
            "message": {"role": role, "content": text},
        }
    )


LINES = st.one_of(
    st.builds(record, st.sampled_from(["user", "assistant"]), TEXTS),
    st.builds(record, st.just("toolResult"), TEXTS),
    st.sampled_from(["", "{}", "not json", '{"type":"session","version":3}', "[]"]),
)


class Place:
    """A folder with one transcript, and an index."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "agents" / "main" / "sessions" / "x.jsonl"
        self.file.parent.mkdir(parents=True)
        self.sessions = TranscriptFiles(
            folder=str(self.file.parent), paths=(), workspace=str(folder / "workspace"), clean=str
        )
        self.store = SqliteStore(str(folder / "index.sqlite"))
        self.now = 10**18

    def sync(self, *, at_once: bool = True, slices: tuple[int, int] = (64, 1 << 20)) -> None:
        """Bring the index in step; not `at_once` means that time is up after every transaction."""
        while True:
            with self.store.snapshot() as reader:
                indexed = reader.files()
            work = Work(
                self.sessions,
                self.store,
                CHUNKER,
                lambda: self.now,
                lambda: not at_once,
                0,
                10.0,
                *slices,
            )
            report = apply_transcripts(self.sessions.scan().files, indexed, work, lambda _: None)
            assert not report.failures
            if not report.due_files:
                return

    def rows(self) -> list[tuple[Any, ...]]:
        with self.store.snapshot() as reader:
            (file,) = reader.files().values()
            chunks = reader.chunks_of(file.path)
            assert file.chunks == len(chunks) == reader.state().chunks
            for chunk in chunks:
                assert_words(reader.search_keywords, chunk)
        return [(file.size, file.hash, file.progress), *(chunk[3:] for chunk in chunks)]


def assert_words(keywords: Any, chunk: ChunkRow) -> None:
    word = next((word for word in chunk.text.split() if word.isascii() and word.isalpha()), "user")
    assert chunk.key in [key for key, _ in keywords(any_of(word), 10_000)]


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow])
@given(
    lines=st.lists(LINES, max_size=25),
    ends=st.booleans(),
    cuts=st.lists(st.integers(0, 20_000), max_size=8),
    at_once=st.booleans(),
    slices=st.tuples(st.sampled_from([1, 2, 5, 64]), st.sampled_from([100, 2000, 1 << 20])),
    other=st.one_of(
        st.just(b""), st.lists(LINES, max_size=5).map(lambda lines: "\n".join(lines).encode())
    ),
)
def test_any_way_of_growing_gives_the_rows_of_one_whole_index(
    lines: list[str],
    ends: bool,
    cuts: list[int],
    at_once: bool,
    slices: tuple[int, int],
    other: bytes,
) -> None:
    """`other` is what was in the file before it began anew; `cuts` is where each append ended, in
    bytes.
    """
    data = "\n".join(lines).encode() + (b"\n" if ends else b"")
    folder = Path(tempfile.mkdtemp())
    try:
        grown, whole = Place(folder / "grown"), Place(folder / "whole")
        for content in [other, *(data[:cut] for cut in sorted(cuts)), data]:
            grown.file.write_bytes(content)
            grown.sync(at_once=at_once, slices=slices)
        whole.file.write_bytes(data)
        whole.sync()
        assert grown.rows() == whole.rows()
        with whole.sessions.open("sessions/x.jsonl") as opened:
            expected = [
                (*chunk[:2], chunk.hash, chunk.heading, chunk.text, chunk.first_day, chunk.last_day)
                for chunk in derive(opened, whole.sessions, CHUNKER)
            ]
        assert whole.rows()[1:] == expected
        grown.store.close()
        whole.store.close()
    finally:
        shutil.rmtree(folder)
