"""The memory an index takes does not follow the size of a transcript, nor that of its lines.

A transcript of many megabytes, with lines of one megabyte and one beyond the limit among them, is
indexed by a process of its own, then appended to, and searched. The process may hold 300 MB at its
largest. What is said before, in and after the long lines is found, and the index is what the file
makes it."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from frame import Outcome

MOST_MEGABYTES = 300
WORDS = (
    "amber",
    "birch",
    "cedar",
    "delta",
    "ember",
    "fjord",
    "grove",
    "heron",
    "inlet",
    "jetty",
    "kelp",
    "larch",
)

# Linux hands `ru_maxrss` of the parent on to its child; `VmHWM` is the child's own.
CHILD = """
import json, resource, sys
from pathlib import Path
from clawmark import Memory

settings = {"memorySearch.sources": ["memory", "sessions"], "memorySearch.provider": sys.argv[4]}
with Memory.open(
    sys.argv[1], state_dir=sys.argv[2], overrides=settings, background=False
) as memory:
    report = memory.sync()
    found = [bool(memory.search(word).hits) for word in sys.argv[3].split()]
    problems = (
        memory.plan()[0].due + len(memory.verify().problems) if sys.argv[5] == "verify" else 0
    )
if Path("/proc/self/status").exists():
    peak = int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) // 1024
else:
    unit = 1 << 20 if sys.platform == "darwin" else 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // unit
counts = {
    "problems": problems,
    "chunks": report.chunks,
    "embedded": report.embedded,
    "left": len(report.skipped),
}
print(json.dumps({"megabytes": peak, "found": found, **counts}))
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    """Index, append, search; small with 5 MB and words only, whole with 50 MB and vectors too."""
    if sys.platform == "win32":
        return Outcome(0, 0, {}, skipped="this system does not say how much memory a process held")
    workspace, sessions = work / "agent", work / "state" / "agents" / "main" / "sessions"
    workspace.mkdir()
    sessions.mkdir(parents=True)
    file = sessions / "long.jsonl"
    with file.open("wb") as stream:
        stream.writelines(_lines((50 if full else 5) << 20, random.Random(seed)))
    outcomes = []
    for provider in ("none", "static") if full else ("none",):
        outcomes.append(_index(work, "markerbegin markerlong markerend", provider, check=not full))
        with file.open("ab") as stream:
            stream.write(_line("user", f"and at last marker{provider}"))
        outcomes.append(_index(work, f"markerbegin marker{provider}", provider, check=False))
    complaints = [f"{outcome}" for outcome in outcomes if not _is_good(outcome)]
    facts = {"bytes": file.stat().st_size, "runs": outcomes, "limit": MOST_MEGABYTES}
    return Outcome(len(outcomes) - len(complaints), len(complaints), facts, tuple(complaints))


def _lines(size: int, chance: random.Random) -> Iterator[bytes]:
    """A conversation of about `size` bytes: short messages, tool output, messages of a megabyte,
    and one line too long.
    """
    yield b'{"type":"session","version":3,"id":"1"}\n' + _line("user", "this is the markerbegin")
    done, number = 0, 0
    while done < size:
        role, count = ("user", 40) if number % 2 else ("assistant", 80)
        if number % 50 == 7:
            role, count = "toolResult", 4000
        elif number % 2000 == 999:
            count = 150_000
        line = _line(role, " ".join(chance.choices(WORDS, k=count)))
        done, number = done + len(line), number + 1
        yield line
    yield _line("assistant", "large " * 174_000 + "markerlong")
    yield _line("toolResult", "x" * (17 << 20))
    yield _line("user", "this is the markerend")


def _line(role: str, text: str) -> bytes:
    message = {"role": role, "content": [{"type": "text", "text": text}]}
    return (
        json.dumps(
            {"type": "message", "timestamp": "2026-02-24T10:00:00Z", "message": message}
        ).encode()
        + b"\n"
    )


def _index(work: Path, words: str, provider: str, *, check: bool) -> dict[str, object]:
    places = [str(work / "agent"), str(work / "state")]
    command = [
        sys.executable,
        "-c",
        CHILD,
        *places,
        words,
        provider,
        "verify" if check else "search",
    ]
    ran = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if ran.returncode:
        return {"provider": provider, "error": ran.stderr[-2000:]}
    return {"provider": provider, **json.loads(ran.stdout)}


def _is_good(outcome: dict[str, object]) -> bool:
    found, held = outcome.get("found"), outcome.get("megabytes")
    is_small = isinstance(held, int) and held <= MOST_MEGABYTES
    return is_small and isinstance(found, list) and all(found) and not outcome["problems"]
