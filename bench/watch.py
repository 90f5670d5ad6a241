"""What one edited file among many costs a process that keeps the index fresh, beside a bare look at
the tree.

    python bench/watch.py [--files 10000] [--rounds 20] [--providers none,static]

In one process, taking turns: a bare scan (`os.scandir` and a `stat` of each file, nothing kept),
then one note is edited and `Memory.sync()` finds, reads and indexes it. CPU of the process, user
and system, all threads; medians of the rounds. A sync that has indexed a change also records a
version of the files. Its cost is timed in the same call and shown on its own; the limit is for the
rest. Other providers may be named; their rows have no
limit, because most of a sync is then the model's own work on the one note. Goes out: a table, and
`bench/results/watch.json`."""

from __future__ import annotations

import argparse
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import table, verdict, write_result

from clawmark import Memory
from clawmark.backends.builtin import BuiltinBackend
from clawmark.model.reports import SyncReport

LIMIT = 3.0
WITH_LIMIT = ("none", "static")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--providers", default="none,static")
    given = parser.parse_args()
    rows = [("provider", "bare scan ms", "sync ms", "ratio", "limit", "", "recording ms")]
    results: dict[str, dict[str, Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        notes = make_notes(Path(folder) / "workspace", given.files)
        for provider in given.providers.split(","):
            bare, sync, recording, embedder = measure(Path(folder), notes, provider, given.rounds)
            ratio = sync / bare
            results[provider] = {
                "embedder": embedder,
                "bare_ms": bare,
                "sync_ms": sync,
                "ratio": round(ratio, 2),
                "recording_ms": recording,
            }
            limit = LIMIT if provider in WITH_LIMIT else 0.0
            judged = verdict(ratio, limit, at_least=False) if limit else ""
            rows.append(
                (
                    provider,
                    f"{bare:.1f}",
                    f"{sync:.1f}",
                    f"{ratio:.2f}",
                    f"{limit:g}" if limit else "",
                    judged,
                    f"{recording:.1f}",
                )
            )
    print(table(rows))
    body = {
        "unit": "CPU milliseconds",
        "files": given.files,
        "rounds": given.rounds,
        "limit": LIMIT,
        "results": results,
    }
    write_result("watch", "python bench/watch.py", sys.executable, body)
    if any(results[name]["ratio"] > LIMIT for name in WITH_LIMIT if name in results):
        sys.exit(1)


def make_notes(root: Path, files: int) -> list[Path]:
    """Short daily notes in a tree of folders."""
    rng = random.Random(1)
    words = [f"word{number}" for number in range(5000)]
    notes = []
    for number in range(files):
        note = root / "memory" / f"y{number % 20}" / f"m{number % 12}" / f"note-{number}.md"
        note.parent.mkdir(parents=True, exist_ok=True)
        note.write_text(f"# Note {number}\n\n{' '.join(rng.choices(words, k=60))}\n")
        notes.append(note)
    return notes


def measure(
    folder: Path, notes: list[Path], provider: str, rounds: int
) -> tuple[float, float, float, str]:
    """The medians of a bare scan, of a sync after one edit, and of the recording that follows, in
    CPU milliseconds.
    """
    bare, syncs, recordings = [], [], []
    recording_ms = watch_recording()
    rng = random.Random(2)
    root = folder / "workspace"
    options = {"provider": provider, "background": False}
    with Memory.open(root, state_dir=folder / f"state-{provider}", **options) as memory:  # type: ignore[arg-type]
        memory.sync()
        for number in range(rounds + 2):
            note = rng.choice(notes)
            scan_ms = cpu(lambda: scan(str(root)))
            note.write_text(
                f"# Edited {number}\n\nThe heron came back for {provider}: {rng.random()}.\n"
            )
            reports: list[SyncReport] = []
            recording_ms.clear()
            sync_ms = cpu(lambda: reports.append(memory.sync()))  # noqa: B023 - called at once
            assert reports[0].updated == 1
            if number >= 2:  # the first rounds load what every later one has
                bare.append(scan_ms)
                syncs.append(sync_ms - sum(recording_ms))
                recordings.append(sum(recording_ms))
        embedder = memory.status().embedder
    medians = [round(statistics.median(values), 2) for values in (bare, syncs, recordings)]
    return medians[0], medians[1], medians[2], embedder


def watch_recording() -> list[float]:
    """A list that gets the CPU milliseconds of every recording from now on."""
    plain, spent = BuiltinBackend.record, list[float]()

    def record(self: BuiltinBackend, *args: Any) -> None:
        spent.append(cpu(lambda: plain(self, *args)))

    BuiltinBackend.record = record  # type: ignore[method-assign]
    return spent


def scan(folder: str) -> int:
    """Every file of a tree, and what the system knows about it."""
    files = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                files += scan(entry.path)
            else:
                entry.stat(follow_symlinks=False)
                files += 1
    return files


def cpu(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return 1000 * (time.process_time() - began)


if __name__ == "__main__":
    main()
