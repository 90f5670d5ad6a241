"""I-08: an error of the disk is told, never swallowed, and the next run is right.

`clawmark index` of 20 files and a transcript, `clawmark remember`, a first `clawmark search` and
one that finds everything in step run with one failing call at a time: each call they make about
their own files, with each error it may give. Then the same on a disk that is full, with a limit on
the size of files and with few descriptors. A command has to end with one clear sentence or to have
done what it says it did; a file that it names as not indexed counts as told."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from frame import Outcome
from straced import Ended, Point, ended, points, python, struck, why_not

from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.text.entry_times import without_times

FILES = 20
AT_ONCE = 2
SAMPLE = 60
NOTE = "the ferry leaves at seven from marker99"
TALK = "sessions/talk.jsonl"

# What each call may fail with; a call that is not here changes nothing on disk and gets EIO alone.
_ANY = ("EIO", "ENOMEM")
_ROOM = ("EIO", "ENOSPC", "EDQUOT", "EROFS", "ENOMEM")
ERRORS: dict[str, tuple[str, ...]] = {
    "openat": (*_ROOM, "EMFILE"),
    **dict.fromkeys(("read", "pread64", "getdents64", "flock", "mmap"), _ANY),
    **dict.fromkeys(
        ("write", "pwrite64", "fsync", "fdatasync", "ftruncate", "mkdir", "mkdirat"), _ROOM
    ),
    **dict.fromkeys(
        ("rename", "renameat", "unlink", "unlinkat", "fchmod", "chmod", "fallocate"), _ROOM
    ),
}
# Nothing can be done about these and nothing depends on them: a close that fails has closed, the
# others only ask.
HARMLESS = frozenset(("close", "lseek", "ioctl", "munmap", "getcwd"))


class Case(NamedTuple):
    """One command with one failing call."""

    command: str
    point: Point
    error: str

    def __str__(self) -> str:
        return f"{self.command} with {self.error} at {self.point}"


def run(work: Path, full: bool, seed: int) -> Outcome:
    if reason := why_not():
        return Outcome(0, 0, {}, skipped=reason)
    _make(work / "new")
    cases = [case for command in COMMANDS for case in _cases(work, command)]
    tally: Counter[str] = Counter({"points": len({case[:2] for case in cases})})
    if not full:
        cases = random.Random(seed).sample(cases, SAMPLE)
    complaints: list[str] = []
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for number, wrong in enumerate(pool.map(lambda pair: _try(work, *pair), enumerate(cases))):
            tally[f"{cases[number].command}: {wrong.told}"] += 1
            complaints.extend(f"{cases[number]}: {what}" for what in wrong.complaints)
    tally["injections"] = len(cases)
    left_out = _no_mounts(work)
    for command in ("index", "remember"):
        for limit in LIMITS:
            tally["limits"] += 1
            complaints.extend(
                f"{command}, {limit}: {what}" for what in _limited(work, command, limit)
            )
        for free in () if left_out else FREE_BYTES:
            tally["full disks"] += 1
            complaints.extend(
                f"{command}, {free} bytes free: {what}"
                for what in _on_a_full_disk(work, command, free)
            )
    failed = len(complaints)
    facts = {**tally, **({"left out": left_out} if left_out else {})}
    return Outcome(
        tally["injections"] + tally["limits"] + tally["full disks"] - failed,
        failed,
        facts,
        tuple(complaints),
    )


# --- one failing call -----------------------------------------------------------------------------


class Told(NamedTuple):
    """How a command ended, in a word, and what was wrong about it."""

    told: str
    complaints: list[str]


def _cases(work: Path, command: str) -> Iterator[Case]:
    place = _copy(work, command, f"{command}-trace")
    for point in points(_argv(command), str(place), work / f"{command}.trace", _where(place)):
        if str(place) in point.about and point.call not in HARMLESS:
            # What a search does about a call that fails does not depend on the reason.
            for error in ("EIO",) if "search" in command else ERRORS.get(point.call, ("EIO",)):
                yield Case(
                    command, point._replace(about=point.about.replace(str(place), "")), error
                )


def _try(work: Path, number: int, case: Case) -> Told:
    place = _copy(work, case.command, f"try-{number}")
    done = struck(_argv(case.command), case.point, case.error, place / "trace", _where(place))
    told = "error told" if done.code else "done"
    wrong = _unclear(done)
    if (
        str(place) not in done.struck
    ):  # a call more or less than in the trace, and the interpreter was struck
        told, wrong = "missed", []
    elif done.code == 0 and not wrong:
        wrong = [
            f"false success: {what}" for what in COMMANDS[case.command](place, json.loads(done.out))
        ]
    wrong += [f"afterwards: {what}" for what in _next_run(place)]
    shutil.rmtree(place)
    return Told(told, wrong)


def _unclear(done: Ended) -> list[str]:
    """What is wrong with the way a command says that it failed."""
    if "Traceback" in done.out + done.err:
        return [f"a traceback: {done.err[-300:]}"]
    if done.code == 0:
        return []
    try:
        message = (
            json.loads(done.out)["error"]["message"]
            if done.out
            else done.err.removeprefix("clawmark: ").split("\n")[0]
        )
    except (ValueError, KeyError):
        return [f"exit {done.code} and this on stdout: {done.out[:200]!r}"]
    if (
        done.code not in (1, 2, 3, 4, 5)
        or len(message) < 20
        or "\n" in message
        or "unexpected" in message
    ):
        return [f"exit {done.code}, {message!r}"]
    return []


def _index_lies(place: Path, report: dict[str, Any]) -> list[str]:
    """Files that are neither in the index nor named as missing from it."""
    named = {item["path"] for item in report["failures"]}
    blind = [item["path"] for item in report["scanFailures"]]
    with _open(place) as memory:
        missing = _not_found(memory)
        wrong = memory.verify().problems
    unsaid = [
        number
        for number in missing
        if _name(number) not in named
        and not any(path == "" or _name(number).startswith(path) for path in blind)
    ]
    lies = [f"note {unsaid[0]} is not found, and {len(unsaid) - 1} more"] if unsaid else []
    return lies + [what for what in wrong if not any(_name(number) in what for number in missing)]


def _remember_lies(place: Path, written: dict[str, Any]) -> list[str]:
    text = (place / "ws" / written["path"]).read_text(encoding="utf-8")
    lines = without_times(text).split("\n")
    cited = lines[written["startLine"] - 1 : written["endLine"]]
    return (
        []
        if cited == [f"- {NOTE}"] and lines.count(f"- {NOTE}") == 1
        else [f"at {written['citation']} is {cited}"]
    )


def _search_lies(_: Path, found: dict[str, Any]) -> list[str]:
    is_told = found["dueFiles"] or found.get("degraded")
    return (
        []
        if is_told or any("marker7" in hit["snippet"] for hit in found["results"])
        else [f"no answer: {found}"]
    )


COMMANDS: dict[str, Callable[[Path, dict[str, Any]], list[str]]] = {
    "index": _index_lies,
    "remember": _remember_lies,
    "first search": _search_lies,
    "search": _search_lies,
}


def _argv(command: str) -> list[str]:
    words = {"index": [], "remember": [NOTE]}.get(command, ["marker7"])
    return python("-m", "clawmark", command.split()[-1], "--json", *words)


def _next_run(place: Path) -> list[str]:
    """The same place without a fault: a sync, and everything is right; no note is torn."""
    try:
        return _next_sync(place)
    except ClawmarkError as error:
        return [f"{error.message} {error.hint}"]


def _next_sync(place: Path) -> list[str]:
    with _open(place) as memory:
        memory.sync()
        lost = _not_found(memory)
        wrong = [f"note {lost[0]} is not found, and {len(lost) - 1} more"] if lost else []
        wrong += memory.verify().problems
        due = memory.status().due_files
        wrong += [f"{due} files are due after a sync"] if due else []
        memory.append("after the fault")
    for log in (place / "ws" / "memory").glob("2*.md"):
        allowed = ("", f"# {log.stem}", f"- {NOTE}", "- after the fault")
        wrong += [
            f"torn: {line!r}"
            for line in without_times(log.read_text(encoding="utf-8")).split("\n")
            if line not in allowed
        ]
    return wrong


# --- limits of the machine ------------------------------------------------------------------------

LIMITS = ("ulimit -f 0", "ulimit -f 8", "ulimit -n 32", "ulimit -n 8")
FREE_BYTES = (0, 16_384, 131_072)
"""What a full disk still has: nothing, less than a page of the index, less than the index."""
DISK_BYTES = 2 * 1024 * 1024

# The command is run on the full disk, and again when there is room; its answers are two lines. A
# note that was kept the first time is a duplicate the second time, hence --force.
ON_A_FULL_DISK = """
disk=$1; place=$2; filler=$3; shift 3
mount -t tmpfs -o size=2m tmpfs "$disk" && cp -a "$place/." "$disk/" || exit 99
head -c "$filler" /dev/zero > "$disk/filler" 2>/dev/null
"$@"
code=$?
rm "$disk/filler"
"$@" || exit 98
exit $code
"""


def _limited(work: Path, command: str, limit: str) -> list[str]:
    place = _copy(work, command, f"limit-{command}-{limit}".replace(" ", "-"))
    done = ended(["sh", "-c", f'{limit} && exec "$@"', "sh", *_argv(command)], _where(place))
    wrong = _unclear(done)
    if done.code == 0 and not wrong:
        wrong = COMMANDS[command](place, json.loads(done.out))
    return wrong + [f"afterwards: {what}" for what in _next_run(place)]


def _on_a_full_disk(work: Path, command: str, free: int) -> list[str]:
    place, disk = _copy(work, command, f"full-{command}-{free}"), work / f"disk-{command}-{free}"
    disk.mkdir()
    used = sum(
        -(-file.stat().st_size // 4096) * 4096 for file in place.rglob("*") if file.is_file()
    )
    script = [
        "unshare",
        "-m",
        "sh",
        "-c",
        ON_A_FULL_DISK,
        "sh",
        str(disk),
        str(place),
        str(DISK_BYTES - used - free),
    ]
    force = ["--force"] if command == "remember" else []
    done = ended([*script, *_argv(command), *force], _where(disk))
    first, _, second = done.out.strip().rpartition("\n")
    if done.code in (98, 99) or '"ok": false' in second or not second:
        return [f"exit {done.code}, and with room again {second[:300]}"]
    return _unclear(done._replace(out=first))


def _no_mounts(work: Path) -> str:
    tried = ended(["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(work)])
    return (
        f"the full disks: no mount is allowed here ({tried.err.strip()[:80]})" if tried.code else ""
    )


# --- places ---------------------------------------------------------------------------------------


def _make(place: Path) -> None:
    for number in range(FILES):
        file = place / "ws" / _name(number)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            f"# Note {number}\n\n- marker{number} was seen at the harbour.\n", encoding="utf-8"
        )
    (place / "home").mkdir()
    (place / "state").mkdir()
    (place / "state" / "clawmark.json").write_text(
        '{memorySearch: {provider: "none", sources: ["memory", "sessions"]}}', encoding="utf-8"
    )


def _copy(work: Path, command: str, name: str) -> Path:
    """A place where the command has its work before it: nothing is indexed, or everything."""
    place = Path(shutil.copytree(work / "new", work / name))
    with _open(place) as memory:
        sessions = Path(memory.places.sessions_dir)
    sessions.mkdir(parents=True)
    said = {
        "type": "message",
        "message": {"role": "user", "content": f"The marker{FILES} is kept at the harbour."},
    }
    (sessions / "talk.jsonl").write_text(json.dumps(said) + "\n", encoding="utf-8")
    if command in ("remember", "search"):
        with _open(place) as memory:
            memory.sync()
    return place


def _name(number: int) -> str:
    """The path of a note; after the last file comes the transcript."""
    if number == FILES:
        return TALK
    return (
        f"memory/{'abcd'[number % 4]}/note-{number}.md"
        if number % 2
        else f"memory/note-{number}.md"
    )


def _where(place: Path) -> dict[str, str]:
    return {
        "HOME": str(place / "home"),
        "CLAWMARK_STATE_DIR": str(place / "state"),
        "CLAWMARK_WORKSPACE": str(place / "ws"),
    }


def _open(place: Path) -> Memory:
    return Memory.open(place / "ws", state_dir=place / "state")


def _not_found(memory: Memory) -> list[int]:
    """The notes that a search does not find; one question brings them all."""
    found = memory.search("harbour", freshen=False, min_score=0.0, max_results=2 * FILES)
    snippets = [hit.snippet for hit in found.hits]
    return [
        number
        for number in range(FILES + 1)
        if not any(f"marker{number} " in snippet for snippet in snippets)
    ]
