"""What the loops about freshness share: a workspace of many small notes, random edits to it,
`clawmark watch` in a process of its own, and the question whether an index says what the files say.
"""

from __future__ import annotations

import json
import os
import random
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from straced import environment, python

from clawmark import Memory

HANG_SECONDS = 120
WORDS = (
    "heron",
    "osprey",
    "bittern",
    "dipper",
    "wagtail",
    "kingfisher",
    "wren",
    "gull",
    "plover",
    "egret",
    "stork",
)


class Notebook:
    """A workspace and the edits that are made to it; the same seed makes the same notes and the
    same edits.
    """

    def __init__(self, work: Path, files: int, rng: random.Random) -> None:
        self.root = work / "workspace"
        self.rng = rng
        self._number = 0
        months = [
            self.root / "memory" / f"y{year}" / f"m{month}"
            for year in range(8)
            for month in range(12)
        ]
        for folder in months[: max(8, files // 100)]:
            folder.mkdir(parents=True)
        self._look_at_folders()
        self._is_made = False
        for _ in range(files):
            self.create()
        self._is_made = True

    def edit(self) -> str:
        """One random edit, and its name."""
        kinds = (
            self.create,
            self.append,
            self.replace,
            self.keep_size_and_time,
            self.rename_case,
            self.move,
            self.delete,
        )
        weights = (3, 4, 3, 3, 1, 2, 2)
        if self.rng.random() < 0.04:
            self.rename_folder()
            return "rename_folder"
        kind = self.rng.choices(kinds, weights)[0]
        kind()
        return kind.__name__

    def create(self) -> None:
        self._number += 1
        folder = self.rng.choice(self.folders)
        if self._is_made and self.rng.random() < 0.03:
            folder = folder / f"new-{self._number}"
            folder.mkdir()
            self._look_at_folders()
        (folder / f"note-{self._number}.md").write_text(self._text())

    def append(self) -> None:
        with self._some_file().open("a") as file:
            file.write(self._text())

    def replace(self) -> None:
        """As editors save: a new file beside it, then a rename over it."""
        file = self._some_file()
        beside = file.with_name(f".{file.name}.tmp")
        beside.write_text(self._text())
        os.replace(beside, file)

    def keep_size_and_time(self) -> None:
        file = self._some_file()
        before = file.stat()
        data = bytearray(file.read_bytes())
        if data:
            data[self.rng.randrange(len(data))] = self.rng.choice(b"abcdefghijklmnopqrstuvwxyz")
        with file.open("r+b") as opened:
            opened.write(data)
        os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))

    def rename_case(self) -> None:
        file = self._some_file()
        file.rename(file.with_name(file.name.swapcase().replace(".MD", ".md")))

    def move(self) -> None:
        file = self._some_file()
        file.rename(self.rng.choice(self.folders) / file.name)

    def delete(self) -> None:
        self._some_file().unlink()

    def touch(self) -> None:
        os.utime(self._some_file())

    def rename_folder(self) -> None:
        self._number += 1
        folder = self.rng.choice(
            [folder for folder in self.folders if folder.parent.name != "memory"]
        )
        folder.rename(folder.with_name(f"renamed-{self._number}"))
        self._look_at_folders()

    def _look_at_folders(self) -> None:
        """Note all folders that hold notes, or may."""
        found = [Path(folder) for folder, _, _ in os.walk(self.root / "memory")]
        self.folders = sorted(folder for folder in found if folder.name != "memory")

    def _some_file(self) -> Path:
        while True:
            names = sorted(os.scandir(self.rng.choice(self.folders)), key=lambda entry: entry.name)
            files = [
                entry.path for entry in names if entry.is_file() and entry.name.endswith(".md")
            ]
            if files:
                return Path(self.rng.choice(files))

    def _text(self) -> str:
        self._number += 1
        words = " ".join(self.rng.choice(WORDS) for _ in range(self.rng.randrange(4, 60)))
        return f"# Note {self._number}\n\n{words}\n"


class Watch:
    """`clawmark watch --json` in a session of its own; closing it kills it."""

    def __init__(self, root: Path, state: Path, *, limits: Sequence[str] = ()) -> None:
        state.mkdir(parents=True, exist_ok=True)
        (state / "clawmark.json").write_text(
            '{ memorySearch: { provider: "none", sync: { watchDebounceMs: 100 } } }'
        )
        command = python(
            "-m", "clawmark", "watch", "--json", "--workspace", str(root), "--state-dir", str(state)
        )
        self.process = subprocess.Popen(
            [*limits, *command],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
        self.events: list[dict[str, Any]] = []
        self._rest = b""

    def wait_for(self, kind: str) -> dict[str, Any]:
        """The next event of a kind."""
        while True:
            for event in self.read(HANG_SECONDS):
                if event["event"] == kind:
                    return event

    def read(self, seconds: float) -> list[dict[str, Any]]:
        """The events that come within some time, as soon as there is one."""
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        data = os.read(self.process.stdout.fileno(), 1 << 20) if ready else b""
        *lines, self._rest = (self._rest + data).split(b"\n")
        events = [json.loads(line) for line in lines]
        if not ready or not data:
            raise TimeoutError(
                f"the watching process said nothing for {seconds:g} s, or died "
                f"({self.process.poll()})"
            )
        self.events += events
        return events

    def wait(self, seconds: float) -> bool:
        """Wait for something to be said, but not long."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], seconds)[0])

    def drain(self) -> None:
        """Take in what was said without waiting."""
        while self.wait(0):
            self.read(1.0)

    def descriptors(self) -> int:
        return len(os.listdir(f"/proc/{self.process.pid}/fd"))

    def cpu_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        for number in (signal.SIGCONT, signal.SIGKILL):
            self.process.send_signal(number)
        self.process.communicate()


def opened(root: Path, state: Path) -> Memory:
    return Memory.open(root, state_dir=state, config=state / "clawmark.json", background=False)


def contents(memory: Memory) -> dict[str, tuple[str, tuple[tuple[int, int, str], ...]]]:
    """All that an index holds of the text: each file's hash and passages."""
    with memory._builtin.parts.store.snapshot() as reader:
        return {
            path: (
                row.hash,
                tuple(
                    (chunk.start_line, chunk.end_line, chunk.text)
                    for chunk in reader.chunks_of(path)
                ),
            )
            for path, row in reader.files().items()
        }


def fresh_contents(
    root: Path, work: Path, config: Path
) -> dict[str, tuple[str, tuple[tuple[int, int, str], ...]]]:
    """The same of an index that is made anew."""
    state = work / "fresh"
    shutil.rmtree(state, ignore_errors=True)
    state.mkdir()
    shutil.copy(config, state / "clawmark.json")
    with opened(root, state) as memory:
        memory.sync()
        return contents(memory)


def seconds_until_equal(
    watch: Watch, root: Path, state: Path, fresh: dict[str, Any], quiet: float
) -> float:
    """How long after the last edit, made at `quiet`, the index kept by another process was the same
    as a fresh one.
    """
    began = time.monotonic()
    while time.monotonic() - began < HANG_SECONDS:
        with opened(root, state) as memory:
            is_equal = contents(memory) == fresh
        watch.drain()
        if is_equal:
            # The sync that made it so is the last one that changed something; what came after only
            # looked once more.
            done = [
                float(event["at"])
                for event in watch.events
                if event["event"] == "done" and _changed(event["report"])
            ]
            return max(0.0, done[-1] - quiet)
        watch.wait(1.0)
    return float("inf")


def _changed(report: dict[str, Any]) -> int:
    return int(report["added"] + report["updated"] + report["deleted"])
