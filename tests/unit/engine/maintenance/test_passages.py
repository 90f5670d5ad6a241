"""The passages that the index holds of a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from clawmark import Memory


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    root = tmp_path / "agent"
    root.mkdir()
    body = "".join(f"## Part {n}\n\n{'A sentence about the ferry. ' * 60}\n\n" for n in (1, 2))
    (root / "MEMORY.md").write_text(f"# Facts\n\n{body}", encoding="utf-8")
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", background=False
    ) as opened:
        yield opened


def test_a_file_that_is_not_indexed_has_no_passages(memory: Memory) -> None:
    assert memory.passages("MEMORY.md") == ((), False)


def test_passages_have_their_lines_and_headings_in_order(memory: Memory) -> None:
    memory.sync()
    found = memory.passages("MEMORY.md")
    assert found.is_current
    assert len(found.passages) > 1
    assert [one.start_line for one in found.passages] == sorted(
        one.start_line for one in found.passages
    )
    assert any(one.heading.endswith("Part 2") for one in found.passages)


def test_passages_of_a_file_that_changed_since_are_not_current(
    memory: Memory, tmp_path: Path
) -> None:
    memory.sync()
    with (tmp_path / "agent" / "MEMORY.md").open("a", encoding="utf-8") as file:
        file.write("- one more\n")
    found = memory.passages("MEMORY.md")
    assert found.passages
    assert not found.is_current
