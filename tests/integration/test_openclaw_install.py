"""An existing OpenClaw installation is read where it is, never written, and its vectors are not
paid for twice.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from array import array
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from embeddings import EmbeddingServer

from clawmark import Memory
from clawmark.model.values import Identity
from clawmark.text.chunking.chunks import chunk_text

LOG = "# 2026-02-24\n\n- The heron nests by pier 9.\n- Billing moves to PostgreSQL.\n"
SAID = {
    "type": "message",
    "timestamp": "2026-02-24T10:00:00Z",
    "message": {"role": "user", "content": "ask about walruses"},
}


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=1536) as running:
        yield running


def install(home: Path, search: str) -> Path:
    """An OpenClaw state folder with a workspace, an agent and a session; `search` is its memory
    search section.
    """
    state = home / ".openclaw"
    (state / "workspace" / "memory").mkdir(parents=True)
    (state / "agents" / "main" / "sessions").mkdir(parents=True)
    (state / "memory").mkdir()
    (state / "workspace" / "MEMORY.md").write_text(
        "# Facts\n\nPrefers short answers.\n", encoding="utf-8"
    )
    (state / "workspace" / "memory" / "2026-02-24.md").write_text(LOG, encoding="utf-8")
    (state / "agents" / "main" / "sessions" / "s1.jsonl").write_text(
        json.dumps(SAID) + "\n", encoding="utf-8"
    )
    (state / "openclaw.json").write_text(
        "{ // OpenClaw's own\n" + search + "\n}\n", encoding="utf-8"
    )
    return state


def old_keys(inner: str) -> str:
    return f"agents: {{ defaults: {{ memorySearch: {{ {inner} }} }} }},"


def new_keys(inner: str) -> str:
    return f"memory: {{ search: {{ {inner} }} }},"


def foreign_files(state: Path) -> dict[str, tuple[str, int, int]]:
    """Everything that is OpenClaw's: hash, time and mode of each file and folder outside
    `clawmark/`.
    """
    found = {}
    for path in sorted(state.rglob("*")):
        name = path.relative_to(state).as_posix()
        if name.split("/")[0] != "clawmark":
            info = path.lstat()
            digest = hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""
            found[name] = (digest, info.st_mtime_ns if path.is_file() else 0, info.st_mode)
    return found


def clawmark(home: Path, *words: str) -> subprocess.CompletedProcess[str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("CLAWMARK_", "OPENCLAW_"))
    }
    return subprocess.run(
        [sys.executable, "-m", "clawmark", "--state-dir", str(home / ".openclaw"), *words],
        capture_output=True,
        text=True,
        env={**kept, "HOME": str(home)},
        cwd=home,
        check=False,
    )


@pytest.mark.parametrize("keys", [old_keys, new_keys])
def test_every_reading_verb_leaves_the_installation_byte_for_byte(
    tmp_path: Path, keys: object
) -> None:
    assert callable(keys)
    state = install(tmp_path, keys('provider: "none", sources: ["memory", "sessions"]'))
    before = foreign_files(state)
    for words in (
        ["index"],
        ["search", "heron"],
        ["search", "walruses"],
        ["get", "memory/2026-02-24.md"],
        ["status"],
        ["doctor"],
        ["verify"],
        ["config", "list"],
        ["sessions"],
        ["prompt"],
        ["index", "--force"],
    ):
        ran = clawmark(tmp_path, *words)
        assert ran.returncode in (0, 1), (words, ran.stderr)
        assert "Traceback" not in ran.stderr
        assert foreign_files(state) == before, words
    assert (state / "clawmark" / "memory" / "main.sqlite").exists()
    assert "pier 9" in clawmark(tmp_path, "search", "heron").stdout
    assert "walruses" in clawmark(tmp_path, "search", "walruses").stdout


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_nothing_of_the_installation_is_even_opened_for_writing(tmp_path: Path) -> None:
    state = install(tmp_path, old_keys('provider: "none"'))
    calls = (
        "trace=openat,openat2,open,creat,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat"
    )
    traced = subprocess.run(
        [
            "strace",
            "-f",
            "-y",
            "-e",
            calls,
            sys.executable,
            "-m",
            "clawmark",
            "--state-dir",
            str(state),
            "index",
        ],
        capture_output=True,
        text=True,
        env={**os.environ, "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )
    writing = [line for line in traced.stderr.split("\n") if str(state) in line and _writes(line)]
    assert [line for line in writing if f"{state}/clawmark" not in line] == []
    assert writing, "the index was written, and the trace shows it"


def _writes(line: str) -> bool:
    return any(
        word in line for word in ("O_WRONLY", "O_RDWR", "O_CREAT", "rename", "unlink", "mkdir")
    )


def march_database(path: Path, vectors: dict[str, list[float]], identity: Identity) -> None:
    db = apsw.Connection(str(path))
    db.execute(
        "CREATE TABLE embedding_cache (provider TEXT, model TEXT, provider_key TEXT, hash TEXT, "
        "embedding TEXT, "
        "dims INTEGER, updated_at INTEGER, PRIMARY KEY (provider, model, provider_key, hash))"
    )
    for text, vector in vectors.items():
        row = (*identity[:3], text, json.dumps(vector), len(vector))
        db.execute("INSERT INTO embedding_cache VALUES (?, ?, ?, ?, ?, ?, 0)", row)
    db.close()


def september_database(path: Path, vectors: dict[str, list[float]], identity: Identity) -> None:
    path.parent.mkdir(parents=True)
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE memory_index_meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT")
    facts = {
        "provider": identity.provider,
        "model": identity.model,
        "providerKey": identity.provider_key,
    }
    db.execute(
        "INSERT INTO memory_index_meta VALUES ('memory_index_meta_v1', ?)", (json.dumps(facts),)
    )
    db.execute(
        "CREATE TABLE memory_index_chunks (chunk_rowid INTEGER PRIMARY KEY, id TEXT UNIQUE, path "
        "TEXT, source TEXT, "
        "start_line INTEGER, end_line INTEGER, hash TEXT, model TEXT, text TEXT, embedding BLOB, "
        "updated_at INTEGER) STRICT"
    )
    for number, (text, vector) in enumerate(vectors.items(), 1):
        row = (number, str(number), text, identity.model, array("d", vector).tobytes())
        db.execute(
            "INSERT INTO memory_index_chunks VALUES (?, ?, 'MEMORY.md', 'memory', 1, 1, ?, ?, "
            "'', ?, 0)",
            row,
        )
    db.close()


@pytest.mark.parametrize("kind", ["march", "september"])
def test_after_the_import_the_next_index_embeds_nothing(
    tmp_path: Path, server: EmbeddingServer, kind: str
) -> None:
    state = install(
        tmp_path,
        old_keys(f'provider: "openai", remote: {{ baseUrl: "{server.url}", apiKey: "not-a-key" }}'),
    )
    (state / "clawmark").mkdir(mode=0o700)  # OpenClaw would not start with a key it does not know
    (state / "clawmark" / "clawmark.json").write_text(
        '{ memorySearch: { chunking: { mode: "lines" } } }\n'
    )
    with Memory.open(state_dir=state) as memory:
        identity = memory.choice.embedders[-1].identity
    texts = [
        (state / "workspace" / name).read_text(encoding="utf-8")
        for name in ("MEMORY.md", "memory/2026-02-24.md")
    ]
    hashes = [chunk.hash for text in texts for chunk in chunk_text(text, "lines", 400, 80)]
    vectors = {
        text: [float((number + place) % 7 + 1) for place in range(1536)]
        for number, text in enumerate(hashes)
    }
    if kind == "march":
        march_database(state / "memory" / "main.sqlite", vectors, identity)
    else:
        september_database(
            state / "agents" / "main" / "agent" / "openclaw-agent.sqlite", vectors, identity
        )
    before = foreign_files(state)
    ran = clawmark(tmp_path, "import", "openclaw", str(state))
    assert ran.returncode == 0, ran.stderr
    assert f"{len(hashes)} vectors kept" in ran.stdout
    report = clawmark(tmp_path, "index", "--json")
    assert report.returncode == 0, report.stderr
    assert server.requests == []
    assert json.loads(report.stdout)["dueVectors"] == 0
    assert foreign_files(state) == before
