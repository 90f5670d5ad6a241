"""I-18: idle means idle. A process that watches and has nothing to do asks nothing of the system,
and leaves nobody behind.

A real `clawmark watch` is traced while nothing changes: no write, no look at a file or a folder.
Then it is killed, and the session it ran in has to be empty."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

from frame import Outcome
from notebook import Notebook, Watch
from straced import why_not

WRITES = re.compile(
    r"write|pwrite|fsync|fdatasync|rename|unlink|truncate|mkdir|link|chmod|utime|sendto|sendmsg|connect"
)
SCANS = re.compile(r"open|getdents|stat|readlink|access|read")
SETTLE_SECONDS = 4


def run(work: Path, full: bool, seed: int) -> Outcome:
    if sys.platform != "linux" or why_not():
        return Outcome(0, 0, {}, skipped=why_not() or "strace is Linux's")
    notebook = Notebook(work, 1000 if full else 50, random.Random(seed))
    watch = Watch(notebook.root, work / "state")
    complaints: list[str] = []
    try:
        watch.wait_for("done")
        while watch.wait(
            SETTLE_SECONDS
        ):  # the last look past the grain of the clock is not idleness yet
            watch.drain()
        before = watch.cpu_seconds()
        seconds = 600 if full else 5
        calls = _traced(watch.process.pid, seconds, work / "trace")
        cpu = watch.cpu_seconds() - before
        for name, count in sorted(calls.items()):
            if WRITES.search(name) or SCANS.search(name):
                complaints.append(f"{count} calls of {name} while nothing changed")
        if watch.wait(0):
            complaints.append(f"it said something while nothing changed: {watch.read(1.0)}")
        session = os.getsid(watch.process.pid)
    finally:
        watch.close()
    left = _in_session(session)
    if left:
        complaints.append(f"left behind: {left}")
    facts: dict[str, object] = {
        "seconds": seconds,
        "calls": calls,
        "cpu_seconds_under_trace": round(cpu, 2),
        "left_behind": len(left),
    }
    checks = 3
    return Outcome(max(0, checks - len(complaints)), len(complaints), facts, tuple(complaints))


def _traced(pid: int, seconds: int, file: Path) -> dict[str, int]:
    """The calls that all threads of a process make within some time, by name; those it was waiting
    in are not its doing.
    """
    strace = shutil.which("strace")
    assert strace is not None
    tracer = subprocess.Popen(
        [strace, "-f", "-o", str(file), "-p", str(pid)], stderr=subprocess.DEVNULL
    )
    time.sleep(seconds)
    tracer.send_signal(signal.SIGINT)
    tracer.wait()
    calls: dict[str, int] = {}
    for line in file.read_text().splitlines():
        found = re.match(r"\d+ +(\w+)\(", line)
        # On attaching, strace shows what each thread waits in, and on leaving that it still does.
        if (
            found
            and "<detached" not in line
            and "<unfinished" not in line
            and "restart_syscall" not in line
        ):
            calls[found[1]] = calls.get(found[1], 0) + 1
    return calls


def _in_session(session: int) -> list[int]:
    """The processes of a session."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = Path(f"/proc/{name}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[3]) == session and fields[0] != "Z":
            found.append(int(name))
    return found
