"""Building the index of an earlier day: processes that build it at once, and a process that is
killed at each step."""

from __future__ import annotations

import signal
import subprocess
import sys
from datetime import datetime
from pathlib import Path

import pytest
from as_of_scene import Scene, answers, live_a_month

from clawmark.testing import HashingEmbedder

SERVERS = Path(__file__).parents[1] / "servers"
DAY = "2026-02-04"
QUESTION = "Which database does heron have?"
CHILD = """
import os, signal, sys
from datetime import UTC, datetime
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from as_of_scene import Scene, answers
from clawmark.backends.as_of import index, kept
from clawmark.backends.builtin import BuiltinBackend
from clawmark.store.sqlite.transaction import SqliteTransaction
from clawmark.testing import HashingEmbedder

folder, day, question, step = Path(sys.argv[2]), *sys.argv[3:]

class Recording(HashingEmbedder):
    def embed_texts(self, texts):
        with open(folder / "embedded.txt", "a", encoding="utf-8") as file:
            file.writelines(text.replace(chr(10), " ") + chr(10) for text in texts)
        return super().embed_texts(texts)

def die_at(owner, name, call=1):
    whole, calls = getattr(owner, name), [0]
    def killed(*arguments, **options):
        calls[0] += 1
        if calls[0] == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return whole(*arguments, **options)
    setattr(owner, name, killed)

steps = {
    "before the text": (BuiltinBackend, "run_sync", 1),
    "in the text": (SqliteTransaction, "put_file", 3),
    "before the vectors": (BuiltinBackend, "run_sync", 2),
    "in the vectors": (SqliteTransaction, "put_vectors", 1),
    "after the vectors": (index, "_copy_vectors", 2),
    "before the oldest are removed": (kept, "remove_old", 1),
}
if step in steps:
    die_at(*steps[step])
scene = Scene(folder, Recording())
scene.now = datetime(2026, 3, 20, 12, tzinfo=UTC)
print(repr(answers(scene.memory, question, day)))
scene.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    scene = Scene(tmp_path, HashingEmbedder())
    for _ in live_a_month(scene, 5):
        pass
    scene.close()
    for file in (tmp_path / "state" / "memory").iterdir():
        file.unlink()  # so that nothing is in the cache
    return tmp_path


def child(folder: Path, step: str = "") -> subprocess.Popen[str]:
    words = [str(SERVERS), str(folder), DAY, QUESTION, step]
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def expected(folder: Path) -> str:
    """Return the answer of a new index of that day's files."""
    other = folder / "other"
    scene = Scene(other, HashingEmbedder())
    for file in (folder / "days" / DAY).rglob("*.md"):
        scene.write(str(file.relative_to(folder / "days" / DAY)), file.read_text("utf-8"))
    scene.now = datetime.fromisoformat(f"{DAY}T20:00:00+00:00")
    scene.memory.sync()
    found = answers(scene.memory, QUESTION)
    scene.close()
    assert found
    return repr(found)


def embedded(folder: Path) -> list[str]:
    return (folder / "embedded.txt").read_text("utf-8").splitlines()


def test_processes_that_ask_for_the_same_day_at_once_build_one_index(folder: Path) -> None:
    children = [child(folder) for _ in range(3)]
    outputs = [one.communicate() for one in children]
    assert [one.returncode for one in children] == [0, 0, 0], outputs
    assert {out.strip() for out, _ in outputs} == {expected(folder)}
    texts = embedded(folder)
    assert texts and len(texts) == len(set(texts)), "no text was embedded twice"


@pytest.mark.parametrize(
    "step",
    [
        "before the text",
        "in the text",
        "before the vectors",
        "in the vectors",
        "after the vectors",
        "before the oldest are removed",
    ],
)
def test_a_build_that_is_killed_is_finished_by_the_next_question(folder: Path, step: str) -> None:
    dead = child(folder, step)
    output = dead.communicate()
    assert dead.returncode == -signal.SIGKILL, output
    before = embedded(folder) if step == "after the vectors" else []
    again = child(folder)
    out, err = again.communicate()
    assert again.returncode == 0, err
    assert out.strip() == expected(folder)
    if before:
        assert embedded(folder) == before, "what was embedded before the kill is not lost"
