"""What a sync records of text that was not written through Clawmark, and where hits came from."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.engine.sync.run import MOST_RECORDED
from clawmark.history.entry_index import MOST_UNCOVERED
from clawmark.history.journal import Journal
from clawmark.model.provenance import JournalRecord, Origin

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
PAGE = Origin(actor="agent", kind="web", trust="external", source="https://example.org")
COLD_SEARCH = """
import sys
from clawmark.cli import main
code = main(["search", "tea", "-w", sys.argv[1], "--state-dir", sys.argv[2], *sys.argv[3:]])
loaded = [name for name in sys.modules if name.startswith(("clawmark.history", "dulwich"))]
print("loaded:", *sorted(loaded))
"""


def opened(tmp_path: Path) -> Memory:
    (tmp_path / "ws" / "memory").mkdir(parents=True, exist_ok=True)
    return Memory.open(
        tmp_path / "ws",
        state_dir=tmp_path / "state",
        provider="none",
        clock=lambda: NOW,
        overrides={"memory.review": "off"},
        background=False,
    )


def given(tmp_path: Path, path: str, text: str) -> None:
    file = tmp_path / "ws" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def records(memory: Memory) -> list[JournalRecord]:
    return list(memory.journal.records())


def trust_of(memory: Memory, query: str) -> str:
    origin = memory.search(query, explain=True).hits[0].origin
    assert origin is not None
    return origin.trust if origin.origins else "unknown"


def test_text_written_with_an_editor_is_one_record_for_each_file(tmp_path: Path) -> None:
    given(tmp_path, "MEMORY.md", "# Facts\n\n- Carla prefers tea\n")
    given(tmp_path, "memory/2026-11-15.md", "- Ben prefers water\n- Ann sings\n")
    with opened(tmp_path) as memory:
        memory.sync()
        first = {one.path: len(one.entries) for one in records(memory)}
        assert first == {"MEMORY.md": 2, "memory/2026-11-15.md": 2}
        given(tmp_path, "MEMORY.md", "# Facts\n\n- Carla prefers tea\n- Dora paints\n")
        memory.sync()
        *_, last = records(memory)
        assert (last.path, len(last.entries), last.origin.kind) == ("MEMORY.md", 1, "edited")
        memory.sync()
        memory.sync(force=True)
        assert len(records(memory)) == 3


def test_a_large_workspace_that_was_there_before_is_not_recorded(tmp_path: Path) -> None:
    for number in range(MOST_RECORDED + 1):
        given(tmp_path, f"memory/note-{number}.md", f"- The heron number {number}\n- Tea\n")
    with opened(tmp_path) as memory:
        memory.sync()
        assert records(memory) == []
        assert trust_of(memory, "heron") == "unknown"
        given(tmp_path, "memory/note-7.md", "- The heron number 7\n- Tea\n- Coffee\n")
        memory.sync()
        (record,) = records(memory)
        assert (record.path, len(record.entries)) == ("memory/note-7.md", 3)


def test_a_lost_index_brings_no_new_records(tmp_path: Path) -> None:
    given(tmp_path, "MEMORY.md", "- Carla prefers tea\n")
    with opened(tmp_path) as memory:
        memory.sync()
        index = Path(memory.status().index_path)
    index.unlink()
    with opened(tmp_path) as memory:
        memory.sync()
        assert len(records(memory)) == 1


def test_a_line_that_is_moved_keeps_its_origin(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("The osprey hunts at dawn", origin=PAGE)
        memory.sync()
        given(tmp_path, "memory/2026-11-16.md", "# 2026-11-16\n")
        given(tmp_path, "MEMORY.md", "* The OSPREY hunts  at dawn.\n\n- Carla prefers tea\n")
        memory.sync()
        assert trust_of(memory, "osprey") == "external"
        (hit, *_) = memory.search("osprey", explain=True).hits
        assert hit.origin is not None
        kinds = {one.origin.kind: one.origin.source for one in hit.origin.origins}
        assert kinds == {"web": "https://example.org", "edited": ""}


def test_a_changed_import_and_a_labelled_entry_are_not_taken_for_the_users_words(
    tmp_path: Path,
) -> None:
    given(tmp_path, "memory/imports/chatgpt/birds.md", "The heron nests by the pier.\n")
    label = "<!-- clawmark: origin=tool session=agent:main:main -->"
    given(tmp_path, "memory/2026-11-15.md", f"- The osprey hunts {label}\n- Carla drinks tea\n")
    with opened(tmp_path) as memory:
        memory.sync()
        assert trust_of(memory, "heron") == "external"
        found = {one.origin.trust for one in records(memory) if "11-15" in one.path}
        assert found == {"owner", "external"}
        assert memory.journal.look_up("- Carla drinks tea").trust == "owner"


def test_folders_that_were_added_are_not_recorded(tmp_path: Path) -> None:
    (tmp_path / "vault").mkdir()
    (tmp_path / "vault" / "plan.md").write_text("The ferry leaves at nine.\n", encoding="utf-8")
    with opened(tmp_path) as memory:
        memory.add_source(tmp_path / "vault")
        (hit,) = memory.search("ferry", explain=True).hits
        assert hit.path == "vault:plan.md" and hit.origin is None
        assert records(memory) == []


def test_a_replaced_file_keeps_the_origins_of_what_stays(tmp_path: Path) -> None:
    with opened(tmp_path) as memory:
        memory.append("The osprey hunts at dawn", to="MEMORY.md", origin=PAGE)
        current = memory.workspace.read_exact("MEMORY.md")
        assert current is not None
        memory.replace("MEMORY.md", current.text + "- Carla prefers tea\n", current.hash)
        assert memory.journal.look_up("- The osprey hunts at dawn").trust == "external"
        assert memory.journal.look_up("- Carla prefers tea").trust == "owner"


@pytest.mark.parametrize("flags", [(), ("--json",), ("--files",)])
def test_a_default_search_imports_nothing_of_the_history(
    tmp_path: Path, flags: tuple[str, ...]
) -> None:
    given(tmp_path, "MEMORY.md", "- Carla prefers tea\n")
    with opened(tmp_path) as memory:
        memory.sync()
    command = [sys.executable, "-c", COLD_SEARCH, str(tmp_path / "ws"), str(tmp_path / "state")]
    ran = subprocess.run([*command, *flags], capture_output=True, text=True, check=True)
    assert "MEMORY.md" in ran.stdout
    assert ran.stdout.rstrip().endswith("loaded:"), ran.stdout
    explained = subprocess.run([*command, "--explain"], capture_output=True, text=True, check=True)
    assert "loaded: clawmark.history clawmark.history.entry_index" in explained.stdout


def test_remember_does_not_import_dulwich(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom clawmark.cli import main\n"
        "main(['remember', 'x', '-w', sys.argv[1], '--state-dir', sys.argv[2]])\n"
        "assert 'dulwich' not in sys.modules and 'clawmark.history.journal' in sys.modules\n"
    )
    (tmp_path / "ws").mkdir()
    arguments = [str(tmp_path / "ws"), str(tmp_path / "state")]
    subprocess.run([sys.executable, "-c", script, *arguments], check=True)


def test_a_long_journal_is_found_through_its_index(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal.jsonl"), lambda: NOW)
    files = [(f"memory/{number}.md", f"- Entry number {number}\n") for number in range(3000)]
    assert journal.add_found(files) == 3000
    journal.begin(PAGE, "MEMORY.md", "- from a page\n- Entry number 7\n")
    assert Path(journal.path).stat().st_size > MOST_UNCOVERED
    for _ in range(2):  # the first look-up makes the index
        assert journal.look_up("- Entry number 2999").trust == "owner"
        assert journal.look_up("- from a page").trust == "external"
        assert journal.look_up("- entry NUMBER 7").origins[0].path == "memory/7.md"
        assert [one.path for one in journal.unfinished()] == ["MEMORY.md"]
        assert journal.damaged_lines() == 0
        assert Path(f"{journal.path}.index").exists()
    with open(journal.path, "ab") as file:
        file.write(b"damaged\n")
    assert journal.damaged_lines() == 1
    assert next(journal.newest()).path == "MEMORY.md"


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\xff" * 500, b'{"version":1,"size":9}\n'])
def test_a_damaged_index_of_the_journal_is_made_again(tmp_path: Path, damage: bytes) -> None:
    journal = Journal(str(tmp_path / "journal.jsonl"), lambda: NOW)
    files = [(f"memory/{number}.md", f"- Entry number {number}\n") for number in range(3000)]
    journal.add_found(files)
    assert journal.look_up("- Entry number 5").unknown == 0
    Path(f"{journal.path}.index").write_bytes(damage)
    assert journal.look_up("- Entry number 5").unknown == 0


def test_removed_records_are_gone_from_the_index_too(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal.jsonl"), lambda: NOW)
    journal.add_found([(f"memory/{one}.md", f"- Entry number {one}\n") for one in range(3000)])
    hashes = next(one.entries for one in journal.records() if one.path == "memory/5.md")
    journal.look_up("- Entry number 5")
    journal.rewrite(lambda record: record.path != "memory/5.md")
    assert journal.look_up("- Entry number 5").unknown == 1
    assert journal.look_up("- Entry number 6").unknown == 0
    for file in tmp_path.iterdir():
        assert bytes.fromhex(hashes[0]) not in file.read_bytes()
        assert hashes[0].encode() not in file.read_bytes()


def test_unlinked_ids_of_rewritten_records_keep_their_outcomes(tmp_path: Path) -> None:
    journal = Journal(str(tmp_path / "journal.jsonl"), lambda: NOW)
    done, dropped, waiting = (journal.begin(None, f"{n}.md", f"- {n}") for n in "abc")
    journal.finish(done, before=0, after=4)
    journal.drop(dropped)
    before = list(journal.records())
    journal.rewrite(lambda _: True)
    assert list(journal.records()) == before
    assert list(journal.newest()) == before[::-1]
    assert [one.id for one in journal.unfinished()] == [waiting.id]
