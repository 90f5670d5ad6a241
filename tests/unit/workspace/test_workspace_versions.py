"""A replace keeps the last versions, and refuses masks and texts that drop most of a file."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.model.errors import WorkspaceError, WriteConflict

OLD = "# Facts\n\n" + "".join(f"- Fact {number}\n" for number in range(20))


@pytest.fixture
def memory(tmp_path: Path) -> Memory:
    (tmp_path / "agent").mkdir()
    (tmp_path / "agent" / "MEMORY.md").write_text(OLD, encoding="utf-8")
    return Memory.open(tmp_path / "agent", state_dir=tmp_path / "state", provider="none")


def hash_of(memory: Memory) -> str:
    exact = memory.workspace.read_exact("MEMORY.md")
    assert exact is not None
    return exact.hash


def test_the_last_three_versions_are_kept_readable_by_the_owner_only(
    memory: Memory, tmp_path: Path
) -> None:
    for number in range(5):
        memory.replace("MEMORY.md", OLD + f"- Edit {number}\n", hash_of(memory))
    (folder,) = (tmp_path / "state" / "versions").iterdir()
    texts = [file.read_text(encoding="utf-8") for file in sorted(folder.iterdir())]
    assert texts == [OLD + f"- Edit {number}\n" for number in (1, 2, 3)]
    assert {stat.S_IMODE(file.stat().st_mode) for file in folder.iterdir()} == {0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_conflict_names_both_hashes_and_keeps_no_version(memory: Memory, tmp_path: Path) -> None:
    base = hash_of(memory)
    new = memory.replace("MEMORY.md", OLD + "- Mine\n", base)
    with pytest.raises(WriteConflict) as caught:
        memory.replace("MEMORY.md", OLD + "- Yours\n", base)
    assert (caught.value.base_hash, caught.value.current_hash) == (base, new)
    (folder,) = (tmp_path / "state" / "versions").iterdir()
    assert len(list(folder.iterdir())) == 1


def test_a_text_that_drops_most_lines_needs_force(memory: Memory) -> None:
    with pytest.raises(WorkspaceError, match="drops 19 of its 21 lines"):
        memory.replace("MEMORY.md", "# Facts\n\n- Fact 1\n", hash_of(memory))
    memory.replace("MEMORY.md", "# Facts\n\n- Fact 1\n", hash_of(memory), force=True)


def test_a_conflict_comes_before_every_other_reason(memory: Memory) -> None:
    with pytest.raises(WriteConflict):
        memory.replace("MEMORY.md", "# Nothing left [redacted:openai]\n", "0" * 64)


def test_a_short_file_may_be_rewritten_as_a_whole(memory: Memory, tmp_path: Path) -> None:
    first = memory.replace("memory/short.md", "one\ntwo\nthree\n", "")
    second = memory.replace("memory/short.md", "other\n", first)
    memory.replace("memory/short.md", "1\n2\n3\n4\n", second)
    with pytest.raises(WorkspaceError, match="drops 3 of its 4 lines"):
        exact = memory.workspace.read_exact("memory/short.md")
        assert exact is not None
        memory.replace("memory/short.md", "1\n", exact.hash)


def test_a_mask_is_refused_even_with_force(memory: Memory) -> None:
    with pytest.raises(WorkspaceError, match="redaction mask"):
        memory.replace("MEMORY.md", OLD + "- key [redacted:openai]\n", hash_of(memory), force=True)


def test_a_new_file_needs_no_version(memory: Memory, tmp_path: Path) -> None:
    memory.replace("memory/new.md", "hello\n", "")
    assert not (tmp_path / "state" / "versions").exists()
