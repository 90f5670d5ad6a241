"""The script on the page about claude-mem exports a database of claude-mem."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

from docblocks import ROOT, blocks

PAGE = ROOT / "docs" / "how-to" / "migrate" / "claude-mem.md"
SCHEMA = """
CREATE TABLE observations (
    id INTEGER PRIMARY KEY AUTOINCREMENT,
    memory_session_id TEXT NOT NULL,
    project TEXT NOT NULL,
    text TEXT,
    type TEXT NOT NULL,
    title TEXT,
    subtitle TEXT,
    facts TEXT,
    narrative TEXT,
    concepts TEXT,
    files_read TEXT,
    files_modified TEXT,
    prompt_number INTEGER,
    created_at TEXT NOT NULL,
    created_at_epoch INTEGER NOT NULL
)
"""
"""The columns that claude-mem 13.25.3 has had from the beginning; it has added others since."""

COLUMNS = (
    "memory_session_id, project, text, type, title, subtitle, facts, narrative, created_at, "
    "created_at_epoch"
)


def test_the_script_writes_each_observation_to_the_file_of_its_project_and_day(
    tmp_path: Path,
) -> None:
    rows = [
        ("m", "billing", None, "decision", "PostgreSQL", "over MySQL", '["Version 16"]', "Chosen."),
        ("m", "/srv/shop", "An old one.", "change", None, None, None, None),
    ]
    with sqlite3.connect(tmp_path / "claude-mem.db") as database:
        database.execute(SCHEMA)
        for number, row in enumerate(rows):
            database.execute(
                f"INSERT INTO observations ({COLUMNS}) VALUES ({', '.join('?' * 10)})",
                (*row, f"2026-11-1{number}T10:00:00.000Z", number),
            )
    database.close()
    (script,) = [block.text for block in blocks(PAGE) if block.language == "python"]

    subprocess.run(
        [sys.executable, "-c", script, "claude-mem.db"], cwd=tmp_path, check=True, timeout=60
    )

    written = {
        file.relative_to(tmp_path / "claude-mem-export").as_posix(): file.read_text("utf-8")
        for file in (tmp_path / "claude-mem-export").rglob("*.md")
    }
    assert written == {
        "billing/2026-11-10.md": "## PostgreSQL\n\nover MySQL\n\nChosen.\n\n- Version 16\n\n",
        "srv-shop/2026-11-11.md": "## change\n\nAn old one.\n\n",
    }
