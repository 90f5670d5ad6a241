"""A restore or an undo that is killed at any step is done or not done, and loses nothing.

A forked process kills itself before its n-th step: a write, a sync, or the opening, renaming or
removing of a file. What it left is checked, and the same call is made again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from clawmark import Memory
from clawmark.engine.versions.workspace_history import WorkspaceHistory
from clawmark.model.errors import NothingToUndo
from clawmark.model.provenance import Origin

AGENT = Origin("agent", "tool", "agent", session="agent:main:main")
NOTE = "memory/note.md"
OLD, NEW = b"# Note\r\n\r\nold, without an end", b"# Note\n\nnew\n"
EVENTS = frozenset(("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate"))
MOST_STEPS = 1000


class Case(NamedTuple):
    """What is called, and the file before and after it."""

    prepare: Callable[[Memory, Path], None]
    call: Callable[[WorkspaceHistory], object]
    before: bytes | None
    after: bytes | None


def _append(memory: Memory, file: Path) -> None:
    file.write_bytes(OLD)
    memory.history.record()
    memory.workspace.append(NOTE, "- by the agent", origin=AGENT)


def _create(memory: Memory, file: Path) -> None:
    memory.workspace.append(NOTE, "- by the agent", header="# Head\n\n", origin=AGENT)


def _replace(memory: Memory, file: Path) -> None:
    file.write_bytes(b"# Old\n")
    current = memory.workspace.read_exact(NOTE)
    assert current is not None
    memory.workspace.replace(NOTE, NEW.decode(), current.hash, origin=AGENT)


def _change(memory: Memory, file: Path) -> None:
    file.write_bytes(OLD)
    memory.history.record()
    file.write_bytes(NEW)


def _delete(memory: Memory, file: Path) -> None:
    _change(memory, file)
    file.unlink()


def _undo(history: WorkspaceHistory) -> object:
    return history.undo()


def _restore(history: WorkspaceHistory) -> object:
    oldest = list(history._history.versions())[-1]
    return history.restore(NOTE, oldest.version.id)


CASES = {
    "undo of an append": Case(_append, _undo, OLD + b"\n- by the agent\n", OLD),
    "undo of a new file": Case(_create, _undo, b"# Head\n\n- by the agent\n", None),
    "undo of a replacement": Case(_replace, _undo, NEW, b"# Old\n"),
    "restore of a changed file": Case(_change, _restore, NEW, OLD),
    "restore of a deleted file": Case(_delete, _restore, None, OLD),
}


class Scene:
    """A workspace and its state, which are put back as they were for each kill."""

    def __init__(self, folder: Path, case: Case) -> None:
        self.folder, self.case = folder / "place", case
        self.file = self.folder / "ws" / NOTE
        self.file.parent.mkdir(parents=True)
        with self.opened() as memory:
            case.prepare(memory, self.file)
        self._template = folder / "template"
        shutil.copytree(self.folder, self._template)

    def opened(self) -> Memory:
        return Memory.open(
            self.folder / "ws", state_dir=self.folder / "state", provider="none", background=False
        )

    def reset(self) -> None:
        shutil.rmtree(self.folder)
        shutil.copytree(self._template, self.folder)

    @property
    def content(self) -> bytes | None:
        return self.file.read_bytes() if self.file.exists() else None

    def call(self) -> None:
        with self.opened() as memory:
            self.case.call(memory.history)


def run_killed(scene: Scene, step: int) -> bool:
    """Make the call in a forked process that dies before its step; return whether it died."""
    child = os.fork()
    if child == 0:
        try:
            _die_before(step)
            scene.call()
            os._exit(0)
        except BaseException as error:  # boundary of the process: it must not run the tests
            os.write(2, f"{type(error).__name__}: {error}\n".encode())
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal.SIGKILL
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


def _die_before(step: int) -> None:
    left = [step]

    def count() -> None:
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def counted(call: Callable[..., object]) -> Callable[..., object]:
        def run(*arguments: object, **named: object) -> object:
            count()
            return call(*arguments, **named)

        return run

    os.write, os.fsync = counted(os.write), counted(os.fsync)  # type: ignore[assignment]
    sys.addaudithook(lambda event, _: count() if event in EVENTS else None)


@pytest.mark.parametrize("name", CASES)
def test_a_kill_at_any_step_loses_nothing_and_the_next_call_finishes(
    name: str, tmp_path: Path
) -> None:
    case = CASES[name]
    scene = Scene(tmp_path, case)
    scene.call()  # everything is imported before the first fork
    assert scene.content == case.after
    outcomes = set[bytes | None]()
    for step in range(1, MOST_STEPS):
        scene.reset()
        if not run_killed(scene, step):
            break
        outcomes.add(scene.content)
        check_after_kill(scene, step)
    assert step > 10
    assert outcomes == {case.before, case.after}, "some kills come before the write, some after it"


def check_after_kill(scene: Scene, step: int) -> None:
    case = scene.case
    assert scene.content in (case.before, case.after), step
    with scene.opened() as memory:
        if scene.content == case.after and case.before is not None:
            assert case.before in _kept(memory), f"{step}: what was replaced is lost"
        case.call(memory.history)
        assert scene.content == case.after, step
        assert os.listdir(scene.file.parent) in ([], [scene.file.name]), step
        undone = [one for one in memory.history._journal.records() if one.undoes and one.done]
        assert len(undone) == (1 if case.call is _undo else 0), step
        last = list(memory.history._journal.records())[-1]
        assert last.done, step
        assert next(memory.history.versions(), None) is not None, f"{step}: the history is sound"
        if case.call is _undo:
            with pytest.raises(NothingToUndo):
                memory.history.undo()


def _kept(memory: Memory) -> list[bytes | None]:
    """Return every text of the note that can be brought back."""
    history = memory.history._history
    recorded = [history.read(one.version, NOTE) for one in history.versions(NOTE)]
    return [*recorded, *memory.workspace.kept_texts(NOTE)]
