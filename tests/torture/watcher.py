"""I-13: the watcher finds every change, or says that it cannot and polls.

Many files, random edits of every kind in bursts, made while a real `clawmark watch` keeps the
index; after each burst the index has to become the same as one that is made anew. Once as it is,
once with a system that has 5 watches (a user namespace has limits of its own), once with one that
has none, and once with more events at once than the system can queue. The debounce is 100 ms here;
people have 1,500, so their index follows that much later than `slowest_seconds` says."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from frame import Outcome
from notebook import HANG_SECONDS, Notebook, Watch, fresh_contents, seconds_until_equal

from clawmark.workspace.watching import QUICK_SECONDS

QUEUE = Path("/proc/sys/fs/inotify/max_queued_events")
"""How many events the system keeps for a process that does not read them."""
MOST_DESCRIPTORS = 20
IDLE_SECONDS = 60


def run(work: Path, full: bool, seed: int) -> Outcome:
    if sys.platform != "linux":
        return Outcome(0, 0, {}, skipped="needs Linux and its inotify limits")
    files, bursts, edits = (10_000, 20, 50) if full else (300, 2, 25)
    complaints: list[str] = []
    facts: dict[str, object] = {"files": files, "edits": bursts * edits}
    passed = 0
    limited = _limits(work)
    for name, limits in (
        ("inotify", ()),
        ("5 watches", limited(5)),
        ("no instance", limited(0)),
        ("overflow", ()),
    ):
        if limits is None:
            facts[name] = "not tried: no user namespace of our own here"
            continue
        folder = work / name.replace(" ", "-")
        folder.mkdir(parents=True)
        found, told = _watched(
            folder, name, limits, files, bursts, edits, random.Random(seed), full
        )
        facts[name] = found
        passed += bursts - len(told)
        complaints += told
        shutil.rmtree(folder)
    return Outcome(passed, len(complaints), facts, tuple(complaints))


def _limits(work: Path) -> Any:
    """Words to put before a command to run it with so many inotify watches, or without an instance
    for 0.
    """
    tried = (
        subprocess.run(["unshare", "-r", "true"], capture_output=True, check=False)
        if shutil.which("unshare")
        else None
    )

    def words(most: int) -> Sequence[str] | None:
        if tried is None or tried.returncode != 0:
            return None
        setting = f"max_inotify_{'watches' if most else 'instances'}"
        return [
            "unshare",
            "-r",
            "sh",
            "-c",
            f'echo {most} > /proc/sys/user/{setting}; exec "$@"',
            "sh",
        ]

    return words


def _watched(
    folder: Path,
    name: str,
    limits: Sequence[str],
    files: int,
    bursts: int,
    edits: int,
    rng: random.Random,
    full: bool,
) -> tuple[dict[str, object], list[str]]:
    notebook = Notebook(folder, files, rng)
    state = folder / "state"
    watch = Watch(notebook.root, state, limits=limits)
    complaints: list[str] = []
    took: list[float] = []
    kinds: Counter[str] = Counter()
    try:
        started = watch.wait_for("started")
        watch.wait_for("done")
        if bool(started["pollsBecause"]) != bool(limits):
            complaints.append(f"{name}: polls because {started['pollsBecause']!r}")
        for burst in range(bursts):
            if name == "overflow":
                late = _flood(watch, notebook)
            for _ in range(edits):
                kinds[notebook.edit()] += 1
            quiet = time.time()
            fresh = fresh_contents(notebook.root, folder, state / "clawmark.json")
            took.append(seconds_until_equal(watch, notebook.root, state, fresh, quiet))
            if took[-1] == float("inf"):
                complaints.append(
                    f"{name}, burst {burst + 1}: the index did not become what the files are"
                )
                break
            if name == "overflow" and not _is_watched(watch, late):
                complaints.append(
                    f"{name}, burst {burst + 1}: a folder made in the flood is not watched"
                )
                break
        descriptors = watch.descriptors()
        if descriptors > MOST_DESCRIPTORS:
            complaints.append(f"{name}: {descriptors} descriptors")
        warnings = sum(event["event"] == "warning" for event in watch.events)
        if warnings > bool(limits):
            complaints.append(f"{name}: {warnings} warnings")
        idle = _idle_share(watch) if full else None
        if idle is not None and idle > 0.005:
            complaints.append(f"{name}: {100 * idle:.2f} % of a core when idle")
    finally:
        watch.close()
    found: dict[str, object] = {
        "polls": started["pollsBecause"],
        "kinds": dict(kinds),
        "slowest_seconds": round(max(took), 2),
        "descriptors": descriptors,
    }
    return found | (
        {} if idle is None else {"idle_percent_of_a_core": round(100 * idle, 3)}
    ), complaints


def _flood(watch: Watch, notebook: Notebook) -> Path:
    """Cause more events than the system keeps while the watching process is stopped.

    Returns a folder that was made when the queue was full, so that no event reports it."""
    watch.drain()
    watch.process.send_signal(signal.SIGSTOP)
    os.waitpid(
        watch.process.pid, os.WUNTRACED
    )  # each of its threads may go on reading until it stands still
    folder = notebook.folders[0]
    both = (folder / "flood-a.md", folder / "flood-b.md")
    for file in both:
        file.touch()
    for _ in range(int(QUEUE.read_text())):
        for file in both:  # equal events in a row are one, so two files take turns
            os.utime(file)
    late = folder / f"made-in-the-flood-{time.monotonic_ns()}"
    late.mkdir()
    (late / "note.md").write_text("The bittern was drowned out.\n")
    watch.process.send_signal(signal.SIGCONT)
    return late


def _is_watched(watch: Watch, folder: Path) -> bool:
    """Whether a change in a folder is reported by its path.

    It is watched only once the folders have been listed again, so the file changes repeatedly."""
    file = folder / "note.md"
    reported = f"{folder.name}/{file.name}"
    give_up = time.monotonic() + HANG_SECONDS
    while time.monotonic() < give_up:
        os.utime(file)
        watch.wait(1.0)
        watch.drain()
        if any(event.get("path", "").endswith(reported) for event in watch.events):
            return True
    return False


def _idle_share(watch: Watch) -> float:
    """How much of a core the process uses when nothing changes, once it has settled."""
    time.sleep(QUICK_SECONDS + 10)
    watch.drain()
    before, began = watch.cpu_seconds(), time.monotonic()
    time.sleep(IDLE_SECONDS)
    return (watch.cpu_seconds() - before) / (time.monotonic() - began)
