"""An editor that saves by rename during an append: the entry is neither doubled nor lost.

The editor acts before chosen system calls of the append. Every pair of a moment to read and a
moment to rename is tried."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from clawmark import Memory
from clawmark.agent.flush.daily_log import DailyLog
from clawmark.model.documents import Written
from clawmark.model.errors import WorkspaceError
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace

LOG = "memory/2026-02-24.md"
ENTRY = "- mine"
CALLS = ("open", "read", "write", "lseek", "fsync", "stat", "fstat", "close", "replace")


class Editor(NamedTuple):
    """Reads the log before one system call of the append and renames its own version over it before
    another.
    """

    reads_at: int
    renames_at: int
    change: Callable[[bytes], bytes] = lambda text: text.replace(b"# Day", b"# Edited day")


class Race:
    """One append with editors beside it."""

    def __init__(self, log: Path, editors: list[Editor]) -> None:
        self.log = log
        self.editors = editors
        self.calls: list[str] = []
        self.looked_at = -1
        """The last call that looked at what has the log's name."""
        self._read: dict[int, bytes] = {}
        self._is_editing = False

    def before_call(self, name: str, arguments: tuple[Any, ...]) -> None:
        if self._is_editing:
            return
        self._is_editing = True
        step = len(self.calls)
        for number, editor in enumerate(self.editors):
            if step == editor.reads_at and self.log.exists():
                self._read[number] = editor.change(self.log.read_bytes())
            if step == editor.renames_at and number in self._read:
                saved = self.log.with_name(f"editor-{number}")
                saved.write_bytes(self._read[number])
                saved.replace(self.log)
        if name in ("open", "stat", "replace") and self.log.name in arguments:
            self.looked_at = step
        self.calls.append(name)
        self._is_editing = False

    def may_lose(self, entry: bytes, copies: int) -> bool:
        """Whether an editor renamed a text without the entry after the append last looked at the
        name.
        """
        late = [
            n
            for n, editor in enumerate(self.editors)
            if editor.renames_at > self.looked_at and n in self._read
        ]
        return any(self._read[number].count(entry) < copies for number in late)


@contextmanager
def beside(race: Race) -> Iterator[None]:
    """Let the editors act before the system calls of this process."""
    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, _announced(race, name, getattr(os, name)))
        yield


def _announced(race: Race, name: str, real: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        race.before_call(name, arguments)
        if (
            name == "fsync"
        ):  # what a disk does is tested elsewhere; thousands of syncs would only take time
            return None
        return real(*arguments, **named)

    return call


# --- how the log looks before ---


def _plain(log: Path) -> int:
    log.write_bytes(b"# Day\n\n- older\n")
    return 0


def _same_text(log: Path) -> int:
    log.write_bytes(b"# Day\n\n- mine\n- mine\n")
    return 2


def _torn(log: Path) -> int:
    log.write_bytes(b"# Day\n\n- mine\n- half a li")
    return 1


def _second_name(log: Path) -> int:
    log.write_bytes(b"# Day\n\n- older\n")
    os.link(log, log.parents[2] / "second.md")
    return 0


def _absent(log: Path) -> int:
    return 0


LOGS = {
    "plain": _plain,
    "same text": _same_text,
    "torn": _torn,
    "second name": _second_name,
    "absent": _absent,
}


class Played(NamedTuple):
    """A race that is over."""

    race: Race
    written: Written
    before: int
    """How many copies of the entry the log held before, and `after`."""
    after: int


def play(folder: Path, kind: str, editors: list[Editor]) -> Played:
    """One append with these editors beside it."""
    ws = folder / "ws"
    log = ws / LOG
    log.parent.mkdir(parents=True)
    before = LOGS[kind](log)
    race = Race(log, editors)
    workspace = Workspace(str(ws))
    with beside(race):
        written = workspace.append(LOG, ENTRY, header="# Day\n\n")
    after = log.read_text().split("\n").count(ENTRY) if log.exists() else 0
    return Played(race=race, written=written, before=before, after=after)


def check(played: Played) -> None:
    """The entry is there once more than before; it is missing only where the docs say so."""
    race, written, before, after = played
    when = f"{race.editors}, calls {race.calls}"
    if race.may_lose(ENTRY.encode(), before + 1):
        assert after <= before + 1, when
        return
    assert after == before + 1, when
    if max((editor.renames_at for editor in race.editors), default=0) <= race.looked_at:
        assert race.log.read_text().split("\n")[written.start_line - 1] == ENTRY, when


@pytest.mark.parametrize("kind", LOGS)
def test_an_editor_at_any_two_moments_neither_doubles_nor_loses_the_entry(
    kind: str, tmp_path: Path
) -> None:
    quiet = play(tmp_path / "quiet", kind, [])
    check(quiet)
    moments = len(quiet.race.calls)
    noticed = 0
    for reads_at in range(moments):
        for renames_at in range(reads_at, moments):
            played = play(
                tmp_path / f"{reads_at}-{renames_at}", kind, [Editor(reads_at, renames_at)]
            )
            check(played)
            noticed += len(played.race.calls) > moments
    assert noticed > 0


@pytest.mark.parametrize("kind", LOGS)
def test_three_editors_at_random_moments_neither_double_nor_lose_the_entry(
    kind: str, tmp_path: Path
) -> None:
    chance = random.Random(1)
    for number in range(150):
        reads = [chance.randrange(90) for _ in range(3)]
        check(
            play(
                tmp_path / str(number), kind, [Editor(at, chance.randrange(at, 90)) for at in reads]
            )
        )


def test_an_editor_that_read_the_entry_and_trims_or_converts_lines_does_not_double_it(
    tmp_path: Path,
) -> None:
    changes: dict[str, Callable[[bytes], bytes]] = {
        "crlf": lambda text: text.replace(b"\n", b"\r\n"),
        "trimmed": lambda text: b"\n".join(line.rstrip() for line in text.split(b"\n")),
        "no final newline": lambda text: text.rstrip(),
    }
    for name, change in changes.items():
        log = tmp_path / name / LOG
        log.parent.mkdir(parents=True)
        log.write_bytes(b"# Day\n\n")
        race = Race(log, [])
        workspace = Workspace(str(tmp_path / name))
        with beside(race):
            workspace.append(LOG, "- first")
        wrote = race.calls.index("write")
        again = Race(log, [Editor(wrote + 1, wrote + 1, change)])
        with beside(again):
            workspace.append(LOG, "- two  \n  lines \n")
        text = log.read_bytes()
        assert text.count(b"- two") == 1, name
        assert text.count(b"lines") == 1, name


def test_an_editor_that_removes_the_entry_does_not_keep_it_out(tmp_path: Path) -> None:
    wrote = play(tmp_path / "quiet", "plain", []).race.calls.index("write")
    removes = Editor(wrote + 1, wrote + 1, lambda text: text.replace(b"- mine\n", b""))
    played = play(tmp_path / "race", "plain", [removes])
    assert (played.before, played.after) == (0, 1)
    assert played.race.log.read_text().split("\n")[played.written.start_line - 1] == ENTRY


def test_two_equal_entries_are_both_there_when_an_editor_saves_during_the_second(
    tmp_path: Path,
) -> None:
    log = tmp_path / LOG
    workspace = Workspace(str(tmp_path))
    workspace.append(LOG, ENTRY)
    quiet = Race(log, [])
    with beside(quiet):
        workspace.append(LOG, ENTRY)
    for moment in range(len(quiet.calls)):
        log.write_text(f"{ENTRY}\n")
        race = Race(log, [Editor(0, moment), Editor(moment, moment)])
        with beside(race):
            written = workspace.append(LOG, ENTRY)
        after = log.read_text().split("\n").count(ENTRY)
        check(Played(race=race, written=written, before=1, after=after))


def test_a_file_that_never_stops_being_replaced_is_reported_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / LOG
    log.parent.mkdir()
    log.write_bytes(b"# Day\n")
    monkeypatch.setattr("clawmark.workspace.write._EDITOR_TIMEOUT", 0.0)
    editors = [Editor(moment, moment) for moment in range(200)]
    with (
        beside(Race(log, editors)),
        pytest.raises(WorkspaceError, match="kept being replaced") as caught,
    ):
        Workspace(str(tmp_path)).append(LOG, ENTRY)
    assert "Look whether the entry is there" in caught.value.hint


@pytest.mark.parametrize("how", ["append", "tool", "flush"])
def test_every_way_to_append_is_protected(how: str, tmp_path: Path) -> None:
    """`Memory.append`, the tool `memory_append` and the log of a flush; an editor saves at each
    moment after the write.
    """
    fact = "The office moved to Lisbon in May"
    (tmp_path / "ws").mkdir()
    with Memory.open(tmp_path / "ws", state_dir=tmp_path / "state", provider="none") as memory:
        log = tmp_path / "ws" / memory.append("The first entry is here").path
        before = log.read_bytes()

        def append() -> None:
            if how == "append":
                memory.append(fact)
            elif how == "tool":
                (tool,) = (
                    tool for tool in memory.tools(append=True) if tool.name == "memory_append"
                )
                tool.call({"text": fact})
            else:
                workspace = memory._builtin.parts.workspace
                DailyLog(
                    workspace=workspace,
                    now=datetime.now,
                    redactor=Redactor(),
                    session_key="agent:main:main",
                ).append(f"- {fact}")

        quiet = Race(log, [])
        with beside(quiet):
            append()
        assert log.read_text().count(fact) == 1
        for moment in range(quiet.calls.index("write"), len(quiet.calls)):
            log.write_bytes(before)
            with beside(Race(log, [Editor(moment, moment)])):
                append()
            assert log.read_text().count(fact) == 1, moment
