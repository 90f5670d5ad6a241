"""Many sessions closed at once, by many processes, some of them killed in the middle: each has one
note, and none is lost.

All sessions have the same transcript, so that all notes want the same name. Whoever was killed is
run again, as the next start of a host would: then every session has exactly one note, whole, and
sessions.json names it."""

from __future__ import annotations

import json
import os
import random
import select
import signal
import subprocess
import sys
from pathlib import Path

from frame import Outcome

import clawmark
from clawmark.agent.session.session import SessionStore, fresh_fields

THREADS = 10
CLOSER = """
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from clawmark.agent.session.session import SessionStore
from clawmark.agent.notes.session_note import NoteParts, NoteSettings, note_session
from clawmark.text.secrets.redact import Redactor
from clawmark.workspace import Workspace

root, locks, folder, *keys = sys.argv[1:]
parts = NoteParts(
    None,
    SessionStore(folder),
    Workspace(root, lock_dir=locks),
    Redactor(),
    NoteSettings(),
    lambda: datetime(2026, 11, 15, 12, 0, tzinfo=UTC),
)
print("ready", flush=True)
sys.stdin.readline()
with ThreadPoolExecutor(len(keys)) as pool:
    for outcome in pool.map(lambda key: note_session(parts, key, reason="exit"), keys):
        print(type(outcome).__name__, flush=True)
"""


def run(work: Path, full: bool, seed: int) -> Outcome:
    chance = random.Random(seed)
    sessions = 200 if full else 20
    keys = [f"agent:main:telegram:direct:{number:03}" for number in range(sessions)]
    store = prepare(work, keys)
    groups = [keys[start : start + THREADS] for start in range(0, sessions, THREADS)]
    killed = close_all(work, groups, chance, kill=True)
    noted = len(list((work / "workspace" / "memory").glob("*.md")))
    close_all(work, groups, chance, kill=False)
    complaints = check(work, store, keys)
    facts: dict[str, object] = {
        "sessions": sessions,
        "processes": len(groups),
        "killed": killed,
        "notesBeforeTheRestart": noted,
    }
    return Outcome(sessions - len(complaints), len(complaints), facts, tuple(complaints))


def prepare(work: Path, keys: list[str]) -> SessionStore:
    (work / "workspace" / "memory").mkdir(parents=True)
    transcript = work / "t.jsonl"
    message = {"role": "user", "content": "Let us take PostgreSQL for billing."}
    transcript.write_text(
        json.dumps({"type": "message", "message": message}) + "\n", encoding="utf-8"
    )
    store = SessionStore(str(work / "sessions"))
    for key in keys:
        store.update(key, **fresh_fields(f"id-{key[-3:]}", str(transcript), 1))
    return store


def close_all(work: Path, groups: list[list[str]], chance: random.Random, *, kill: bool) -> int:
    """Let every group of sessions be closed by a process of its own, all at the same moment; how
    many were killed.
    """
    env = {**os.environ, "PYTHONPATH": str(Path(next(iter(clawmark.__path__))).parent)}
    folders = [str(work / name) for name in ("workspace", "locks", "sessions")]
    command = [sys.executable, "-c", CLOSER, *folders]
    running = [
        subprocess.Popen([*command, *group], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        for group in groups
    ]
    for one in running:
        assert one.stdout is not None
        one.stdout.readline()
    for one in running:
        assert one.stdin is not None
        one.stdin.write(b"go\n")
        one.stdin.flush()
    doomed = chance.sample(running, max(1, len(running) // 3)) if kill else []
    for one in doomed:
        assert one.stdout is not None
        for _ in range(chance.randrange(THREADS - 1)):  # somewhere in the middle of its work
            one.stdout.readline()
        select.select([], [], [], chance.random() / 100)
        one.send_signal(signal.SIGKILL)
    for one in running:
        one.communicate()
    return len(doomed)


def check(work: Path, store: SessionStore, keys: list[str]) -> list[str]:
    notes = {
        path.name: path.read_text(encoding="utf-8")
        for path in (work / "workspace" / "memory").glob("*.md")
    }
    complaints = [
        f"{name} is torn"
        for name, text in notes.items()
        if not text.endswith("> Let us take PostgreSQL for billing.\n")
    ]
    for key in keys:
        mine = [
            name for name, text in notes.items() if f"- **Session ID**: id-{key[-3:]}\n" in text
        ]
        if len(mine) != 1:
            complaints.append(f"{key} has {len(mine)} notes: {mine}")
        elif store.get(key).session_note != f"memory/{mine[0]}":
            complaints.append(
                f"{key} is recorded with {store.get(key).session_note!r}, and has {mine[0]}"
            )
    return complaints
