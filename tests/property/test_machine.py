"""The whole of it against the file tree: whatever happens to the files, the index, the process and
the embedder, one sync later the index is the one that a fresh rebuild of the same files makes.

Files are appended to, replaced, edited in place, renamed and deleted, transcripts grow, syncs are
stopped or killed, the index is damaged or deleted, the embedder fails or answers nonsense.
`CLAWMARK_ALL=1` runs many more of such stories."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

import clawmark
from clawmark.memory import Memory
from clawmark.model.reports import Progress
from clawmark.store.sqlite.store import SqliteStore
from clawmark.testing import UnreliableEmbedder

ALL = os.environ.get("CLAWMARK_ALL") == "1"
SOURCE = str(Path(next(iter(clawmark.__path__))).parent)
PATHS = st.sampled_from(
    ["MEMORY.md", "memory/2026-01-01.md", "memory/a.md", "memory/sub/b.md", "memory/sub/deep/c.md"]
)
WORDS = ("amber", "birch", "cedar", "delta", "fjord", "glade")
LINES = st.lists(st.sampled_from(WORDS), min_size=1, max_size=4).map(" ".join)
TEXTS = st.lists(st.one_of(LINES, LINES.map("## ".__add__), st.just("")), max_size=12).map(
    "\n".join
)
OVERRIDES = {
    "memorySearch.sources": ["memory", "sessions"],
    "memorySearch.chunking.tokens": 64,
    "memorySearch.chunking.overlap": 0,
}
DIMS = 16

# A child that syncs and dies at its n-th function call: as good as any moment, and the same when a
# failure is replayed.
DOOMED = f"""
import os, signal, sys
from clawmark.memory import Memory
from clawmark.testing import UnreliableEmbedder
workspace, state, left, force = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4] == "force"
memory = Memory.open(
    workspace, state_dir=state, embedder=UnreliableEmbedder({DIMS}), overrides={OVERRIDES!r}
)
def count(frame, event, argument):
    global left
    left -= 1
    if left < 0:
        os.kill(os.getpid(), signal.SIGKILL)
sys.setprofile(count)
memory.sync(force=force)
"""


class Stop(Exception):
    """Raised by a listener of progress: a host that gave up."""


class Row(NamedTuple):
    """A chunk as anybody can see it."""

    path: str
    start_line: int
    end_line: int
    text: str
    has_vector: bool


class Machine(RuleBasedStateMachine):
    """The tree on disk is the model; what is written through Clawmark is compared with what was
    meant.
    """

    @initialize()
    def start(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="clawmark-machine-"))
        self.root, self.state = self.folder / "ws", self.folder / "state"
        (self.root / "memory").mkdir(parents=True)
        (self.root / "MEMORY.md").write_text("# Facts\n\namber and birch\n", encoding="utf-8")
        self.embedder = UnreliableEmbedder(DIMS)
        self.memory = self.opened(self.state, self.embedder)
        self.sessions = Path(self.memory.places.sessions_dir)

    def teardown(self) -> None:
        if not hasattr(self, "memory"):
            return
        try:
            self.agrees_with_a_fresh_rebuild()
        finally:
            self.memory.close()
            shutil.rmtree(self.folder)

    # --- files ------------------------------------------------------------------------------------

    @rule(path=PATHS, text=LINES)
    def append(self, path: str, text: str) -> None:
        before = self.text_of(path) or ""
        written = self.memory.append(text, to=path)
        after = self.text_of(path) or ""
        assert after == before + "\n" * bool(before and not before.endswith("\n")) + f"- {text}\n"
        assert after.split("\n")[written.start_line - 1 : written.end_line] == [f"- {text}"]

    @rule(path=PATHS, text=TEXTS)
    def replace(self, path: str, text: str) -> None:
        before = self.text_of(path)
        base = "" if before is None else hashlib.sha256(before.encode()).hexdigest()
        self.memory.replace(path, text, base, force=True)
        assert self.text_of(path) == text

    @rule(path=PATHS, word=st.sampled_from(WORDS))
    def edit_in_place(self, path: str, word: str) -> None:
        """As many bytes as before, and the time put back: what a look at the size and the mtime
        does not see.
        """
        file = self.root / path
        text = self.text_of(path)
        if (
            not text
            or (at := min((text.find(old) for old in WORDS if old in text), default=-1)) < 0
        ):
            return
        info = file.stat()
        self.let_the_clock_tick()
        with file.open("r+b") as opened:
            opened.seek(len(text[:at].encode()))
            opened.write(word.encode())
        os.utime(file, ns=(info.st_atime_ns, info.st_mtime_ns))

    @rule(path=PATHS)
    def delete(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    @rule(path=PATHS, to=PATHS)
    def rename(self, path: str, to: str) -> None:
        if (self.root / path).exists():
            (self.root / to).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).replace(self.root / to)

    @rule()
    def rename_folder(self) -> None:
        sub, other = self.root / "memory" / "sub", self.root / "memory" / "moved"
        if sub.exists() and not other.exists():
            sub.rename(other)
        elif other.exists() and not sub.exists():
            other.rename(sub)

    @rule(
        name=st.sampled_from(["one", "two"]),
        said=st.lists(LINES, min_size=1, max_size=5),
        torn=st.booleans(),
    )
    def grow_transcript(self, name: str, said: list[str], torn: bool) -> None:
        """Some messages more; a torn last line is one whose writer is not done yet."""
        self.sessions.mkdir(parents=True, exist_ok=True)
        file = self.sessions / f"{name}.jsonl"
        lines = [] if file.exists() else [json.dumps({"type": "session", "version": 3, "id": name})]
        lines += [
            json.dumps(
                {
                    "type": "message",
                    "timestamp": "2026-01-01T10:00:00Z",
                    "message": {"role": role, "content": text},
                }
            )
            for role, text in zip(["user", "assistant"] * len(said), said, strict=False)
        ]
        with file.open("a", encoding="utf-8") as opened:
            opened.write("\n".join(lines) + ("" if torn else "\n"))

    @rule(name=st.sampled_from(["one", "two"]))
    def delete_transcript(self, name: str) -> None:
        (self.sessions / f"{name}.jsonl").unlink(missing_ok=True)

    # --- syncs ------------------------------------------------------------------------------------

    @rule(force=st.booleans())
    def index(self, force: bool) -> None:
        self.memory.sync(force=force)

    @rule(force=st.booleans(), left=st.integers(0, 3))
    def stopped_index(self, force: bool, left: int) -> None:
        """The listener of progress raises, after some events."""
        moments = iter(range(left))

        def listen(_: Progress) -> None:
            if next(moments, None) is None:
                raise Stop

        try:
            self.memory.sync(force=force, progress=listen)
        except Stop:
            return

    @rule(word=st.sampled_from(WORDS))
    def search(self, word: str) -> None:
        self.memory.search(word)

    @rule(left=st.integers(0, 40_000), force=st.booleans())
    def killed_index(self, left: int, force: bool) -> None:
        words = [str(self.root), str(self.state), str(left), "force" if force else "plain"]
        command = [sys.executable, "-c", DOOMED, *words]
        done = subprocess.run(
            command, env={**os.environ, "PYTHONPATH": SOURCE}, capture_output=True, check=False
        )
        assert done.returncode in (0, -signal.SIGKILL), done.stderr.decode()

    # --- faults -----------------------------------------------------------------------------------

    @rule(fault=st.sampled_from(["", "down", "nan", "zero", "short"]))
    def embedder_fault(self, fault: str) -> None:
        self.embedder.fault = fault  # type: ignore[assignment]

    @rule(
        how=st.sampled_from(["gone", "log gone", "empty", "cut", "foreign", "flipped"]),
        at=st.floats(0, 0.99),
    )
    def damage_index(self, how: str, at: float) -> None:
        """Between two processes: this one closes the memory before, and opens it again."""
        self.memory.close()
        if Path(self.memory.places.index_path).exists():
            damage(Path(self.memory.places.index_path), how, at)
        self.memory = self.opened(self.state, self.embedder)

    # --- the judge --------------------------------------------------------------------------------

    @invariant()
    def nothing_is_left_beside_the_files(self) -> None:
        if hasattr(self, "root"):
            assert [
                file.name
                for file in self.root.rglob("*")
                if file.is_file() and file.suffix != ".md"
            ] == []

    def agrees_with_a_fresh_rebuild(self) -> None:
        self.embedder.fault = ""
        self.memory.close()
        with self.opened(self.state, self.embedder) as memory:
            report = memory.sync()
            assert (report.due_files, report.due_vectors, report.failures) == (0, 0, ()), report
            assert memory.verify().problems == (), memory.verify().problems
            assert memory.status().due_files == 0, memory.plan()
            mine = sorted(rows_of(memory)), answers_of(memory)
        fresh = self.folder / "fresh"
        if self.sessions.exists():
            shutil.copytree(self.sessions, fresh / self.sessions.relative_to(self.state))
        with self.opened(fresh, UnreliableEmbedder(DIMS)) as memory:
            memory.sync()
            theirs = sorted(rows_of(memory)), answers_of(memory)
        assert mine == theirs, f"{mine} is not {theirs}"

    def opened(self, state: Path, embedder: UnreliableEmbedder) -> Memory:
        return Memory.open(self.root, state_dir=state, embedder=embedder, overrides=OVERRIDES)

    def text_of(self, path: str) -> str | None:
        file = self.root / path
        return file.read_bytes().decode() if file.exists() else None

    def let_the_clock_tick(self) -> None:
        """Older kernels tell the time of a change in steps of some milliseconds; two changes must
        not share one.
        """
        probe = self.folder / "probe"
        probe.touch()
        first = probe.stat().st_ctime_ns
        while probe.stat().st_ctime_ns == first:
            probe.write_bytes(b"")


def damage(file: Path, how: str, at: float) -> None:
    if how in ("gone", "log gone"):
        for suffix in ("", "-wal", "-shm") if how == "gone" else ("-wal", "-shm"):
            Path(f"{file}{suffix}").unlink(missing_ok=True)
        return
    data = bytearray(file.read_bytes())
    place = int(len(data) * at)
    if how == "flipped" and data:
        data[place] ^= 0xFF
    made = {"empty": b"", "cut": bytes(data[:place]), "foreign": b"no database at all\n" * 300}
    file.write_bytes(made.get(how, bytes(data)))


def rows_of(memory: Memory) -> Iterator[Row]:
    index = SqliteStore(memory.places.index_path)
    with index.snapshot() as reader:
        (space,) = reader.spaces() or (None,)
        for path in reader.files():
            chunks = reader.chunks_of(path)
            held = (
                reader.cached(space.identity, [chunk.hash for chunk in chunks])
                if space is not None
                else {}
            )
            for chunk in chunks:
                yield Row(
                    path=path,
                    start_line=chunk.start_line,
                    end_line=chunk.end_line,
                    text=chunk.text,
                    has_vector=chunk.hash in held,
                )
    index.close()


def answers_of(memory: Memory) -> dict[str, set[tuple[str, int, int]]]:
    """Who answers to each word; in which order depends on words of earlier texts that are not swept
    away yet.
    """
    found = {
        word: memory.search(word, freshen=False, max_results=1000, min_score=0.0) for word in WORDS
    }
    return {word: {hit[:3] for hit in answer.hits} for word, answer in found.items()}


TestMachine = Machine.TestCase
TestMachine.settings = settings(
    max_examples=1000 if ALL else 50, stateful_step_count=40 if ALL else 25, deadline=None
)
