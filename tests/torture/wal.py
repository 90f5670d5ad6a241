"""I-10: the log beside the index stays short, whatever readers do: at most 64 MB at any time, at
most 4 MB soon after quiet.

Writers index changing notes without a pause while readers of another program hold snapshots of the
index open, some for long. As long as one does, the log cannot be emptied: writers then wait, or are
told so, rather than let it grow without bounds. In the end the writers fall silent but stay alive,
and only then the last reader lets go."""

from __future__ import annotations

import json
import random
import subprocess
import time
from pathlib import Path

from frame import Outcome
from scene import Scene, finish, is_clean

MOST, MOST_AFTER_QUIET = 64 << 20, 4 << 20
QUIET_SECONDS = 10.0
SECONDS, WRITERS = 300.0, 4
FEW_SECONDS, FEW_WRITERS = 4.0, 2
LONGEST_HOLD = 60.0

WRITER = """
import json, random, select, sys, time
from pathlib import Path
from clawmark.model.errors import IndexBusy
from clawmark.memory import Memory
state, who = sys.argv[1], int(sys.argv[2])
words = (
    "river stone market winter engine garden letter silver bridge candle forest harbour meadow "
    "castle"
).split()
chance = random.Random(who)
syncs = refused = 0
with Memory.open(state_dir=state, config=state + "/clawmark.json") as memory:
    notes = Path(memory.places.workspace) / "memory"
    while not select.select([sys.stdin], [], [], 0)[0]:
        for number in range(4):
            text = "\\n\\n".join(" ".join(chance.choices(words, k=200)) for _ in range(30))
            (notes / f"{who}-{chance.randrange(20)}.md").write_text(text)
        try:
            memory.sync()
            syncs += 1
        except IndexBusy:
            refused += 1
    sys.stdin.readline()
    print(json.dumps({"syncs": syncs, "refused": refused}), flush=True)
    sys.stdin.readline()
"""

READER = """
import sys, time, apsw
path, seconds = sys.argv[2], float(sys.argv[3])
connection = apsw.Connection(path, flags=apsw.SQLITE_OPEN_READONLY)
cursor = connection.execute("SELECT key FROM chunks UNION ALL SELECT key FROM chunks")
next(cursor, None)
print("reading", flush=True)
sys.stdin.readline() if seconds < 0 else time.sleep(seconds)
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    seconds, count = (SECONDS, WRITERS) if full else (FEW_SECONDS, FEW_WRITERS)
    scene = Scene(work, "none")
    scene.write_notes(100 if full else 20, seed)
    scene.run("index")
    log = Path(f"{scene.index}-wal")
    writers = [scene.start_script(WRITER, str(who)) for who in range(count)]
    longest = _watch(scene, log, seconds, random.Random(seed))
    last = _hold(scene, -1.0)
    longest = max(longest, _watch_for(log, min(seconds / 4, 20.0)))
    heard = [_fall_silent(writer) for writer in writers]
    longest = max(longest, _size(log))
    finish(last, "\n")
    began = time.monotonic()
    while _size(log) > MOST_AFTER_QUIET and time.monotonic() - began < QUIET_SECONDS:
        time.sleep(0.05)
    after_quiet, took = _size(log), time.monotonic() - began
    ended = [finish(writer, "\n") for writer in writers]
    complaints = [
        f"a writer ended with {end.code}: {end.err[-300:]}" for end in ended if not is_clean(end)
    ]
    if longest > MOST:
        complaints.append(f"the log had {longest:,} bytes")
    if after_quiet > MOST_AFTER_QUIET:
        complaints.append(
            f"the log still had {after_quiet:,} bytes after {QUIET_SECONDS:.0f} seconds of quiet"
        )
    check = scene.run("verify") if is_clean(scene.run("index")) else None
    if check is None or not is_clean(check):
        complaints.append("the index is not what the files say in the end")
    facts: dict[str, object] = {
        "seconds": seconds,
        "writers": count,
        "longest_log_bytes": longest,
        "log_bytes_after_quiet": after_quiet,
        "seconds_until_short": round(took, 2),
        "syncs": sum(one["syncs"] for one in heard),
        "syncs_refused_because_the_log_was_full": sum(one["refused"] for one in heard),
    }
    return Outcome(3 + count - len(complaints), len(complaints), facts, tuple(complaints))


def _watch(scene: Scene, log: Path, seconds: float, chance: random.Random) -> int:
    """Let readers hold snapshots, one after the other, and watch the log; the most it had."""
    longest = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        hold = min(
            chance.choice((0.2, 1.0, 5.0, LONGEST_HOLD)), max(deadline - time.monotonic(), 0.1)
        )
        reader = _hold(scene, hold)
        while reader.poll() is None:
            longest = max(longest, _size(log))
            time.sleep(0.02)
        finish(reader)
        longest = max(longest, _watch_for(log, 0.5))
    return longest


def _watch_for(log: Path, seconds: float) -> int:
    longest = 0
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        longest = max(longest, _size(log))
        time.sleep(0.02)
    return longest


def _hold(scene: Scene, seconds: float) -> subprocess.Popen[str]:
    """A reader of another program that stands in the middle of an answer."""
    reader = scene.start_script(READER, str(scene.index), str(seconds))
    assert reader.stdout is not None and reader.stdout.readline() == "reading\n"
    return reader


def _fall_silent(writer: subprocess.Popen[str]) -> dict[str, int]:
    """Tell a writer to stop writing, and hear what it did; it stays alive."""
    assert writer.stdin is not None and writer.stdout is not None
    writer.stdin.write("\n")
    writer.stdin.flush()
    heard: dict[str, int] = json.loads(writer.stdout.readline() or '{"syncs": 0, "refused": 0}')
    return heard


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
