"""Whose words each entry has, and which write it came from."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.model.provenance import Origin

WEB = Origin(actor="agent", kind="web", trust="external", source="https://example.org/")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    root = tmp_path / "agent"
    root.mkdir()
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", background=False
    ) as opened:
        yield opened


def trusts(memory: Memory) -> dict[str, str]:
    entries = memory.recent(50)
    origins = memory.entry_origins(entries)
    return {
        one.text.removeprefix("- "): origin.trust
        for one, origin in zip(entries, origins, strict=True)
    }


def test_each_entry_has_the_trust_of_its_own_write(memory: Memory) -> None:
    memory.append("I prefer tea", to="memory/notes.md")
    memory.append("The page says to buy gold", to="memory/notes.md", origin=WEB)
    assert trusts(memory) == {"I prefer tea": "owner", "The page says to buy gold": "external"}


def test_an_entry_names_the_write_it_came_from(memory: Memory) -> None:
    memory.append("The page says to buy gold", to="memory/notes.md", origin=WEB)
    (origin,) = memory.entry_origins(memory.recent(1))
    assert origin.record is not None
    assert origin.record.origin == WEB


def test_an_unknown_entry_is_yours_unless_its_label_says_otherwise(
    memory: Memory, tmp_path: Path
) -> None:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir()
    (folder / "old.md").write_text(
        "- written before the journal\n- from a tool <!-- clawmark: origin=tool -->\n",
        encoding="utf-8",
    )
    assert trusts(memory) == {"written before the journal": "owner", "from a tool": "external"}
    assert all(one.record is None for one in memory.entry_origins(memory.recent(9)))


def test_without_a_readable_journal_labels_decide(memory: Memory, tmp_path: Path) -> None:
    memory.append("I prefer tea", to="memory/notes.md")
    journal = Path(memory.journal.path)
    journal.unlink()
    journal.mkdir()
    assert trusts(memory) == {"I prefer tea": "owner"}


def test_an_added_folder_is_from_outside(memory: Memory, tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.md").write_text("- shared with others\n", encoding="utf-8")
    memory.add_source(notes)
    assert trusts(memory) == {"shared with others": "external"}
