"""Over random writes by agents, the user and other programs: an undo gives back the bytes that were
there before, or removes exactly what was written, or changes nothing and says so."""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from clawmark.engine.versions.recorder import VersionRecorder
from clawmark.engine.versions.workspace_history import WorkspaceHistory
from clawmark.history.history import History
from clawmark.history.journal import Journal
from clawmark.model.errors import NothingToUndo
from clawmark.model.provenance import BY_USER, Origin
from clawmark.workspace import Workspace
from clawmark.workspace.versions import KEPT
from clawmark.workspace.write import digest

AGENT = Origin("agent", "tool", "agent", session="agent:main:main")
PATHS = ("MEMORY.md", "memory/2026-02-24.md", "memory/projects/ferry.md")
LINES = st.sampled_from(["- one", "- two", "zwei 🚢", "naïve café", "", "  - inner", "# Day"])
TEXTS = st.lists(LINES, min_size=1, max_size=3).map("\n".join).filter(lambda text: text.strip())
FILES = st.builds(
    lambda lines, end, last: (end.join(lines) + last).encode(),
    st.lists(LINES, max_size=4),
    st.sampled_from(["\n", "\r\n"]),
    st.sampled_from(["", "\n", "\r\n"]),
) | st.binary(max_size=12).filter(lambda data: not data.startswith((b"\xff\xfe", b"\xfe\xff")))


class Step(NamedTuple):
    """One thing that happens to a file."""

    what: str
    path: str
    text: str = ""
    data: bytes = b""
    header: str = ""


WRITERS = ("agent appends", "agent replaces", "user appends", "user replaces")
STEPS = st.lists(
    st.builds(
        Step,
        what=st.sampled_from(WRITERS),
        path=st.sampled_from(PATHS),
        text=TEXTS,
        header=st.sampled_from(["", "# Day\n\n"]),
    )
    | st.builds(Step, what=st.just("editor saves"), path=st.sampled_from(PATHS), data=FILES)
    | st.builds(Step, what=st.just("undo"), path=st.just("")),
    min_size=1,
    max_size=10,
)


class Write(NamedTuple):
    """A write of an agent, with the file around it."""

    path: str
    before: bytes | None
    after: bytes
    entry: bytes
    """What an append added, without what comes before it; empty for a replacement."""


class Scene:
    """A workspace, its journal, and the writes of the agent that were not taken back."""

    def __init__(self, folder: Path, *, records: bool = False) -> None:
        self.root = folder / "workspace"
        self.root.mkdir()
        state = folder / "state"
        self.journal = Journal(str(state / "journal.jsonl"), lambda: datetime.now(UTC))
        self.workspace = Workspace(
            str(self.root), lock_dir=str(state / "locks"), journal=lambda: self.journal
        )
        history = History(str(state / "history.git"))
        recorder = VersionRecorder(self.workspace, history.folder, lambda: history)
        self.history = WorkspaceHistory(
            workspace=self.workspace,
            history=history,
            journal=self.journal,
            recorder=recorder if records else None,
            now=lambda: datetime.now(UTC),
        )
        self.writes: list[Write] = []

    def content(self, path: str) -> bytes | None:
        file = self.root / path
        return file.read_bytes() if file.exists() else None

    def carry_out(self, step: Step) -> None:
        before = self.content(step.path)
        origin = AGENT if step.what.startswith("agent") else BY_USER
        if step.what == "editor saves":
            (self.root / step.path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / step.path).write_bytes(step.data)
            return
        if step.what.endswith("appends"):
            self.workspace.append(step.path, step.text, header=step.header, origin=origin)
        else:
            base = "" if before is None else digest(before)
            self.workspace.replace(step.path, step.text, base, origin=origin)
        if origin is AGENT:
            after = self.content(step.path)
            assert after is not None
            if after == before:
                return  # a write that changes nothing is not taken back
            is_append = step.what == "agent appends"
            entry = step.text.encode().removesuffix(b"\n") + b"\n" if is_append else b""
            self.writes.append(Write(step.path, before, after, entry))

    def undo(self) -> None:
        contents = {path: self.content(path) for path in PATHS}
        if not self.writes:
            try:
                self.history.undo()
            except NothingToUndo:
                assert contents == {path: self.content(path) for path in PATHS}
                return
            raise AssertionError("there was nothing to take back")
        write = self.writes[-1]
        current = contents[write.path]
        try:
            self.history.undo()
        except NothingToUndo as refusal:
            event("refused")
            assert contents == {path: self.content(path) for path in PATHS}, "nothing is written"
            is_lost = not write.entry and "is not kept" in refusal.message
            assert current != write.after or (is_lost and self.replaced(write.path) > KEPT)
            self.writes.pop()
            self.forget_last()
            return
        self.writes.pop()
        now = self.content(write.path)
        if current == write.after:
            event("exact")
            assert now == write.before, "the file is what it was before the write"
        else:
            event("removed from a changed file")
            assert current is not None and now is not None
            assert is_without(current, now, write.entry)
        others = {path: self.content(path) for path in PATHS if path != write.path}
        assert others == {path: contents[path] for path in others}

    def replaced(self, path: str) -> int:
        """How many texts of a file were replaced so far."""
        return sum(
            1 for one in self.journal.records() if one.path == path and not one.written.entry
        )

    def forget_last(self) -> None:
        """Remove the write that cannot be taken back from the journal."""
        undone = {one.undoes for one in self.journal.records() if one.undoes}
        last = [
            one for one in self.journal.records() if one.origin == AGENT and one.id not in undone
        ][-1]
        self.journal.rewrite(lambda record: record.id != last.id)


def is_without(before: bytes, after: bytes, entry: bytes) -> bool:
    """Whether exactly these bytes were removed, wherever they stood."""
    places = (at for at in range(len(before)) if before.startswith(entry, at))
    return any(before[:at] + before[at + len(entry) :] == after for at in places)


@settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(STEPS)
def test_an_undo_is_byte_exact(steps: list[Step]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder))
        for step in steps:
            if step.what == "undo":
                scene.undo()
            else:
                scene.carry_out(step)
        while scene.writes:
            scene.undo()


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    first=FILES | st.none(),
    writes=st.lists(
        st.tuples(st.sampled_from(["agent appends", "agent replaces"]), TEXTS),
        min_size=1,
        max_size=KEPT,
    ),
)
def test_writes_of_an_agent_alone_are_taken_back_to_the_first_byte(
    first: bytes | None, writes: list[tuple[str, str]]
) -> None:
    path = "memory/note.md"
    with tempfile.TemporaryDirectory() as folder:
        scene = Scene(Path(folder), records=True)
        if first is not None:
            scene.carry_out(Step("editor saves", path, data=first))
        for what, text in writes:
            scene.carry_out(Step(what, path, text, header="# Note\n\n"))
        for _ in scene.writes:
            scene.history.undo()
        assert scene.content(path) == first
