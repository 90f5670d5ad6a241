"""Two processes index the same files: the slower one does not undo what the faster one has done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.testing import HashingEmbedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    notes = tmp_path / "agent" / "memory"
    notes.mkdir(parents=True)
    (notes / "log.md").write_text("- first line\n", encoding="utf-8")
    (notes / "other.md").write_text("- something else\n", encoding="utf-8")
    return notes


@pytest.fixture
def pair(folder: Path, tmp_path: Path) -> Iterator[tuple[Memory, Memory]]:
    def opened() -> Memory:
        return Memory.open(
            folder.parent,
            state_dir=tmp_path / "state",
            embedder=HashingEmbedder(),
            background=False,
        )

    with opened() as slow, opened() as quick:
        slow.sync()
        yield slow, quick


def finds(memory: Memory, word: str) -> bool:
    return any(word in hit.snippet for hit in memory.search(word, freshen=False).hits)


def overtake(
    monkeypatch: pytest.MonkeyPatch, memory: Memory, verb: str, meanwhile: Callable[[], object]
) -> None:
    """Run something right after the first time that a memory has scanned its files."""
    original = getattr(memory.workspace, verb)
    waiting = [meanwhile]

    def slowly(*given: object) -> object:
        seen = original(*given)
        if waiting:
            waiting.pop()()
        return seen

    monkeypatch.setattr(memory.workspace, verb, slowly)


@pytest.mark.parametrize("force", [False, True])
def test_an_older_state_does_not_replace_a_newer_one(
    pair: tuple[Memory, Memory], folder: Path, monkeypatch: pytest.MonkeyPatch, force: bool
) -> None:
    slow, quick = pair
    (folder / "log.md").write_text("- first line\n- second line\n", encoding="utf-8")

    def meanwhile() -> None:
        (folder / "log.md").write_text("- first line\n- second line\n- zebra77\n", encoding="utf-8")
        quick.sync()

    overtake(monkeypatch, slow, "read_document", meanwhile)
    slow.sync(force=force)
    assert finds(quick, "zebra77") and finds(slow, "zebra77")
    assert slow.plan()[0].due == 0 and slow.verify().problems == ()


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize("name", ["log.md", "new.md"])
def test_a_file_indexed_again_by_another_process_is_not_deleted(
    pair: tuple[Memory, Memory],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    force: bool,
    name: str,
) -> None:
    slow, quick = pair
    (folder / "log.md").unlink()

    def meanwhile() -> None:
        (folder / name).write_text("- zebra77\n", encoding="utf-8")
        quick.sync()

    overtake(monkeypatch, slow, "scan", meanwhile)
    slow.sync(force=force)
    assert finds(quick, "zebra77")
    slow.sync()
    assert finds(quick, "zebra77") and slow.plan()[0].due == 0 and slow.verify().problems == ()
