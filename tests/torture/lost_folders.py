"""I-16: a look that failed deletes nothing.

Folders that cannot be opened or listed, that are not mounted, or in whose place there is another,
empty folder, a file or a link: before a sync and in the middle of one, every file stays in the
index, and the report and `status` say why. `clawmark index --force` then believes that they are
gone, where that is for a person to say."""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from frame import Outcome
from straced import Ended, Point, ended, points, python, struck, why_not

from clawmark.memory import Memory
from clawmark.store.sqlite.store import SqliteStore

FILES = (
    "MEMORY.md",
    "memory/a.md",
    "memory/b.md",
    "memory/sub/c.md",
    "memory/sub/d.md",
    "../docs/e.md",
    "../docs/f.md",
)
FOLDERS = {"": "ws", "memory": "ws/memory", "memory/sub": "ws/memory/sub", "../docs": "docs"}
"""The folders that get lost, as cited, and where they are."""
ROOTS = ("", "memory", "../docs")
"""Those that may be mounts, or be named in the settings."""
FAULTS = (
    *(("openat", error) for error in ("EACCES", "EIO", "ESTALE")),
    *(("getdents64", error) for error in ("EIO", "ESTALE")),
    *(("newfstatat", error) for error in ("EIO", "ESTALE")),
)
LATER = 3
"""Of the times a folder is opened again after the look, so many are tried too."""
EVERY = 4
NOBODY = [
    "setpriv",
    "--bounding-set",
    "-dac_override,-dac_read_search",
    "--inh-caps",
    "-dac_override,-dac_read_search",
]
"""Root without the power to open what nobody may open."""


class Case(NamedTuple):
    """One way to lose a folder."""

    what: str
    folder: str
    lose: Callable[[Path], list[str]]
    """Makes the folder unusable; gives what the commands are to be run with, as a wrapper."""
    forget: bool = False
    """Whether `index --force` may forget its files."""


def run(work: Path, full: bool, seed: int) -> Outcome:
    if reason := why_not():
        return Outcome(0, 0, {}, skipped=reason)
    tally: Counter[str] = Counter()
    complaints: list[str] = []
    left_out: list[str] = []
    for number, (name, point, error) in enumerate(_injections(work)[:: 1 if full else EVERY]):
        tally["calls that fail"] += 1
        complaints.extend(
            f"{name}: {what}" for what in _fail_a_call(_place(work, f"call-{number}"), point, error)
        )
    for number, case in enumerate(CASES):
        place = _place(work, f"case-{number}")
        if why := _cannot(case, place):
            left_out.append(f"{_name(case.folder)} {case.what}: {why}")
            continue
        tally["folders that are lost"] += 1
        complaints.extend(
            f"{_name(case.folder)} {case.what}: {what}" for what in _lose(place, case, tally)
        )
    failed = len(complaints)
    facts = {**tally, **({"left out": left_out} if left_out else {})}
    return Outcome(
        tally["calls that fail"] + tally["folders that are lost"] - failed,
        failed,
        facts,
        tuple(complaints),
    )


# --- one call that fails --------------------------------------------------------------------------


def _injections(work: Path) -> list[tuple[str, Point, str]]:
    """The first look at each folder, and some of the times it is opened again to read a file."""
    place = _place(work, "trace")
    _edit(place)
    found = points(_command("index"), str(place), work / "index.trace", _where(place))
    made = []
    for cited, folder in FOLDERS.items():
        for call, error in FAULTS:
            met = [
                point for point in found if point.call == call and _is_about(point, place / folder)
            ]
            more = met[1 : 1 + LATER] if (call, error) == ("openat", "EIO") else []
            name = f"{error} at {call} of {_name(cited)}"
            made += [(f"{name}, call {point.number}", point, error) for point in met[:1] + more]
    met = [
        point for point in found if point.call == "newfstatat" and f'"{place}/docs"' in point.about
    ]
    return made + [
        (f"EACCES on the way to ../docs, call {point.number}", point, "EACCES")
        for point in met[: 1 + LATER]
    ]


def _is_about(point: Point, folder: Path) -> bool:
    """Whether a call opens or lists this very folder: with `-y` what is opened is shown with its
    path.
    """
    return f"<{folder}>" in (
        point.about.rsplit(" = ", 1)[-1] if point.call == "openat" else point.about
    )


def _fail_a_call(place: Path, point: Point, error: str) -> list[str]:
    _edit(place)
    done = struck(_command("index"), point, error, place / "trace", _where(place))
    wrong = _missing(place)
    if done.code == 0:
        report = json.loads(done.out)
        if not (report["scanFailures"] or report["failures"]):
            wrong += [f"nothing was said, and {what}" for what in _problems(place)]
    elif "message" not in done.out or "Traceback" in done.err:
        wrong.append(f"exit {done.code}: {done.out[:200]} {done.err[-200:]}")
    return wrong + _afterwards(place)


# --- folders that are lost ------------------------------------------------------------------------


def _closed(folder: str) -> Callable[[Path], list[str]]:
    def lose(place: Path) -> list[str]:
        (place / FOLDERS[folder]).chmod(0)
        return NOBODY if os.geteuid() == 0 else []

    return lose


def _replaced(folder: str, make: Callable[[Path, Path], None]) -> Callable[[Path], list[str]]:
    def lose(place: Path) -> list[str]:
        there = place / FOLDERS[folder]
        there.rename(place / "moved")
        make(there, place / "moved")
        return []

    return lose


def _make_folder(there: Path, _: Path) -> None:
    there.mkdir()


def _make_file(there: Path, _: Path) -> None:
    there.touch()


def _make_link(there: Path, moved: Path) -> None:
    there.symlink_to(moved)


def _make_nothing(there: Path, _: Path) -> None:
    assert not there.exists()


def _unmounted(folder: str) -> Callable[[Path], list[str]]:
    """The folder was a mount when it was indexed, and is the empty place it was mounted on now."""

    def lose(place: Path) -> list[str]:
        there, kept = place / FOLDERS[folder], place / "kept"
        there.rename(kept)
        there.mkdir()
        script = 'mount -t tmpfs tmpfs "$1" && cp -a "$2/." "$1/" && shift 2 && exec "$@"'
        shell = ["unshare", "-m", "sh", "-c", script, "sh", str(there), str(kept)]
        mounted = ended([*shell, *_command("index")], _where(place))
        assert mounted.code == 0, mounted.err
        return []

    return lose


CASES = (
    *(Case("closed to its owner", folder, _closed(folder)) for folder in FOLDERS),
    *(
        Case(
            what="replaced by an empty folder",
            folder=folder,
            lose=_replaced(folder, _make_folder),
            forget=True,
        )
        for folder in ROOTS
    ),
    *(Case("replaced by a file", folder, _replaced(folder, _make_file)) for folder in ROOTS),
    *(
        Case("replaced by a link", folder, _replaced(folder, _make_link))
        for folder in ("memory", "../docs")
    ),
    *(Case("not there", folder, _replaced(folder, _make_nothing)) for folder in ("", "../docs")),
    *(
        Case(what="not mounted", folder=folder, lose=_unmounted(folder), forget=True)
        for folder in ROOTS
    ),
)


def _name(folder: str) -> str:
    return folder or "the workspace"


def _cannot(case: Case, place: Path) -> str:
    """Why a case cannot be made here."""
    if case.what == "not mounted":
        tried = ended(["unshare", "-m", "mount", "-t", "tmpfs", "tmpfs", str(place)])
        return f"no mount is allowed here ({tried.err.strip()[:60]})" if tried.code else ""
    if case.what.startswith("closed") and os.geteuid() == 0 and shutil.which("setpriv") is None:
        return "root opens everything, and setpriv is not installed"
    return ""


def _lose(place: Path, case: Case, tally: Counter[str]) -> list[str]:
    wrapper = case.lose(place)
    try:
        wrong = []
        for verb in ("index", "status", "index"):
            done = ended([*wrapper, *_command(verb)], _where(place))
            wrong += [f"{verb}: {what}" for what in _told(done, case.folder)]
        wrong += _missing(place)
        if case.forget:
            done = ended([*wrapper, *_command("index", "--force")], _where(place))
            tally["forgotten on request"] += 1
            wrong += (
                []
                if done.code == 0 and not _kept(place, case.folder)
                else [f"--force keeps them: {done.out[:200]}"]
            )
    finally:
        if case.what.startswith("closed"):
            (place / FOLDERS[case.folder]).chmod(0o700)
    return wrong


def _told(done: Ended, folder: str) -> list[str]:
    """What is wrong with what a command says about a lost folder."""
    said: dict[str, Any] = json.loads(done.out or "{}")
    if done.code != 0:
        is_clear = done.code in (2, 3) and len(said.get("error", {}).get("message", "")) > 20
        return [] if is_clear else [f"exit {done.code}: {done.out[:300]} {done.err[-300:]}"]
    reasons = [item["reason"] for item in said["scanFailures"] if item["path"] == folder]
    return (
        []
        if reasons and len(reasons[0]) > 15
        else [f"it says {said['scanFailures']} and {said['skipped']}"]
    )


# --- places ---------------------------------------------------------------------------------------


def _place(work: Path, name: str) -> Path:
    place = work / name
    for path in FILES:
        file = place / "ws" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        (place / "ws" / path).resolve().write_text(
            f"# {path}\n\nThe note in {path} is about boats.\n", encoding="utf-8"
        )
    (place / "state").mkdir()
    settings = {"memorySearch": {"provider": "none", "extraPaths": ["../docs"]}}
    (place / "state" / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
    with _open(place) as memory:
        memory.sync()
    return place


def _edit(place: Path) -> None:
    """Something to do in every folder, so that a sync opens them again after its look."""
    for path in FILES[::2]:
        with (place / "ws" / path).resolve().open("a", encoding="utf-8") as file:
            file.write("And one line more.\n")


def _command(verb: str, *words: str) -> list[str]:
    return python("-m", "clawmark", verb, "--json", *words)


def _where(place: Path) -> dict[str, str]:
    return {
        "HOME": str(place),
        "CLAWMARK_STATE_DIR": str(place / "state"),
        "CLAWMARK_WORKSPACE": str(place / "ws"),
    }


def _open(place: Path) -> Memory:
    return Memory.open(place / "ws", state_dir=place / "state")


def _indexed(place: Path) -> set[str]:
    """The files whose text is in the index; asked without the workspace, which may be lost too."""
    (file,) = (place / "state" / "memory").glob("*.sqlite")
    index = SqliteStore(str(file))
    with index.snapshot() as reader:
        found = {
            path
            for path in reader.files()
            if any("boats" in chunk.text for chunk in reader.chunks_of(path))
        }
    index.close()
    return found


def _missing(place: Path) -> list[str]:
    gone = set(FILES) - _indexed(place)
    return [f"not in the index any more: {sorted(gone)}"] if gone else []


def _kept(place: Path, folder: str) -> list[str]:
    return [
        path
        for path in _indexed(place)
        if path.startswith(folder + "/" if folder else ("memory/", "MEMORY.md"))
    ]


def _afterwards(place: Path) -> list[str]:
    """Without the fault: in step and right after one sync."""
    with _open(place) as memory:
        memory.sync()
    return [f"afterwards: {what}" for what in _problems(place)]


def _problems(place: Path) -> list[str]:
    """How the index differs from the files."""
    with _open(place) as memory:
        return [
            *memory.verify().problems,
            *(["files are due"] if memory.status().due_files else []),
        ]
