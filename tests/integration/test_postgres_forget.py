"""What is forgotten is gone from the tables in PostgreSQL, too."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
from commands import Place, new_place
from forget_scene import CANARY, SECRET, traces

KEPT = "Ann prefers tea in the morning and coffee never"


def place_with_postgres(folder: Path, uri: str) -> Place:
    place = new_place(folder)
    place.state.mkdir(mode=0o700, exist_ok=True)
    settings = {"memorySearch": {"provider": "static", "store": {"uri": uri}}}
    (place.state / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
    place.write("MEMORY.md", f"# Facts\n\n- {KEPT}.\n")
    place.write("memory/house.md", f"# The house\n\n- {SECRET}.\n")
    assert place.run("remember", "--force", SECRET).code == 0
    assert place.run("index").code == 0
    return place


def rows(uri: str) -> dict[str, list[str]]:
    """Return every row of every table of the index, as text; bytes are hexadecimal."""
    with psycopg.connect(uri) as connection:
        tables = connection.execute(
            "SELECT tablename FROM pg_tables WHERE schemaname = 'clawmark'"
        ).fetchall()
        return {
            table: [row for (row,) in connection.execute(f"SELECT t::text FROM clawmark.{table} t")]
            for (table,) in tables
        }


def all_of(uri: str, query: str, *parameters: object) -> set[object]:
    """Return the values of a query with one column."""
    with psycopg.connect(uri) as connection:
        return {value for (value,) in connection.execute(query, parameters)}


def tables_with(uri: str, text: str) -> list[str]:
    """Return the tables that have a text, as it is or as bytes."""
    wanted = (text.lower(), text.encode().hex(), text.lower().encode().hex())
    return sorted(
        table
        for table, some in rows(uri).items()
        if any(form in row.lower() for row in some for form in wanted)
    )


def test_forget_removes_text_words_and_vectors_from_the_database(
    tmp_path: Path, postgres_uri: str
) -> None:
    place = place_with_postgres(tmp_path, postgres_uri)
    before = rows(postgres_uri)
    assert tables_with(postgres_uri, CANARY) == ["chunks"]
    having = "FROM clawmark.chunks WHERE position(%s::bytea IN text) > 0"
    keys = all_of(postgres_uri, f"SELECT key {having}", CANARY.encode())
    hashes = all_of(postgres_uri, f"SELECT hash {having}", CANARY.encode())
    assert len(keys) == len(hashes) == 2
    assert hashes <= all_of(postgres_uri, "SELECT hash FROM clawmark.cache")
    done = place.run("forget", CANARY, "--yes")
    assert done.code == 0, done.err
    after = rows(postgres_uri)
    assert tables_with(postgres_uri, CANARY) == []
    assert traces(place.workspace, place.state) == []
    for table in ("chunks", "words", "vectors"):
        assert not keys & all_of(postgres_uri, f"SELECT key FROM clawmark.{table}"), table
    assert not hashes & all_of(postgres_uri, "SELECT hash FROM clawmark.cache")
    assert len(after["cache"]) <= len(after["chunks"])
    assert len(after["terms"]) < len(before["terms"])
    assert place.run("index", "--force").code == 0
    assert tables_with(postgres_uri, CANARY) == []
    found = place.run("search", "what does Ann prefer in the morning", "--json")
    assert found.code == 0 and KEPT in found.out


def test_the_plan_says_what_the_server_may_keep(tmp_path: Path, postgres_uri: str) -> None:
    place = place_with_postgres(tmp_path, postgres_uri)
    shown = place.run("forget", CANARY, "--dry-run")
    assert shown.code == 0 and "VACUUM" in shown.out
    assert tables_with(postgres_uri, CANARY) == ["chunks"]
