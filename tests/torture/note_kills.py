"""A session is closed by a process that is killed at each call it makes, and closed again: it has
one note, whole, recorded.

The moment that matters lies between the note on disk and the line in sessions.json that says so.
"""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path

from frame import Outcome
from straced import ended, killed, points, python, why_not

from clawmark.agent.session.session import SessionStore, fresh_fields

KEY = "agent:main:main"
BEGIN = "the closing begins"
EVERY = 12
WORDS = "Let us take PostgreSQL for billing."

CLOSER = f"""
import os, sys
from datetime import UTC, datetime
from clawmark.agent.session.session import SessionStore
from clawmark.agent.notes.session_note import NoteParts, NoteSettings, note_session
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace
place = sys.argv[1]
workspace = Workspace(place + "/ws", lock_dir=place + "/locks")
parts = NoteParts(None, SessionStore(place + "/sessions"), workspace, Redactor(), NoteSettings(),
                  lambda: datetime(2026, 11, 15, 12, 0, tzinfo=UTC))
os.write(2, b"{BEGIN}\\n")
print(type(note_session(parts, "{KEY}", reason="exit")).__name__)
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    if reason := why_not():
        return Outcome(0, 0, {}, skipped=reason)
    (work / "closer.py").write_text(CLOSER, encoding="utf-8")
    found = points(closing(work, new_place(work)), BEGIN, work / "trace")
    tally: Counter[str] = Counter()
    complaints: list[str] = []
    struck_at = found if full else found[seed % EVERY :: EVERY]
    for point in struck_at:
        place = new_place(work)
        done = killed(closing(work, place), point)
        tally["killed"] += done.code != 0
        tally["written and not recorded"] += bool(notes_in(place)) and not recorded_in(place)
        again = ended(closing(work, place))
        tally[f"then {again.out.strip()}"] += 1
        complaints += [f"{point}: {what}" for what in wrong_with(place, again.code)]
    return Outcome(
        len(struck_at) - len(complaints),
        len(complaints),
        {"points": len(found), **tally},
        tuple(complaints),
    )


def closing(work: Path, place: Path) -> list[str]:
    return python(str(work / "closer.py"), str(place))


def new_place(work: Path) -> Path:
    place = work / "place"
    shutil.rmtree(place, ignore_errors=True)
    (place / "ws" / "memory").mkdir(parents=True)
    message = f'{{"type":"message","message":{{"role":"user","content":"{WORDS}"}}}}\n'
    (place / "t.jsonl").write_text(message, encoding="utf-8")
    SessionStore(str(place / "sessions")).update(
        KEY, **fresh_fields("s1", str(place / "t.jsonl"), 1)
    )
    return place


def notes_in(place: Path) -> list[Path]:
    return list((place / "ws" / "memory").glob("*.md"))


def recorded_in(place: Path) -> str:
    return SessionStore(str(place / "sessions")).get(KEY).session_note


def wrong_with(place: Path, code: int) -> list[str]:
    found = notes_in(place)
    if code != 0 or len(found) != 1:
        return [f"exit {code}, {len(found)} notes"]
    if not found[0].read_text(encoding="utf-8").endswith(f"> {WORDS}\n"):
        return ["the note is torn"]
    return (
        []
        if recorded_in(place) == f"memory/{found[0].name}"
        else [f"recorded as {recorded_in(place)!r}"]
    )
