"""I-01: an append that was acknowledged is in the file after a SIGKILL at any moment: whole, once,
in order.

First a writer is killed at every call it makes from the append on, for a new log, an old one, one
with a torn last line and one with a second name. Then writers that share logs are killed at random
moments. Not judged is a line that was written and not acknowledged: its writer died before it could
say so."""

from __future__ import annotations

import os
import random
import re
import select
import subprocess
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from frame import Outcome
from straced import environment, killed, points, python, why_not

DAY = "2026-02-24"
HEADER = [f"# {DAY}", ""]
BEGIN = "the appends begin"
EVERY = 8
KILLS, WRITERS = 2000, 16
FEW_KILLS, FEW_WRITERS = 40, 4
KILLS_PER_LOG = 100

# What a writer needs is imported before it begins, so that the points are those of the append and
# not of the interpreter.
WRITER = f"""
import hashlib, os, sys
from datetime import datetime
import clawmark.workspace.daily, clawmark.workspace.write
from clawmark.memory import Memory
place, name, count = sys.argv[1:]
memory = Memory.open(
    place + "/ws",
    state_dir=place + "/state",
    provider="none",
    clock=lambda: datetime(2026, 2, 24, 12),
)
os.write(2, b"{BEGIN}\\n")
for number in range(int(count)):
    text = f"{{name}}.{{number}} " + "x" * (number % 97) + " end"
    written = memory.append(text)
    os.write(1, f"{{written.start_line}} - 12:00 {{text}}\\n".encode())
"""
_LINE = re.compile(r"- 12:00 (\w+)\.(\d+) x* end")


class Heard(NamedTuple):
    """What the writers of one log acknowledged, by writer: lines as `<line number> <line>`."""

    log: Path
    before: list[str]
    acknowledged: dict[str, list[str]]


def run(work: Path, full: bool, seed: int) -> Outcome:
    if reason := why_not():
        return Outcome(0, 0, {}, skipped=reason)
    (work / "writer.py").write_text(WRITER, encoding="utf-8")
    tally: Counter[str] = Counter()
    complaints: list[str] = []
    for kind, prepare in KINDS.items():
        _kill_at_each_call(work, kind, prepare, 1 if full else EVERY, tally, complaints)
    kills, writers = (KILLS, WRITERS) if full else (FEW_KILLS, FEW_WRITERS)
    _kill_at_random(work, kills, writers, random.Random(seed), tally, complaints)
    failed = len(complaints)
    return Outcome(
        tally["kill points"] + tally["random kills"] - failed,
        failed,
        dict(tally),
        tuple(complaints),
    )


# --- at each call ---------------------------------------------------------------------------------


def _new(_: Path) -> list[str]:
    return HEADER


def _old(log: Path) -> list[str]:
    log.parent.mkdir()
    log.write_text("# a day\n\n- one\n", encoding="utf-8")
    return ["# a day", "", "- one"]


def _torn(log: Path) -> list[str]:
    log.parent.mkdir()
    log.write_text("# a day\n\n- half a li", encoding="utf-8")
    return ["# a day", "", "- half a li"]


def _linked(log: Path) -> list[str]:
    before = _old(log)
    os.link(log, log.parents[2] / "second name.md")
    return before


KINDS: dict[str, Callable[[Path], list[str]]] = {
    "new": _new,
    "old": _old,
    "torn": _torn,
    "linked": _linked,
}
_OLD_TEXT = "# a day\n\n- one\n"


def _kill_at_each_call(
    work: Path,
    kind: str,
    prepare: Callable[[Path], list[str]],
    every: int,
    tally: Counter[str],
    complaints: list[str],
) -> None:
    place = _place(work, f"{kind}-trace")
    prepare(_log(place))
    found = points(_writer(work, place, "w", 2), BEGIN, work / f"{kind}.trace")
    for number, point in enumerate(found[::every]):
        place = _place(work, f"{kind}-{number}")
        before = prepare(_log(place))
        died = killed(_writer(work, place, "w", 2), point)
        tally["kill points"] += 1
        tally["killed at a call"] += died.code == -9
        _after_death(
            place,
            Heard(_log(place), before, {"w": died.out.splitlines()}),
            f"{kind}, {point}",
            tally,
            complaints,
        )
        if kind == "linked" and (place / "second name.md").read_text(encoding="utf-8") != _OLD_TEXT:
            complaints.append(f"{kind}, {point}: the other name of the log changed")


def _after_death(
    place: Path, heard: Heard, when: str, tally: Counter[str], complaints: list[str]
) -> None:
    """Judge the log, then let another writer go on with it and judge it again."""
    from datetime import datetime

    from clawmark.memory import Memory

    wrong = _judge(heard, tally)
    state = str(place / "state")
    with Memory.open(
        place / "ws", state_dir=state, provider="none", clock=lambda: datetime(2026, 2, 24, 12)
    ) as memory:
        written = memory.append("next.0  end")
    wrong += _judge(
        heard._replace(
            acknowledged={
                **heard.acknowledged,
                "next": [f"{written.start_line} - 12:00 next.0  end"],
            }
        ),
        Counter(),
    )
    left = [file.name for file in heard.log.parent.iterdir() if file != heard.log]
    if left:
        wrong.append(f"left behind: {left}")
    complaints.extend(f"{when}: {what}" for what in wrong)


# --- at random moments ----------------------------------------------------------------------------


def _kill_at_random(
    work: Path,
    kills: int,
    writers: int,
    chance: random.Random,
    tally: Counter[str],
    complaints: list[str],
) -> None:
    for start in range(0, kills, KILLS_PER_LOG):
        place = _place(work, f"random-{start}")
        herd = {f"w{number}": _start(work, place, f"w{number}") for number in range(writers)}
        heard = Heard(_log(place), HEADER, {})
        for number in range(start, min(start + KILLS_PER_LOG, kills)):
            victim = chance.choice(list(herd))
            heard.acknowledged[victim] = _killed(herd.pop(victim), chance)
            herd[f"n{number}"] = _start(work, place, f"n{number}")
            tally["random kills"] += 1
        for name, process in herd.items():
            heard.acknowledged[name] = _killed(process, chance)
        complaints.extend(f"random kills from {start}: {what}" for what in _judge(heard, tally))


def _start(work: Path, place: Path, name: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        _writer(work, place, name, 1_000_000),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
    )


def _killed(writer: subprocess.Popen[bytes], chance: random.Random) -> list[str]:
    """Let it acknowledge something, kill it somewhere in the middle of what follows; the lines it
    acknowledged.
    """
    assert writer.stdout is not None
    pipe = writer.stdout.fileno()
    heard = os.read(pipe, 1 << 16)
    select.select([], [], [], chance.random() / 100)
    writer.kill()
    writer.wait()
    while block := os.read(pipe, 1 << 16):
        heard += block
    writer.stdout.close()
    return heard.decode().split("\n")[:-1]


# --- the judge ------------------------------------------------------------------------------------


def _judge(heard: Heard, tally: Counter[str]) -> list[str]:
    """What is wrong with a log, given what was acknowledged."""
    acknowledged = sum(map(len, heard.acknowledged.values()))
    tally["acknowledged"] += acknowledged
    if not heard.log.exists():
        return [f"{acknowledged} acknowledged and the log is not there"] if acknowledged else []
    text = heard.log.read_text(encoding="utf-8")
    if not text:
        return [f"{acknowledged} acknowledged and the log is empty"] if acknowledged else []
    lines = text.removesuffix("\n").split("\n")
    wrong = (
        [] if lines[: len(heard.before)] == heard.before else [f"the log begins with {lines[:3]}"]
    )
    present: dict[str, list[int]] = {}
    for line in lines[len(heard.before) :]:
        whole = _LINE.fullmatch(line)
        if whole is None:
            wrong.append(f"torn: {line[:60]!r}")
        else:
            present.setdefault(whole[1], []).append(int(whole[2]))
    for writer, entries in heard.acknowledged.items():
        there = present.pop(writer, [])
        tally["written, not acknowledged"] += max(0, len(there) - len(entries))
        if there != list(range(len(there))) or len(there) not in (len(entries), len(entries) + 1):
            wrong.append(f"{writer} acknowledged {len(entries)}, present are {there[-5:]}")
        elsewhere = [entry for entry in entries if not _is_at_its_line(entry, lines)]
        if elsewhere:
            wrong.append(f"{writer}: not at the line it was cited with: {elsewhere[0][:60]}")
    return wrong + [f"{writer} never wrote here" for writer in present]


def _is_at_its_line(entry: str, lines: list[str]) -> bool:
    number, line = entry.split(" ", 1)
    return int(number) <= len(lines) and lines[int(number) - 1] == line


# --- places ---------------------------------------------------------------------------------------


def _place(work: Path, name: str) -> Path:
    place = work / name
    (place / "ws").mkdir(parents=True)
    return place


def _log(place: Path) -> Path:
    return place / "ws" / "memory" / f"{DAY}.md"


def _writer(work: Path, place: Path, name: str, count: int) -> list[str]:
    return python(str(work / "writer.py"), str(place), name, str(count))
