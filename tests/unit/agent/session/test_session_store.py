"""sessions.json keeps unknown fields, has one writer at a time, and survives damage."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import clawmark
from clawmark.agent.session.session import SessionEntry, SessionStore, fresh_fields, new_session_id
from clawmark.model.errors import WorkspaceError

KEY = "agent:main:main"

COUNTER = """
import sys
from clawmark.agent.session.session import SessionStore
store = SessionStore(sys.argv[1])
for _ in range(int(sys.argv[2])):
    store.change("agent:main:main", lambda entry: {"total_tokens": entry.total_tokens + 1})
"""


@pytest.fixture
def store(tmp_path: Path) -> SessionStore:
    return SessionStore(str(tmp_path / "sessions"))


def written(store: SessionStore) -> dict[str, dict[str, object]]:
    found: dict[str, dict[str, object]] = json.loads(Path(store.path).read_text(encoding="utf-8"))
    return found


def put(store: SessionStore, text: str) -> None:
    os.makedirs(store.folder, exist_ok=True)
    Path(store.path).write_text(text, encoding="utf-8")


def test_a_session_that_never_was_is_an_entry_with_defaults(store: SessionStore) -> None:
    assert store.get(KEY) == SessionEntry(KEY)
    assert not os.path.exists(store.folder)


def test_fields_are_kept_under_openclaws_names(store: SessionStore) -> None:
    entry = store.update(KEY, session_id="s1", total_tokens=5, memory_flush_compaction_count=0)
    assert entry.session_id == "s1"
    assert written(store) == {
        KEY: {"sessionId": "s1", "totalTokens": 5, "memoryFlushCompactionCount": 0}
    }
    assert store.update(KEY, total_tokens=None).total_tokens == 0
    assert "totalTokens" not in written(store)[KEY]


def test_what_others_wrote_stays(store: SessionStore) -> None:
    theirs = {
        "agent:main:telegram:group:1": {
            "sessionId": "g",
            "skillsSnapshot": {"prompt": "é\u2028", "n": [1, 2.5, None]},
        },
        KEY: {
            "sessionId": "s",
            "totalTokens": 7.0,
            "spawnedBy": "x",
            "updatedAt": "yesterday",
            "compactionCount": True,
        },
        "odd": [1, 2],
    }
    put(store, json.dumps(theirs))
    entry = store.get(KEY)
    assert (entry.session_id, entry.total_tokens, entry.updated_at, entry.compaction_count) == (
        "s",
        7,
        0,
        0,
    )
    store.update(KEY, updated_at=9)
    assert written(store) == {**theirs, KEY: {**theirs[KEY], "updatedAt": 9}}  # type: ignore[dict-item]
    assert list(written(store)) == list(theirs)


def test_a_change_that_decides_nothing_writes_nothing(store: SessionStore) -> None:
    assert store.change(KEY, lambda entry: None) == SessionEntry(KEY)
    assert not os.path.exists(store.path)


@pytest.mark.parametrize("text", ["", "{", "[]", "{" * 100_000, '"x"', "\x00"])
def test_damaged_file_is_moved_away_by_a_change_not_by_a_read(
    store: SessionStore, text: str
) -> None:
    put(store, text)
    assert store.get(KEY) == SessionEntry(KEY)
    assert Path(store.path).read_text(encoding="utf-8") == text
    store.update(KEY, session_id="new")
    assert store.get(KEY).session_id == "new"
    assert Path(f"{store.path}.damaged").read_text(encoding="utf-8") == text


def test_a_new_session_forgets_the_counters_and_keeps_the_rest(store: SessionStore) -> None:
    put(
        store,
        json.dumps(
            {
                KEY: {
                    "memoryFlushAt": 5,
                    "compactionCount": 3,
                    "chatType": "direct",
                    "model": "m",
                    "ended": True,
                }
            }
        ),
    )
    entry = store.update(KEY, **fresh_fields("s2", "/x/s2.jsonl", 77))
    assert (entry.session_id, entry.compaction_count, entry.memory_flush_at, entry.ended) == (
        "s2",
        0,
        0,
        False,
    )
    assert (entry.chat_type, entry.others["model"]) == ("direct", "m")


def test_ids_of_sessions_are_their_own() -> None:
    assert len({new_session_id() for _ in range(100)}) == 100


@pytest.mark.skipif(os.name == "nt", reason="modes")
def test_only_the_owner_can_read_it(store: SessionStore) -> None:
    previous = os.umask(0)
    try:
        store.update(KEY, session_id="s")
    finally:
        os.umask(previous)
    assert stat.S_IMODE(os.stat(store.path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(store.folder).st_mode) == 0o700


def test_changes_of_several_processes_all_count(store: SessionStore) -> None:
    env = {**os.environ, "PYTHONPATH": str(Path(next(iter(clawmark.__path__))).parent)}
    running = [
        subprocess.Popen([sys.executable, "-c", COUNTER, store.folder, "25"], env=env)
        for _ in range(4)
    ]
    assert [one.wait() for one in running] == [0] * 4
    assert store.get(KEY).total_tokens == 100


def test_a_folder_that_cannot_be_is_one_clear_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(WorkspaceError, match="cannot be used"):
        SessionStore(str(tmp_path / "file" / "sessions")).update(KEY, session_id="s")
