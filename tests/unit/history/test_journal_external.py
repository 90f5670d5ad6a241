"""Which entries came from outside, as the gate of prompts asks."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from clawmark.history.journal import Journal, entry_hash
from clawmark.model.provenance import Origin, Trust

NOTE = "memory/2026-02-24.md"


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    path = str(tmp_path / "state/journal.jsonl")
    return Journal(path, lambda: datetime(2026, 2, 24, 12, tzinfo=UTC))


def write(journal: Journal, trust: Trust, text: str, outside: str = "") -> None:
    origin = Origin("agent", "tool", trust, session="agent:main:main", source="a page")
    journal.finish(journal.begin(origin, NOTE, text, outside=outside))


def test_only_external_entries_are_returned(journal: Journal) -> None:
    write(journal, "owner", "- mine")
    write(journal, "agent", "- concluded")
    write(journal, "external", "- 14:05 read on a page")
    hashes = [entry_hash(one) for one in ("mine", "concluded", "read on a page", "other")]
    assert journal.external(hashes) == {entry_hash("read on a page")}


def test_a_part_of_a_write_may_have_come_from_outside(journal: Journal) -> None:
    write(journal, "agent", "- concluded\n- read on a page", outside="- read on a page")
    hashes = [entry_hash(one) for one in ("concluded", "read on a page")]
    assert journal.external(hashes) == {entry_hash("read on a page")}


def test_what_the_user_wrote_too_is_the_users(journal: Journal) -> None:
    hashes = [entry_hash("PostgreSQL is nice")]
    write(journal, "external", "- PostgreSQL is nice")
    assert journal.external(hashes)
    write(journal, "owner", "- PostgreSQL is nice")
    assert not journal.external(hashes)


def test_a_write_that_was_never_finished_counts(journal: Journal) -> None:
    journal.begin(Origin("import", "import", "external"), NOTE, "- planted")
    assert journal.external([entry_hash("planted")])


def test_without_a_journal_nothing_is_external(journal: Journal) -> None:
    assert journal.external([entry_hash("anything")]) == frozenset()
    assert journal.version == (0, 0)


def test_the_version_changes_with_every_record(journal: Journal) -> None:
    versions = [journal.version]
    for text in ("- one", "- two"):
        write(journal, "owner", text)
        versions.append(journal.version)
    journal.rewrite(lambda record: False)
    assert len({*versions, journal.version}) == 4
