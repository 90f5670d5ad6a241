"""An imported note is written once and updated, unless it was edited."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.importers.notes import (
    Note,
    Target,
    digits_in,
    digits_of,
    import_notes,
    path_for,
    render,
)
from clawmark.importers.run import notes_of, run_import
from clawmark.text.untrusted.origin_labels import without_comments


class Shelf:
    """Files in memory, written as the real ones are: with the hash they were based on."""

    def __init__(self) -> None:
        self.files: dict[str, str] = {}

    def target(self) -> Target:
        existing = {digits_in(path): path for path in self.files}
        return Target(existing, lambda path: (self.files[path], self.hash(path)), self.replace)

    def hash(self, path: str) -> str:
        return hashlib.sha256(self.files[path].encode()).hexdigest() if path in self.files else ""

    def replace(self, path: str, text: str, base: str) -> None:
        assert self.hash(path) == base
        self.files[path] = text


NOTE = Note(
    id="c-1",
    title="Rate limiter",
    date="2025-03-04",
    body="**User**: how many a second?\n\n**Assistant**: forty.",
)


def actions(
    shelf: Shelf, *notes: Note, dry_run: bool = False, overwrite: bool = False
) -> list[str]:
    return [
        one.action
        for one in import_notes(
            "chatgpt", notes, shelf.target(), dry_run=dry_run, overwrite=overwrite
        )
    ]


def test_the_second_import_changes_nothing() -> None:
    shelf = Shelf()
    assert actions(shelf, NOTE) == ["new"]
    before = dict(shelf.files)
    assert actions(shelf, NOTE) == ["same"]
    assert shelf.files == before


def test_a_conversation_that_went_on_is_updated_in_its_file() -> None:
    shelf = Shelf()
    actions(shelf, NOTE)
    longer = NOTE._replace(
        title="Rate limits, again", body=NOTE.body + "\n\n**User**: make it fifty."
    )
    assert actions(shelf, longer) == ["changed"]
    (text,) = shelf.files.values()
    assert "make it fifty" in text


def test_edited_file_is_kept_unless_overwrite_is_set() -> None:
    shelf = Shelf()
    actions(shelf, NOTE)
    (path,) = shelf.files
    shelf.files[path] += "\nMy own remark.\n"
    longer = NOTE._replace(body="something else")
    assert actions(shelf, longer) == ["edited"]
    assert "My own remark." in shelf.files[path]
    assert actions(shelf, longer, overwrite=True) == ["changed"]
    assert "My own remark." not in shelf.files[path]


def test_the_comment_is_known_for_one_of_ours() -> None:
    assert without_comments(render("chatgpt", NOTE)).startswith(
        "# Rate limiter\n\n\nDate: 2025-03-04\n"
    )


def test_a_dry_run_writes_nothing() -> None:
    shelf = Shelf()
    assert actions(shelf, NOTE, dry_run=True) == ["new"]
    assert shelf.files == {}


@pytest.mark.parametrize(
    "title", ["../../etc/passwd", "a/b\\c", "\n\n", "日本語の会話", "x" * 500, ".hidden"]
)
def test_no_title_leads_out_of_the_folder(title: str) -> None:
    path = path_for("chatgpt", NOTE._replace(title=title))
    assert path.startswith("memory/imports/chatgpt/2025-03-04-")
    assert ".." not in path
    assert path.count("/") == 3
    assert len(path.rsplit("/", 1)[1].encode()) < 255
    assert digits_in(path) == digits_of("c-1")


def test_an_id_cannot_end_the_comment() -> None:
    text = render("chatgpt", NOTE._replace(id="x --> <b>"))
    comment = text.split("\n")[1]
    assert comment.count("-->") == 1
    assert comment.endswith(" -->")


def test_an_import_lands_in_the_workspace_and_is_found(tmp_path: Path) -> None:
    notes = tmp_path / "notes"
    (notes / ".obsidian").mkdir(parents=True)
    (notes / "sub").mkdir()
    (notes / "2025-01-02 Plan.md").write_text(
        "# Plan\n\nThe zebra project starts in May.\n", encoding="utf-8"
    )
    (notes / "sub" / "empty.md").write_text("\n", encoding="utf-8")
    (notes / "sub" / "binary.md").write_bytes(b"\0\1\2")
    (notes / ".obsidian" / "hidden.md").write_text("hidden", encoding="utf-8")
    (notes / "link.md").symlink_to("/etc/hostname")
    workspace = tmp_path / "agent"
    workspace.mkdir()
    with Memory.open(workspace, state_dir=tmp_path / "state", provider="none") as memory:
        done = list(run_import(memory, "markdown", str(notes)))
        assert [one.action for one in done] == ["new", "skipped", "skipped", "skipped"]
        assert done[0].path.startswith("memory/imports/markdown/2025-01-02-plan-")
        (hit,) = memory.search("zebra project").hits
        assert hit.path == done[0].path
        assert hit.date == "2025-01-02"
        assert next(run_import(memory, "markdown", str(notes))).action == "same"


def test_notes_of_the_same_name_in_two_folders_are_two_notes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name / "sub").mkdir(parents=True)
        (tmp_path / name / "sub" / "readme.md").write_text(
            f"# Readme\n\nThe folder is {name}.\n", encoding="utf-8"
        )
    (tmp_path / "agent").mkdir()
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state", provider="none") as memory:
        for name in ("one", "two"):
            assert [one.action for one in run_import(memory, "markdown", str(tmp_path / name))] == [
                "new"
            ]
        below = str(tmp_path / "one" / "sub")
        assert [one.action for one in run_import(memory, "markdown", below)] == ["same"], (
            "whichever folder is named"
        )


@pytest.mark.parametrize(
    ("source", "name", "folder"),
    [("claude-code", "CLAUDE.md", "memory"), ("codex", "AGENTS.md", "memories")],
)
def test_what_a_coding_agent_remembers_is_found_below_its_folder_and_in_the_memory_folder_itself(
    tmp_path: Path, source: str, name: str, folder: str
) -> None:
    kept = tmp_path / "home" / "projects" / "-home-ann-shop" / folder
    plugin = tmp_path / "home" / "plugins" / "cache" / folder
    for made in (kept, plugin):
        made.mkdir(parents=True)
        (made / "MEMORY.md").write_text("The shop runs on port 8080.\n", encoding="utf-8")
        (made.parent / name).write_text("Use tabs.\n", encoding="utf-8")
    (tmp_path / "home" / "todo.md").write_text("Not a memory.\n", encoding="utf-8")
    for path, found in (
        (tmp_path / "home", [name, "MEMORY.md"]),
        (kept, ["MEMORY.md"]),
        (kept / "MEMORY.md", ["MEMORY.md"]),
    ):
        notes = [note for note in notes_of(source, str(path)) if isinstance(note, Note)]
        assert [Path(note.id).name for note in notes] == found


@pytest.mark.parametrize(
    ("name", "text", "date"),
    [
        ("2025-01-02 Plan.md", "---\ndate: 2020-05-05\n---\n# Plan\n\nText.\n", "2025-01-02"),
        ("Plan 2025-01-02.md", "Text.\n", "2025-01-02"),
        ("2025-01-02/plan.md", "Text.\n", "2025-01-02"),
        (
            "plan.md",
            "---\ntags: [a]\ndate: 2020-05-05T10:00:00Z\n---\n# Plan\n\nText.\n",
            "2020-05-05",
        ),
        ("plan.md", '---\ncreated: "2020-05-05"\nupdated: 2021-06-06\n---\nText.\n', "2020-05-05"),
        ("plan.md", "# Meeting of 2020-05-05\n\nText.\n", "2020-05-05"),
        ("plan.md", "# Meeting\n\nDate: 2020-05-05\n\nText.\n", "2020-05-05"),
        ("plan.md", "# Meeting\n\nWe ship on 2020-05-05.\n", "2024-03-04"),
        ("plan.md", "---\ndate: 2020-13-45\n---\nText.\n", "2024-03-04"),
    ],
)
def test_a_note_is_dated_by_its_path_then_its_front_matter_then_its_text_then_its_file(
    tmp_path: Path, name: str, text: str, date: str
) -> None:
    file = tmp_path / "notes" / name
    file.parent.mkdir(parents=True)
    file.write_text(text, encoding="utf-8")
    os.utime(file, (1_709_550_000, 1_709_550_000))  # 2024-03-04
    (note,) = notes_of("markdown", str(tmp_path / "notes"))
    assert isinstance(note, Note) and note.date == date


def test_the_title_of_a_note_is_the_heading_below_its_front_matter(tmp_path: Path) -> None:
    (tmp_path / "x.md").write_text(
        "---\ntags: [boats]\n---\n\n# The ferry\n\nLeaves at nine.\n", encoding="utf-8"
    )
    (note,) = notes_of("markdown", str(tmp_path / "x.md"))
    assert isinstance(note, Note) and note.title == "The ferry"
    assert "tags: [boats]" in note.body and "# The ferry" not in note.body


def test_an_import_keeps_the_folders_of_the_source(tmp_path: Path) -> None:
    for folder in ("Projects/Alpha", "Projects/Beta: 2"):
        (tmp_path / "notes" / folder).mkdir(parents=True)
        (tmp_path / "notes" / folder / "readme.md").write_text(
            f"# Readme\n\nAbout {folder}.\n", encoding="utf-8"
        )
    (tmp_path / "agent").mkdir()
    with Memory.open(tmp_path / "agent", state_dir=tmp_path / "state", provider="none") as memory:
        done = list(run_import(memory, "markdown", str(tmp_path / "notes")))
        folders = [
            one.path.rpartition("/")[0].removeprefix("memory/imports/markdown/") for one in done
        ]
        assert folders == ["Projects/Alpha", "Projects/Beta- 2"]
        assert [one.action for one in run_import(memory, "markdown", str(tmp_path / "notes"))] == [
            "same",
            "same",
        ]
        assert len(memory.workspace.scan().files) == 2


@pytest.mark.parametrize(
    "folder",
    ["../..", "/etc", ".", "a/../../b", ".hidden/x", "x" * 400, "/".join("abcdefghijkl" * 9)],
)
def test_no_folder_leads_out_of_the_imports_or_out_of_sight(folder: str) -> None:
    *above, name = path_for("markdown", NOTE._replace(folder=folder)).split("/")
    assert above[:3] == ["memory", "imports", "markdown"] and len(above) < 20
    assert all(part and part[0] != "." and len(part.encode()) < 255 for part in above)
    assert digits_in(name) == digits_of("c-1")
