"""Entries from outside are found in the journal without parsing it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from clawmark.history.external_entries import ExternalEntries
from clawmark.history.journal import Journal, entry_hash
from clawmark.model.provenance import Origin, Trust

NOTE = "memory/2026-02-24.md"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    path = str(tmp_path / "state/journal.jsonl")
    return Journal(path, lambda: datetime(2026, 2, 24, 12, tzinfo=UTC))


def write(journal: Journal, trust: Trust, text: str) -> None:
    origin = Origin("agent", "tool", trust, session="agent:main:main", source="a page")
    journal.finish(journal.begin(origin, NOTE, text))


def test_only_external_entries_are_found(journal: Journal) -> None:
    write(journal, "owner", "- mine")
    write(journal, "agent", "- concluded")
    write(journal, "external", "- 14:05 read on a page\n\nand a paragraph")
    hashes = [entry_hash(one) for one in ("mine", "concluded", "read on a page", "other")]
    found = ExternalEntries(journal.path).among(hashes)
    assert found == {entry_hash("read on a page")}


def test_what_the_user_wrote_too_is_the_users(journal: Journal) -> None:
    write(journal, "external", "- PostgreSQL is nice")
    entries = ExternalEntries(journal.path)
    hashes = [entry_hash("PostgreSQL is nice")]
    assert entries.among(hashes)
    write(journal, "owner", "- PostgreSQL is nice")
    assert not entries.among(hashes), "the same object reads what was added since"


def test_a_record_that_was_never_finished_counts(journal: Journal) -> None:
    journal.begin(Origin("import", "import", "external"), NOTE, "- planted")
    assert ExternalEntries(journal.path).among([entry_hash("planted")])


def test_a_torn_line_is_read_again_when_it_is_complete(journal: Journal) -> None:
    write(journal, "external", "- first")
    whole = Path(journal.path).read_bytes()
    write(journal, "external", "- second")
    complete = Path(journal.path).read_bytes()
    Path(journal.path).write_bytes(complete[: len(whole) + 40])
    entries = ExternalEntries(journal.path)
    assert entries.among([entry_hash("first")])
    assert not entries.among([entry_hash("second")])
    Path(journal.path).write_bytes(complete)
    assert entries.among([entry_hash("second")])


def test_a_rewritten_journal_is_read_again(journal: Journal) -> None:
    write(journal, "external", "- forgotten")
    entries = ExternalEntries(journal.path)
    assert entries.among([entry_hash("forgotten")])
    journal.rewrite(lambda record: False)
    assert not entries.among([entry_hash("forgotten")])


def test_without_a_journal_nothing_is_external(tmp_path: Path) -> None:
    entries = ExternalEntries(str(tmp_path / "none.jsonl"))
    assert not entries.among([entry_hash("anything")])
    assert entries.version == (0, 0)


def test_the_journal_and_this_search_agree(journal: Journal) -> None:
    levels: tuple[Trust, ...] = ("owner", "agent", "external")
    for number in range(60):
        write(journal, levels[number % 3], f"- entry {number % 25}")
    entries = ExternalEntries(journal.path)
    for number in range(25):
        text = f"- entry {number}"
        is_external = journal.look_up(text).trust == "external"
        assert bool(entries.among([entry_hash(text)])) is is_external, text
