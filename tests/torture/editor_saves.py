"""Appends beside an editor that saves by rename: no entry is doubled, and none is lost outside of
the editor's window.

An editor reads the log, writes another file and renames it over the log. If it reads before an
entry is written and renames after the entry was acknowledged, the entry is gone: the editor does
not know the lock, and no writer can prevent that. So an entry may be missing if it was acknowledged
between the two, and never otherwise. Of `sed -i` only its start and its end are known; an editor of
our own notes the moments of reading and renaming."""

from __future__ import annotations

import random
import select
import shutil
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from frame import Outcome
from straced import environment, python

from clawmark.text.entry_times import without_times

DAY = "2026-02-24"
APPENDS, FEW_APPENDS = 400, 40
LONGEST_PAUSE = 0.02
"""Seconds between the beginning of an append and the start of its sed, or the other way round."""

# Appends one entry for each line it is given, and answers with the moment of the last look at the
# log's name, or 0 for an error. The acknowledgement rests on that look; on a busy machine an editor
# may well rename between the two.
WRITER = """
import os, sys, time
from datetime import datetime
import clawmark.workspace.daily, clawmark.workspace.write
from clawmark.model.errors import WorkspaceError
from clawmark.memory import Memory
place = sys.argv[1]
looked = 0
real_stat = os.stat
def stat(*arguments, **named):
    global looked
    looked = time.monotonic_ns()
    return real_stat(*arguments, **named)
os.stat = stat
memory = Memory.open(
    place + "/ws",
    state_dir=place + "/state",
    provider="none",
    clock=lambda: datetime(2026, 2, 24, 12),
)
for line in sys.stdin:
    try:
        memory.append(line)
        print(looked, flush=True)
    except WorkspaceError:
        print(0, flush=True)
"""


class Appended(NamedTuple):
    """An entry that was to be appended."""

    text: str
    at: int
    """The last look before the acknowledgement, by the monotonic clock that all processes share; 0
    for an error.
    """


class Edit(NamedTuple):
    """When an editor read and when it renamed, by the same clock: not before the first, not after
    the second.
    """

    began: int
    ended: int


def run(work: Path, full: bool, seed: int) -> Outcome:
    if reason := _skip_reason():
        return Outcome(0, 0, {}, skipped=reason)
    (work / "writer.py").write_text(WRITER, encoding="utf-8")
    count = APPENDS if full else FEW_APPENDS
    tally: Counter[str] = Counter()
    complaints: list[str] = []
    kinds = {
        "one sed for each append": _one_sed_each,
        "sed without a pause": _sed_without_a_pause,
        "editor with known moments": _known_moments,
    }
    for kind, play in kinds.items():
        place = work / kind
        (place / "ws" / "memory").mkdir(parents=True)
        log = place / "ws" / "memory" / f"{DAY}.md"
        log.write_text("# A day\n\n", encoding="utf-8")
        appended, edits = play(work, place, log, count, random.Random(seed))
        complaints += [f"{kind}: {what}" for what in _judge(kind, log, appended, edits, tally)]
    failed = len(complaints)
    return Outcome(len(kinds) * count - failed, failed, dict(tally), tuple(complaints))


def _skip_reason() -> str:
    if shutil.which("sed") is None:
        return "sed is not installed"
    tried = subprocess.run(["sed", "--version"], capture_output=True, check=False)
    return "" if b"GNU sed" in tried.stdout else "sed -i of GNU is needed"


# --- the editors ----------------------------------------------------------------------------------


def _one_sed_each(
    work: Path, place: Path, log: Path, count: int, chance: random.Random
) -> tuple[list[Appended], list[Edit]]:
    appended, edits = list[Appended](), list[Edit]()
    with _writer(work, place) as writer:
        for number in range(count):
            pause = (chance.random() * 2 - 1) * LONGEST_PAUSE
            first_edit = _start_sed(log, number) if pause < 0 else None
            _wait(abs(pause) if pause < 0 else 0)
            text = _ask(writer, number)
            _wait(pause if pause > 0 else 0)
            began, process = first_edit or _start_sed(log, number)
            appended.append(_answer(writer, text))
            process.wait()
            edits.append(Edit(began, time.monotonic_ns()))
    return appended, edits


def _sed_without_a_pause(
    work: Path, place: Path, log: Path, count: int, chance: random.Random
) -> tuple[list[Appended], list[Edit]]:
    def edit(number: int) -> Edit:
        began, process = _start_sed(log, number)
        process.wait()
        return Edit(began, time.monotonic_ns())

    return _append_beside(edit, work, place, count)


def _known_moments(
    work: Path, place: Path, log: Path, count: int, chance: random.Random
) -> tuple[list[Appended], list[Edit]]:
    saved = log.with_name("saved by an editor")

    def edit(number: int) -> Edit:
        began = time.monotonic_ns()
        _, _, rest = log.read_text(encoding="utf-8").partition("\n")
        _wait(chance.random() * LONGEST_PAUSE / 4)
        saved.write_text(f"# A day, edited {number} times\n{rest}", encoding="utf-8")
        saved.replace(log)
        ended = time.monotonic_ns()
        _wait(chance.random() * LONGEST_PAUSE)
        return Edit(began, ended)

    return _append_beside(edit, work, place, count)


def _append_beside(
    edit: Callable[[int], Edit], work: Path, place: Path, count: int
) -> tuple[list[Appended], list[Edit]]:
    """Append while the editor saves over and over again."""
    edits = list[Edit]()
    done = threading.Event()

    def edit_all() -> None:
        while not done.is_set():
            edits.append(edit(len(edits)))

    editor = threading.Thread(target=edit_all)
    with _writer(work, place) as writer:
        editor.start()
        try:
            appended = [_answer(writer, _ask(writer, number)) for number in range(count)]
        finally:
            done.set()
            editor.join()
    return appended, edits


def _writer(work: Path, place: Path) -> subprocess.Popen[str]:
    command = python(str(work / "writer.py"), str(place))
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment()
    )


def _ask(writer: subprocess.Popen[str], number: int) -> str:
    assert writer.stdin is not None
    text = f"entry {number} end"
    writer.stdin.write(f"{text}\n")
    writer.stdin.flush()
    return text


def _answer(writer: subprocess.Popen[str], text: str) -> Appended:
    assert writer.stdout is not None
    line = writer.stdout.readline()
    if not line:
        raise AssertionError(f"the writer ended at {text!r}")
    return Appended(text, int(line.split()[0]))


def _start_sed(log: Path, number: int) -> tuple[int, subprocess.Popen[bytes]]:
    """Change the first line, and no other; an error of sed does not matter, it is not the program
    under test.
    """
    began = time.monotonic_ns()
    command = ["sed", "-i", f"1s/.*/# A day, edited {number} times/", str(log)]
    return began, subprocess.Popen(command, stderr=subprocess.DEVNULL)


def _wait(seconds: float) -> None:
    select.select([], [], [], seconds)


# --- the judge ------------------------------------------------------------------------------------


def _judge(
    kind: str, log: Path, appended: list[Appended], edits: list[Edit], tally: Counter[str]
) -> list[str]:
    present = Counter(without_times(log.read_text(encoding="utf-8")).split("\n"))
    tally[f"{kind}: saves"] = len(edits)
    wrong = []
    for entry in appended:
        copies = present.pop(f"- {entry.text}", 0)
        is_outside = not any(edit.began <= entry.at <= edit.ended for edit in edits)
        tally[f"{kind}: acknowledged"] += entry.at > 0
        tally[f"{kind}: acknowledged outside of the window"] += entry.at > 0 and is_outside
        tally[f"{kind}: lost inside of the window"] += copies == 0 and not is_outside
        if not entry.at:
            wrong.append(f"{entry.text!r} was refused")
        elif copies > 1:
            wrong.append(f"{entry.text!r} is there {copies} times")
        elif not copies and is_outside:
            wrong.append(
                f"{entry.text!r} is lost, and no editor was between reading and renaming when it "
                f"was acknowledged"
            )
    tally[f"{kind}: doubled"] = sum("times" in what for what in wrong)
    tally[f"{kind}: lost outside of the window"] = sum("is lost" in what for what in wrong)
    others = [line for line in present if line and not line.startswith("# A day")]
    return wrong + [f"not an entry: {line[:60]!r}" for line in others]
