"""A forget that is killed before any of its steps has not happened, or is finished by the next
command.
"""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from forget_scene import CANARY, KEPT, SECRET, open_memory, record, traces
from scripted_session import line

from clawmark import Memory
from clawmark.agent.forget.run import Intent
from clawmark.composition import history_folder
from clawmark.history.history import History

CHANGES = ("replace", "rename", "unlink", "rmdir")
"""The calls that change which files there are; a kill between two of them loses unsynced data
only, which the tests of power loss cover."""
CHILD = """
import os, signal, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from forget_scene import open_memory
import clawmark.composition.history.forget
from clawmark.agent.forget import run
from clawmark.store.sqlite.store import SqliteStore

def killing(whole, limit):
    def call(*arguments, **more):
        # Of the many files of a folder that is deleted, every tenth is enough.
        deleted.extend("x" if "dir_fd" in more else "")
        if "dir_fd" in more and len(deleted) % 10 != 1:
            return whole(*arguments, **more)
        if len(calls) == limit:
            os.kill(os.getpid(), signal.SIGKILL)
        calls.append(1)
        return whole(*arguments, **more)
    return call

calls, deleted = [], []
for asked in sys.stdin:
    folder, kind, value, number = asked.rstrip().split("|")
    child = os.fork()
    if child == 0:
        memory = open_memory(Path(folder))
        plan = memory.plan_forget(**{kind: value})
        for name in ("replace", "rename", "unlink", "rmdir"):
            setattr(os, name, killing(getattr(os, name), int(number)))
        SqliteStore.transaction = killing(SqliteStore.transaction, int(number))
        run.STEPS = tuple(killing(step, int(number)) for step in run.STEPS)
        memory.forget(plan)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    print(os.waitstatus_to_exitcode(status), flush=True)
"""
"""Answers each line with the exit code of a process that forgets and is killed before a change."""
SERVERS = Path(__file__).parents[1] / "servers"
LOG = "memory/2026-11-16.md"


def make_small_scene(folder: Path) -> None:
    """Make a memory whose canary is in each kind of place, without a model."""
    (folder / "agent" / "memory").mkdir(parents=True)
    (folder / "agent" / "MEMORY.md").write_text(f"# Facts\n\n- {KEPT}.\n", encoding="utf-8")
    with open_memory(folder) as memory:
        memory.append(SECRET)
        memory.append(KEPT)
        record(memory, "first")
        current = memory.workspace.read_exact("MEMORY.md")
        assert current is not None
        text = f"{current.text}- {SECRET}.\n"
        base = memory.replace("MEMORY.md", text, current.hash)
        memory.replace("MEMORY.md", f"{text}- More of it.\n", base)
        memory.append(SECRET, to="memory/safe.md")
        sessions = Path(memory.places.sessions_dir)
        sessions.mkdir(parents=True)
        for name in ("s1.jsonl", "s2.jsonl"):
            said = [line("user", f"Hello.\n\n{SECRET}"), line("assistant", KEPT)]
            (sessions / name).write_text("\n".join(said) + "\n", encoding="utf-8")
        agent = Path(history_folder(memory.places)).parent
        (agent / "proposals").mkdir()
        (agent / "proposals" / "p1.json").write_text(json.dumps({"hunk": f"+- {SECRET}"}))
        memory.sync()
        record(memory, "second")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scene")
    make_small_scene(folder / "scene")
    shutil.copytree(folder / "scene", folder / "kept")
    return folder


def restored(made: Path) -> Path:
    """Put the scene back as it was, at the same path."""
    shutil.rmtree(made / "scene")
    shutil.copytree(made / "kept", made / "scene", copy_function=shutil.copy2)
    return made / "scene"


class Killer:
    """Starts processes that forget, and kills each before one of its changes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", CHILD, str(SERVERS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def kill(self, scene: Path, kind: str, value: str, number: int) -> bool:
        """Kill before the change with this number; False if there is no such change."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.write(f"{scene}|{kind}|{value}|{number}\n")
        self.process.stdin.flush()
        code = int(self.process.stdout.readline())
        assert code in (0, -signal.SIGKILL)
        return code != 0


@pytest.fixture(scope="module")
def killer() -> Iterator[Killer]:
    made = Killer()
    with made.process:
        yield made
        assert made.process.stdin is not None
        made.process.stdin.close()


def next_command(memory: Memory, number: int) -> None:
    """Do one of the things that finish an interrupted forget."""
    match number % 3:
        case 0:
            memory.sync()
        case 1:
            memory.append("Something else happened in the harbour")
        case 2:
            memory.plan_forget("something that is nowhere")


def check_kept(scene: Path) -> None:
    """Check that nothing else was lost or doubled."""
    page = (scene / "agent" / "MEMORY.md").read_text("utf-8")
    assert page == f"# Facts\n\n- {KEPT}.\n- More of it.\n"
    assert (scene / "agent" / LOG).read_text("utf-8").count(KEPT) == 1
    for transcript in scene.rglob("s[12].jsonl"):
        records = [json.loads(one) for one in transcript.read_text("utf-8").splitlines()]
        texts = [one["message"]["content"][0]["text"] for one in records]
        assert texts == ["Hello.\n\n[forgotten]", KEPT]
    assert not list(scene.rglob("*.forget")) and not list(scene.rglob("forget.json"))


def test_a_kill_before_any_change_is_rolled_back_or_finished(made: Path, killer: Killer) -> None:
    outcomes = Counter[str]()
    number = 0
    while killer.kill(scene := restored(made), "text", CANARY, number):
        intended = list(scene.rglob("forget.json"))
        if not intended:
            outcomes["rolled back or done"] += 1
        else:
            outcomes["finished"] += 1
            assert CANARY not in intended[0].read_text("utf-8")
        with open_memory(scene) as memory:
            next_command(memory, number)
            if not intended and traces(scene):
                # Nothing had happened yet: the text is where it was.
                assert len(traces(scene)) == len(traces(made / "kept"))
                memory.forget(memory.plan_forget(CANARY))
            history = History(history_folder(memory.places))
            seen = [data for one in history.versions() for _, data in history.tree(one.version)]
            assert seen and any(KEPT.encode() in data for data in seen)
            assert memory.search(KEPT).hits
        assert traces(scene) == [], number
        check_kept(scene)
        number += 1
    assert outcomes["finished"] > 25 and outcomes["rolled back or done"] >= 1


def test_a_killed_forget_of_a_session_is_finished(made: Path, killer: Killer) -> None:
    number, killed = 0, 0
    while killer.kill(scene := restored(made), "session", "s1", number):
        killed += 1
        is_intended = bool(list(scene.rglob("forget.json")))
        with open_memory(scene) as memory:
            next_command(memory, number)
            if not is_intended and list(scene.rglob("s1.jsonl")):
                memory.forget(memory.plan_forget(session="s1"))
        assert not list(scene.rglob("s1.jsonl")) and list(scene.rglob("s2.jsonl"))
        assert not list(scene.rglob("forget.json"))
        number += 7
    assert killed > 3


def test_a_damaged_intent_is_reported_and_set_aside(
    made: Path, caplog: pytest.LogCaptureFixture
) -> None:
    scene = restored(made)
    with open_memory(scene) as memory:
        intent = Path(history_folder(memory.places)).parent / "forget.json"
        intent.write_text("{")
        with caplog.at_level("WARNING", "clawmark.forget"):
            memory.sync()
        assert "is damaged" in caplog.text
    assert not intent.exists()


def test_an_intent_that_names_other_files_does_not_delete_them(made: Path) -> None:
    scene = restored(made)
    others = [scene / "mine.txt", scene / "agent" / "notes.txt"]
    for file in others:
        file.write_text("mine")
    with open_memory(scene) as memory:
        intent = Path(history_folder(memory.places)).parent / "forget.json"
        fields: dict[str, object] = {name: [] for name in Intent._fields}
        paths = [str(file) for file in others]
        changed = {"keeps_transcripts": False, "copies": paths, "transcripts": paths}
        intent.write_text(json.dumps(fields | changed))
        memory.sync()
    assert not intent.exists() and all(file.exists() for file in others)
