"""Real programs under strace: one trace of what they ask of the system, then the same run again
with one call of it fatal or failing. strace counts each call by its name, so a point is a name and
a number."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import clawmark

SOURCE = str(Path(next(iter(clawmark.__path__))).parent)
HANG_SECONDS = 120
_CALL = re.compile(r"^(\d+) +(\w+)\((.*)")


class Point(NamedTuple):
    """The `number`-th `call` of a program, with what it was about."""

    call: str
    number: int
    about: str

    def __str__(self) -> str:
        return f"{self.call} {self.number} ({self.about[:90]})"


class Ended(NamedTuple):
    """How a program ended and what it said."""

    code: int
    out: str
    err: str
    struck: str = ""
    """The call that was made to fail, with the paths of its files."""


def why_not() -> str:
    """Why nothing can be traced here, or nothing."""
    if shutil.which("strace") is None:
        return "strace is not installed: apt install strace"
    tried = subprocess.run(["strace", "-o", os.devnull, "true"], capture_output=True, check=False)
    return (
        ""
        if tried.returncode == 0
        else f"strace cannot trace here: {tried.stderr.decode().strip()}"
    )


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """The same for every run, so that the n-th call is the same call again; none of the caller's
    own settings.
    """
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
    }
    fixed = {"PYTHONPATH": SOURCE, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": "1"}
    return {**kept, **fixed, **(more or {})}


def python(*words: str) -> list[str]:
    """A command line of this interpreter."""
    return [sys.executable, *words]


def ended(argv: Sequence[str], env: Mapping[str, str] | None = None) -> Ended:
    """Run a program to its end."""
    done = subprocess.run(
        list(argv),
        capture_output=True,
        check=False,
        timeout=HANG_SECONDS,
        env=environment(env),
        stdin=subprocess.DEVNULL,
    )
    return Ended(
        done.returncode,
        done.stdout.decode("utf-8", "replace"),
        done.stderr.decode("utf-8", "replace"),
    )


def points(
    argv: Sequence[str], begin: str, log: Path, env: Mapping[str, str] | None = None
) -> list[Point]:
    """Every call of the program's first thread from the one on that mentions `begin`; the program
    must succeed.

    Descriptors are shown with the path of their file, so that `begin` may be a folder.
    """
    run = ended(["strace", "-f", "-y", "-o", str(log), *argv], env)
    if run.code != 0:
        raise AssertionError(f"{' '.join(argv)} failed under strace: {run.err}")
    counts: Counter[str] = Counter()
    found: list[Point] = []
    first = ""
    for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
        call = _CALL.match(line)
        if call is None:
            continue
        first = first or call[1]
        if call[1] != first:
            continue
        counts[call[2]] += 1
        if found or (counts["execve"] and call[2] != "execve" and begin in call[3]):
            found.append(Point(call[2], counts[call[2]], call[3]))
    return found


def killed(argv: Sequence[str], point: Point, env: Mapping[str, str] | None = None) -> Ended:
    """The program with a SIGKILL at one of its calls."""
    inject = f"inject={point.call}:signal=SIGKILL:when={point.number}"
    return ended(
        ["strace", "-f", "-qq", "-o", os.devnull, "-e", f"trace={point.call}", "-e", inject, *argv],
        env,
    )


def struck(
    argv: Sequence[str], point: Point, error: str, log: Path, env: Mapping[str, str] | None = None
) -> Ended:
    """The program with an error at one of its calls."""
    inject = f"inject={point.call}:error={error}:when={point.number}"
    # The filter makes it three times as fast. (A signal is not delivered that way.)
    tracing = [
        "strace",
        "-f",
        "-y",
        "-qq",
        "--seccomp-bpf",
        "-o",
        str(log),
        "-e",
        f"trace={point.call}",
        "-e",
        inject,
    ]
    done = ended([*tracing, *argv], env)
    calls = log.read_text(encoding="utf-8", errors="replace").splitlines()
    log.unlink()
    return done._replace(struck=next((call for call in calls if call.endswith("(INJECTED)")), ""))
