"""How much growth of a transcript is enough, decided from the disk and the index alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.config.schema import SessionDeltas
from clawmark.engine.sync.transcript_progress import (
    Reached,
    decode,
    encode,
    is_due,
    leave_small_growth,
)
from clawmark.model.values import FileRow, FileState, SyncPlan
from clawmark.workspace.transcripts.files import TranscriptFiles

DEFAULT = SessionDeltas()
LINE = json.dumps({"type": "message", "message": {"role": "user", "content": "x"}}) + "\n"


@pytest.mark.parametrize(
    ("grown", "messages", "settings", "expected"),
    [
        (99_999, 49, DEFAULT, False),
        (100_000, 0, DEFAULT, True),
        (10, 50, DEFAULT, True),
        (0, 0, DEFAULT, False),
        (-5, 99, DEFAULT, False),
        (1, 0, SessionDeltas(delta_bytes=0), True),
        (1, 0, SessionDeltas(delta_messages=0), True),
        (0, 0, SessionDeltas(delta_bytes=0, delta_messages=0), False),
        (1, 0, SessionDeltas(delta_bytes=-1), True),
    ],
)
def test_growth_is_enough_by_bytes_or_by_messages(
    grown: int, messages: int, settings: SessionDeltas, expected: bool
) -> None:
    assert is_due(grown, messages, settings) is expected


@pytest.fixture
def sessions(tmp_path: Path) -> TranscriptFiles:
    folder = tmp_path / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    for name, count in {"little": 49, "many": 50, "known": 60, "shrunk": 3}.items():
        (folder / f"{name}.jsonl").write_text(LINE * count, encoding="utf-8")
    return TranscriptFiles(
        folder=str(folder), paths=(), workspace=str(tmp_path / "workspace"), clean=str
    )


def row(state: FileState, read: int) -> FileRow:
    return FileRow(state.path, "sessions", "", *state[2:], 0, 0, encode(Reached(read=read)))


def test_transcripts_that_grew_by_little_are_skipped_and_counted(sessions: TranscriptFiles) -> None:
    states = {Path(state.path).stem: state for state in sessions.scan().files}
    indexed = {
        states["known"].path: row(states["known"], len(LINE) * 50),
        states["shrunk"].path: row(states["shrunk"], len(LINE) * 9),
    }
    note = FileState(path="MEMORY.md", source="memory", size=5, mtime_ns=1, inode=1, device=1)
    plan = SyncPlan(
        add=(note, states["little"], states["many"]),
        check=(states["known"], states["shrunk"]),
        recheck=(),
        delete=("gone.md",),
        unchanged=0,
        kept=(),
    )
    kept, left = leave_small_growth(plan, indexed, sessions, DEFAULT)
    assert kept.add == (note, states["many"])
    assert kept.check == (states["shrunk"],)
    assert (kept.delete, left) == (("gone.md",), 2)


def test_a_transcript_that_is_gone_is_left_to_the_sync(sessions: TranscriptFiles) -> None:
    state = FileState(
        path="sessions/absent.jsonl", source="sessions", size=10, mtime_ns=1, inode=1, device=1
    )
    kept, left = leave_small_growth(
        SyncPlan(add=(state,), check=(), recheck=(), delete=(), unchanged=0, kept=()),
        {},
        sessions,
        DEFAULT,
    )
    assert (kept.add, left) == ((state,), 0)


def test_stored_progress_is_decoded_or_ignored() -> None:
    reached = Reached(
        read=5,
        lines=2,
        open=((1, 0, 3), (2, 3, 5)),
        pieces=0,
        checksum=7,
        said=2,
        loose=1,
        first="a",
        last="b",
        kind="codex",
    )
    assert decode(encode(reached)) == reached
    assert [decode(text) for text in ("", "[]x", "{}", "5", '["a","b",["c"]]', "[1,2,[[1]]]")] == [
        None
    ] * 6
