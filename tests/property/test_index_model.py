"""The index compared with a dictionary: the same changes in any order give the same answers."""

from __future__ import annotations

import shutil
import tempfile
from hashlib import sha256

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from clawmark.model.errors import IndexBusy
from clawmark.model.values import Vector
from clawmark.store.sqlite import generations
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing.store_samples import any_of
from clawmark.testing.vectors import cosine, file_of, identity_of, unit

DIMS = 8
PATHS = st.sampled_from(["MEMORY.md", "memory/a.md", "memory/b.md", "memory/c.md"])
WORDS = ("amber", "birch", "cedar", "delta", "ember")
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), min_size=1, max_size=3).map(" ".join), max_size=4, unique=True
)


def vector_of(text: str) -> Vector | None:
    """A direction per text; texts about embers are in a language the model does not know."""
    if "ember" in text:
        return None
    return unit(byte - 127.5 for byte in sha256(text.encode()).digest()[:DIMS])


class IndexMachine(RuleBasedStateMachine):
    """`files` is what must be visible now; `built` is what a rebuild has made so far, None if none
    runs."""

    @initialize(engine=st.sampled_from(["blocks", "sqlite-vec"]))
    def start(self, engine: str) -> None:
        self.folder = tempfile.mkdtemp()
        self.index = SqliteStore(f"{self.folder}/index.sqlite", vector_engine=engine)
        self.files: dict[str, list[str]] = {}
        self.built: dict[str, list[str]] | None = None
        self.number = 0
        self.staged: dict[str, tuple[int, list[str], int]] = {}
        self.begun: dict[int, str] = {}
        self.published: list[int] = []
        with self.index.transaction() as writer:
            self.space = writer.add_space(identity_of(DIMS)).id

    def teardown(self) -> None:
        if hasattr(self, "index"):
            self.index.close()
            shutil.rmtree(self.folder)

    @rule(path=PATHS, texts=TEXTS)
    def put(self, path: str, texts: list[str]) -> None:
        with self.index.transaction() as writer:
            writer.put_file(*file_of(path, *texts))
        self.seen(path, texts)

    def seen(self, path: str, texts: list[str] | None) -> None:
        """An ordinary change discards what a rebuild or another process was making of the file."""
        self.staged.pop(path, None)
        self.files.pop(path, None)
        if texts is not None:
            self.files[path] = texts
        if self.built is not None:
            self.built.pop(path, None)

    @rule(path=PATHS, texts=TEXTS, building=st.booleans())
    def stage(self, path: str, texts: list[str], building: bool) -> None:
        row, chunks, words = file_of(path, *texts)
        number = self.number if building and self.built is not None else 0
        with self.index.transaction() as writer:
            try:
                file = writer.stage_file(row, building=number)
            except IndexBusy:
                assert self.staged[path][1] == texts
                return
        with self.index.transaction() as writer:
            writer.add_chunks(file, chunks[:2], words[:2])
        self.staged[path] = (file, texts, number)
        self.begun[file] = path

    @precondition(lambda self: self.begun)
    @rule(data=st.data())
    def finish_staged(self, data: st.DataObject) -> None:
        file = data.draw(st.sampled_from(sorted(self.begun)))
        path = self.begun.pop(file)
        known = self.staged.get(path)
        texts = known[1] if known is not None and known[0] == file else []
        _, chunks, words = file_of(path, *texts)
        try:
            with self.index.transaction() as writer:
                writer.add_chunks(file, chunks[2:], words[2:])
            with self.index.transaction() as writer:
                writer.finish_file(file)
        except IndexBusy:
            assert known is None or known[0] != file
            return
        assert known is not None and known[0] == file
        if self.built is not None and known[2] == self.number:
            self.built[path] = texts
            del self.staged[path]
        else:
            self.seen(path, texts)

    @rule(path=PATHS)
    def drop(self, path: str) -> None:
        with self.index.transaction() as writer:
            writer.delete_file(path)
        self.seen(path, None)

    @rule(path=PATHS, stamp=st.integers(2, 99))
    def touch(self, path: str, stamp: int) -> None:
        row = file_of(path, *self.files.get(path, ()), stamp=stamp)[0]
        with self.index.transaction() as writer:
            writer.touch_file(row)
            assert path not in self.files or writer.files()[path] == row

    @rule(path=PATHS, texts=TEXTS)
    def change_and_fail(self, path: str, texts: list[str]) -> None:
        try:
            with self.index.transaction() as writer:
                writer.put_file(*file_of(path, *texts))
                writer.delete_file("memory/a.md")
                raise KeyError
        except KeyError:
            return

    @precondition(lambda self: self.built is None)
    @rule()
    def begin_rebuild(self) -> None:
        self.number = 0
        while not self.number:
            with self.index.transaction() as writer:
                self.number = writer.begin_rebuild({"chunker": "next"})
                if not self.number:
                    writer.sweep(2)
        self.built = {}

    @precondition(lambda self: self.built is not None)
    @rule(path=PATHS, texts=TEXTS)
    def build(self, path: str, texts: list[str]) -> None:
        assert self.built is not None
        with self.index.transaction() as writer:
            assert (
                writer.begin_rebuild({"chunker": "next"}) == writer.state().building == self.number
            )
            writer.put_file(*file_of(path, *texts), building=self.number)
        self.built[path] = texts
        self.staged.pop(path, None)

    @precondition(lambda self: self.built is not None)
    @rule()
    def publish(self) -> None:
        assert self.built is not None
        with self.index.transaction() as writer:
            left = [row.path for row in generations.unbuilt(writer, self.number)]
            assert sorted(left) == sorted(self.files.keys() - self.built.keys())
            for path in left:
                writer.put_file(*file_of(path, *self.files[path]), building=self.number)
                self.staged.pop(path, None)
            writer.publish(self.number)
        self.files |= self.built
        self.built = None
        self.published.append(self.number)
        self.staged = {
            path: facts for path, facts in self.staged.items() if facts[2] == self.number
        }

    @rule()
    def abandon(self) -> None:
        with self.index.transaction() as writer:
            writer.abandon()
        self.built = None
        self.staged = {
            path: facts for path, facts in self.staged.items() if facts[2] in (0, *self.published)
        }

    @rule()
    def fill_vectors(self) -> None:
        while True:
            with self.index.snapshot() as reader:
                due = reader.due_chunks(self.space, reader.due_keys(self.space)[:3])
                assert (reader.count_due(self.space) == 0) == (not due)
            if not due:
                return
            with self.index.transaction() as writer:
                writer.put_vectors(
                    self.space,
                    [(key, text_hash, vector_of(text)) for key, text_hash, text, _ in due],
                )

    @rule(limit=st.integers(1, 4))
    def sweep(self, limit: int) -> None:
        with self.index.transaction() as writer:
            writer.sweep(limit)

    @rule()
    def reopen(self) -> None:
        self.index.close()

    @invariant()
    def answers_are_the_same(self) -> None:
        if not hasattr(self, "index"):
            return
        with self.index.snapshot() as reader:
            state = reader.state()
            assert sorted(reader.files()) == sorted(self.files)
            assert (state.files, state.chunks) == (
                len(self.files),
                sum(map(len, self.files.values())),
            )
            assert (state.building is None) == (self.built is None)
            assert sorted(reader.files(which="rebuilt")) == sorted(self.built or ())
            seen = {}
            for path, texts in self.files.items():
                rows = reader.chunks_of(path)
                assert [row.text for row in rows] == texts
                seen.update({row.key: row.text for row in rows})
            assert {key: row.text for key, row in reader.chunks(list(seen)).items()} == seen
            for word in WORDS:
                assert {key for key, _ in reader.search_keywords(any_of(word), 100)} == {
                    key for key, text in seen.items() if word in text.split()
                }
            query = unit(range(1, DIMS + 1))
            near = reader.nearest(self.space, query, 100)
            exact = {
                key: cosine(query, vector)
                for key, text in seen.items()
                if (vector := vector_of(text)) is not None
            }
            assert near == sorted(near, key=lambda pair: (-pair[1], pair[0]))
            assert all(abs(exact[key] - score) < 1e-5 for key, score in near)
            if reader.count_due(self.space) == 0:
                assert {key for key, _ in near} == set(exact)


TestIndexMachine = IndexMachine.TestCase
TestIndexMachine.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
