"""Writers of a space that are killed: what was acknowledged is there once, and nothing is half."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest
from team_scene import make_spaces, open_direct, passages_of

from clawmark.backends.team.base import Published
from clawmark.backends.team.direct import DirectSpaces
from clawmark.model.values import Query

LOOKS = 30
CHILD = """
import os, signal, sys
import psycopg
sys.path.insert(0, sys.argv[1])
from team_scene import open_direct
from clawmark.backends.team.base import Published

uri, name, die_at = sys.argv[2:5]
spaces = open_direct(uri, name)
spaces.append("team", "The first entry of " + name + ".", key="first")

def count(method):
    def counted(*args, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return method(*args, **options)
    return counted

left = int(die_at)
if left:
    for part in ("execute", "commit"):
        setattr(psycopg.Connection, part, count(getattr(psycopg.Connection, part)))
    psycopg.Cursor.executemany = count(psycopg.Cursor.executemany)
number = 0
while True:
    number += 1
    text = f"Entry {number} of {name} about the heron."
    spaces.append("team", text, key=str(number))
    print("entry", number, flush=True)
    files = [Published(f"memory/{one}.md", f"Draft {number} of {one}.", str(number))
             for one in "ab"]
    spaces.publish("team", files)
    print("files", number, flush=True)
"""


def command(uri: str, name: str, die_at: int = 0) -> list[str]:
    scenes = Path(__file__).parents[1] / "servers"
    return [sys.executable, "-c", CHILD, str(scenes), uri, name, str(die_at)]


def acknowledged(output: str) -> tuple[int, int]:
    """Return the last entry and the last draft that the writer was promised."""
    lines = [line.split() for line in output.splitlines()]
    last = {"entry": 0, "files": 0} | {kind: int(number) for kind, number in lines}
    return last["entry"], last["files"]


def check(uri: str, name: str, entry: int, draft: int) -> None:
    """Compare what a killed writer was promised with what is there, and repeat its last call."""
    with closing(open_direct(uri, name)) as spaces:
        entries = [
            line.partition(f" {name}: ")[2]
            for document in spaces.changes("team").documents
            if not document.author
            for line in (document.text or "").split("\n")
            if f" {name}: Entry" in line
        ]
        texts = [f"Entry {number} of {name} about the heron." for number in range(1, entry + 2)]
        assert entries in (texts[:-1], texts), "each entry once, in order"
        published = spaces.published("team")
        assert published in (
            {"memory/a.md": str(draft), "memory/b.md": str(draft)} if draft else {},
            {"memory/a.md": str(draft + 1), "memory/b.md": str(draft + 1)},
        ), "both files of a call, or neither"
        if entry:
            again = spaces.append("team", texts[entry - 1], key=str(entry))
            assert again.is_repeated
        later = spaces.append("team", texts[entry], key=str(entry + 1))
        assert later.is_repeated == (entries == texts)
        spaces.publish("team", [Published("memory/a.md", "The end.", "end")])
        assert spaces.search(Query("heron", min_score=0.0)).hits
    check_index(uri, name)


def check_index(uri: str, name: str) -> None:
    """Check that the index holds what the documents say, and nothing else."""
    with closing(open_direct(uri, name)) as spaces:
        documents = spaces.changes("team", 0, 1000).documents
        with spaces._sessions.store("team") as store, store.snapshot() as snapshot:
            assert snapshot.integrity_problems() == []
            assert set(snapshot.files()) == {one.path for one in documents if one.text}
            for document in documents:
                indexed = snapshot.chunks_of(document.path)
                assert [(one.start_line, one.end_line, one.hash) for one in indexed] == [
                    (one.start_line, one.end_line, one.hash) for one in passages_of(document)
                ]
            (space,) = snapshot.spaces()
            assert (space.ready, snapshot.count_due(space.id)) == (True, 0)


@pytest.mark.parametrize("die_at", [2, 7, 12, 17, 22, 27, 32, 38, 47, 58, 70, 83])
def test_a_writer_that_dies_at_any_statement_leaves_all_or_nothing(
    postgres_uri: str, die_at: int
) -> None:
    make_spaces(postgres_uri)
    ran = subprocess.run(
        command(postgres_uri, "ada", die_at), capture_output=True, text=True, check=False
    )
    assert ran.returncode == -signal.SIGKILL, ran.stderr
    check(postgres_uri, "ada", *acknowledged(ran.stdout))


def test_writers_that_are_killed_at_random_lose_and_double_nothing(postgres_uri: str) -> None:
    make_spaces(postgres_uri)
    with closing(open_direct(postgres_uri, "ben")) as reader:
        running = {
            name: subprocess.Popen(command(postgres_uri, name), stdout=subprocess.PIPE, text=True)
            for name in ("ada", "cy")
        }
        try:
            outputs: dict[str, list[str]] = {name: [] for name in running}
            for name, wanted in (("ada", 9), ("cy", 14)):
                pipe = running[name].stdout
                assert pipe is not None
                for _ in range(wanted):
                    outputs[name].append(pipe.readline())
                _look(reader)
                running[name].kill()
                outputs[name].append(pipe.read())
        finally:
            for process in running.values():
                process.kill()
                process.wait()
                if process.stdout is not None:
                    process.stdout.close()
    for name in running:
        check(postgres_uri, name, *acknowledged("".join(outputs[name])))


def _look(reader: DirectSpaces) -> None:
    """Check that a reader sees both drafts of a call at all times."""
    for _ in range(LOOKS):
        seen: dict[str, set[str]] = {}
        for one in reader.changes("team").documents:
            if one.author and one.text:
                seen.setdefault(one.author, set()).add(one.text[: one.text.index(" of ")])
        assert all(len(drafts) == 1 for drafts in seen.values()), seen
