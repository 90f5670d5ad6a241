"""I-06: a replace is whole or did not happen, and takes nobody's text away.

Two editors that started from one text: one of them is told that the other was there, with both
hashes. Readers beside a writer see the old text or the new one. A replace of four megabytes is
killed at every call it makes."""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections import Counter
from pathlib import Path

from frame import Outcome
from straced import environment, killed, points, python, why_not

from clawmark.memory import Memory
from clawmark.model.errors import WriteConflict
from clawmark.model.values import FileState
from clawmark.workspace import Workspace

NOTE = "memory/note.md"
BEGIN = "the replace begins"
EVERY = 8
REPLACES, READS = 1000, 10_000
FEW_REPLACES, FEW_READS = 60, 600
EDITS, FEW_EDITS = 200, 20
LARGE = 4 * 1024 * 1024

_COMMON = """
import hashlib, os, sys
import clawmark.text.secrets.redact, clawmark.workspace.tree
import clawmark.workspace.versions, clawmark.workspace.write
from clawmark.model.errors import WriteConflict
from clawmark.memory import Memory
place = sys.argv[1]
memory = Memory.open(place + "/ws", state_dir=place + "/state", provider="none")
def text_of(version):
    return f"version {version}\\n" * (1 + version * 7919 % 40_000)
def current():
    with open(place + "/ws/memory/note.md", "rb") as file:
        data = file.read()
    return data.decode(), hashlib.sha256(data).hexdigest()
"""

LARGE_REPLACE = f"""{_COMMON}
text, base = current()
os.write(2, b"{BEGIN}\\n")
os.write(1, memory.replace("{NOTE}", "new text\\n" * ({LARGE} // 9), base, force=True).encode())
"""

CHANGER = f"""{_COMMON}
base = current()[1]
for version in range(1, int(sys.argv[2]) + 1):
    base = memory.replace("{NOTE}", text_of(version), base, force=True)
    os.write(1, b"*")
"""

EDITOR = f"""{_COMMON}
name, wanted = sys.argv[2], int(sys.argv[3])
number = conflicts = 0
while number < wanted:
    text, base = current()
    try:
        memory.replace("{NOTE}", text + f"{{name}}.{{number}}\\n", base)
        number += 1
    except WriteConflict as conflict:
        assert conflict.base_hash == base != conflict.current_hash, "both hashes are told"
        conflicts += 1
print(conflicts)
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    if reason := why_not():
        return Outcome(0, 0, {}, skipped=reason)
    for name, script in (("large", LARGE_REPLACE), ("changer", CHANGER), ("editor", EDITOR)):
        (work / f"{name}.py").write_text(script, encoding="utf-8")
    tally: Counter[str] = Counter()
    complaints: list[str] = []
    _one_base(work, tally, complaints)
    _two_editors(work, EDITS if full else FEW_EDITS, tally, complaints)
    _read_beside(
        work, *((REPLACES, READS) if full else (FEW_REPLACES, FEW_READS)), tally, complaints
    )
    _kill_at_each_call(work, 1 if full else EVERY, tally, complaints)
    failed = len(complaints)
    passed = sum(tally[name] for name in ("one base", "edits", "reads", "kill points")) - failed
    return Outcome(passed, failed, dict(tally), tuple(complaints))


def _one_base(work: Path, tally: Counter[str], complaints: list[str]) -> None:
    """Of two editors with one base the second is refused, whatever happened to the file since."""
    place = _place(work, "one-base", "old\n")
    base = _hash("old\n")
    tally["one base"] += 1
    with _open(place) as one, _open(place) as other:
        kept = one.replace(NOTE, "old\nmore\n", base)
        try:
            other.replace(NOTE, "old\nother\n", base)
            complaints.append("one base: the second editor was not refused")
        except WriteConflict as conflict:
            if (conflict.base_hash, conflict.current_hash) != (base, kept):
                complaints.append(
                    f"one base: the conflict tells {conflict.base_hash} and {conflict.current_hash}"
                )
    if (place / "ws" / NOTE).read_text(encoding="utf-8") != "old\nmore\n":
        complaints.append("one base: the first editor's text is gone")


def _two_editors(work: Path, edits: int, tally: Counter[str], complaints: list[str]) -> None:
    """Each adds its lines by replacing the whole file; every accepted one must be in the last text,
    in order.
    """
    place = _place(work, "editors", "start\n")
    editors = [_start(work, "editor", str(place), name, str(edits)) for name in "ab"]
    told = [editor.communicate() for editor in editors]
    lines = (place / "ws" / NOTE).read_text(encoding="utf-8").splitlines()
    for name, editor, (out, _) in zip("ab", editors, told, strict=True):
        tally["edits"] += edits
        if editor.returncode != 0:
            complaints.append(f"editor {name} ended with {editor.returncode}")
            continue
        tally["conflicts told"] += int(out)
        if [line for line in lines if line.startswith(name)] != [
            f"{name}.{number}" for number in range(edits)
        ]:
            complaints.append(
                f"editor {name}: not all of its {edits} accepted lines are there, once and in order"
            )


def _read_beside(
    work: Path, replaces: int, reads: int, tally: Counter[str], complaints: list[str]
) -> None:
    """Read while another process replaces; when it has finished before the reads are done, it
    starts again.
    """
    place = _place(work, "readers", _text_of(0))
    workspace = Workspace(str(place / "ws"))
    state = FileState(path=NOTE, source="memory", size=0, mtime_ns=0, inode=0, device=0)
    seen: set[str] = set()
    changer = _start(work, "changer", str(place), str(replaces))
    while tally["reads"] < reads or changer.poll() is None:
        if changer.poll() is not None:
            tally["replaces"] += _count_stars(changer)
            changer = _start(work, "changer", str(place), str(replaces))
        text = workspace.read_document(state).text
        version = text[: text.find("\n")].removeprefix("version ")
        tally["reads"] += 1
        seen.add(version)
        if not version.isdecimal() or text != _text_of(int(version)):
            complaints.append(
                f"a reader saw a mix that begins with {text[:30]!r} and has {len(text)} characters"
            )
    tally["replaces"] += _count_stars(changer)
    tally["versions seen"] = len(seen)
    if tally["replaces"] < replaces:
        complaints.append(f"only {tally['replaces']} replaces were made")


def _kill_at_each_call(work: Path, every: int, tally: Counter[str], complaints: list[str]) -> None:
    old, new = "old text\n" * (LARGE // 9), "new text\n" * (LARGE // 9)
    place = _place(work, "large-trace", old)
    found = points(python(str(work / "large.py"), str(place)), BEGIN, work / "large.trace")
    for number, point in enumerate(found[::every]):
        place = _place(work, f"large-{number}", old)
        died = killed(python(str(work / "large.py"), str(place)), point)
        tally["kill points"] += 1
        note = place / "ws" / NOTE
        text = note.read_text(encoding="utf-8")
        tally["new text after the kill"] += text == new
        if text != new and (died.out or text != old):
            complaints.append(f"{point}: {len(text)} characters, acknowledged {died.out!r}")
        with _open(place) as memory:
            memory.replace(NOTE, "next\n", _hash(text), force=True)
        if note.read_text(encoding="utf-8") != "next\n" or os.listdir(note.parent) != [note.name]:
            complaints.append(f"{point}: afterwards there is {os.listdir(note.parent)}")
        note.unlink()


def _place(work: Path, name: str, text: str) -> Path:
    note = work / name / "ws" / NOTE
    note.parent.mkdir(parents=True)
    note.write_text(text, encoding="utf-8")
    return work / name


def _open(place: Path) -> Memory:
    return Memory.open(place / "ws", state_dir=place / "state", provider="none")


def _start(work: Path, script: str, *words: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        python(str(work / f"{script}.py"), *words), stdout=subprocess.PIPE, env=environment()
    )


def _count_stars(process: subprocess.Popen[bytes]) -> int:
    return len(process.communicate()[0])


def _text_of(version: int) -> str:
    return f"version {version}\n" * (1 + version * 7919 % 40_000)


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
