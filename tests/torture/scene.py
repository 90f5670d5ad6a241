"""A workspace, its state folder, and real processes that work on them: what the loops about the
index are played on.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from straced import environment

SIDECARS = ("-wal", "-shm", "-journal")
PATIENCE = 300
"""Seconds after which a process that should have ended is taken for one that hangs."""

_SYLLABLES = (
    "ba",
    "ce",
    "di",
    "fo",
    "gu",
    "ha",
    "je",
    "ki",
    "lo",
    "mu",
    "na",
    "pe",
    "ri",
    "so",
    "tu",
    "ve",
    "wi",
    "xo",
    "zy",
)


class Ended(NamedTuple):
    """How a process ended."""

    code: int
    out: str
    err: str


class Scene:
    """One memory on disk; provider and other settings come from its own configuration file."""

    def __init__(self, work: Path, provider: str = "none", **settings: object) -> None:
        self.workspace, self.state = work / "ws", work / "state"
        (self.workspace / "memory").mkdir(parents=True)
        self.state.mkdir()
        config = {
            "memorySearch": {"provider": provider, **settings},
            "agents": {"list": [{"id": "main"}]},
        }
        config["agents"]["list"][0]["workspace"] = str(self.workspace)  # type: ignore[index]
        (self.state / "clawmark.json").write_text(json.dumps(config), encoding="utf-8")
        self.index = self.state / "memory" / "main.sqlite"

    # --- files ------------------------------------------------------------------------------------

    def note(self, name: str, text: str) -> Path:
        """Write a memory file."""
        path = self.workspace / "memory" / f"{name}.md"
        path.write_text(text, encoding="utf-8")
        return path

    def write_notes(self, count: int, seed: int, paragraphs: int = 6) -> list[str]:
        """Notes of words that mean nothing, with a heading each; questions about some of them come
        back.
        """
        chance = random.Random(seed)
        words = ["".join(chance.choices(_SYLLABLES, k=chance.randrange(2, 5))) for _ in range(2000)]
        queries = []
        for number in range(count):
            text = [f"# Note {number} about {chance.choice(words)}"]
            text += [" ".join(chance.choices(words, k=60)) + "." for _ in range(paragraphs)]
            self.note(f"note-{number:05}", "\n\n".join(text) + "\n")
            queries.append(" ".join(chance.sample(text[-1].rstrip(".").split(), 3)))
        return queries

    def index_bytes(self) -> int:
        """What the index takes on disk now, log included; what was set aside is not part of it."""
        return sum(_size(Path(f"{self.index}{suffix}")) for suffix in ("", *SIDECARS))

    def set_aside(self) -> list[str]:
        """The names of indexes that were set aside."""
        kinds = (".corrupt-", ".newer-", ".foreign-")
        names = (path.name for path in self.index.parent.iterdir())
        return sorted(
            name
            for name in names
            if any(kind in name for kind in kinds) and not name.endswith(SIDECARS)
        )

    # --- processes --------------------------------------------------------------------------------

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the command line tool."""
        return self._popen(
            [sys.executable, "-m", "clawmark", *words, "--state-dir", str(self.state)]
        )

    def start_script(self, code: str, *words: str) -> subprocess.Popen[str]:
        """Start a small program over the library; it is given the state folder and the words."""
        return self._popen([sys.executable, "-c", code, str(self.state), *words])

    def _popen(self, command: Sequence[str]) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen(
            command,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            env=environment(),
            cwd=self.state,
        )

    def run(self, *words: str) -> Ended:
        """Run the command line tool to its end."""
        return finish(self.start(*words))

    def answers(self, queries: Sequence[str]) -> list[dict[str, Any]]:
        """What one warm process answers to the queries, in their order."""
        process = self.start("search", "--batch", "-")
        ended = finish(process, "".join(f"{query}\n" for query in queries))
        if ended.code:
            raise AssertionError(f"search --batch ended with {ended.code}: {ended.err[-500:]}")
        return [json.loads(line) for line in ended.out.splitlines()]


def finish(
    process: subprocess.Popen[str], given: str | None = None, patience: float = PATIENCE
) -> Ended:
    """Wait for the end of a process and hear what it said."""
    try:
        out, err = process.communicate(given, timeout=patience)
    except subprocess.TimeoutExpired:
        process.kill()
        out, err = process.communicate()
        return Ended(-999, out, f"{err}\nstill running after {patience:.0f} seconds")
    return Ended(process.returncode, out, err)


def is_clean(ended: Ended) -> bool:
    """Whether a process ended well and without a traceback."""
    return ended.code == 0 and "Traceback" not in ended.err


def essence(answer: dict[str, Any]) -> list[tuple[str, int, int, float, str]]:
    """What an answer says, to be compared: where, how well, and the words."""
    return [
        (hit["path"], hit["startLine"], hit["endLine"], round(hit["score"], 6), hit["snippet"])
        for hit in answer.get("results", answer.get("hits", []))
    ]


def is_honest(answer: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Whether an answer is right, or says that it is not complete."""
    return (
        essence(answer) == essence(expected)
        or bool(answer.get("dueFiles"))
        or answer.get("degraded") is not None
    )


def moments(chance: random.Random, longest: float) -> Iterator[float]:
    """Random waits, from none to a little more than something takes."""
    while True:
        yield chance.random() * longest * 1.1


def timed(scene: Scene, *words: str) -> tuple[Ended, float]:
    """Run a command and say how long it took."""
    began = time.monotonic()
    ended = scene.run(*words)
    return ended, time.monotonic() - began


def _size(path: Path) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
