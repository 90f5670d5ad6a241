"""`clawmark add` and `clawmark sources`, and the hints that lead a new user to them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from commands import Place, new_place, says_one_clear_thing

BARE: dict[str, str | None] = {"CLAWMARK_STATE_DIR": None, "CLAWMARK_WORKSPACE": None}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = new_place(tmp_path)
    made.state.mkdir(mode=0o700)
    (made.state / "clawmark.json").write_text(
        '{ memorySearch: { provider: "none" } }', encoding="utf-8"
    )
    return made


@pytest.fixture
def notes(place: Place) -> Path:
    return make_notes(place.home / "notes")


def make_notes(folder: Path) -> Path:
    (folder / "projects").mkdir(parents=True)
    (folder / "ferry.md").write_text(
        "# Ferry\n\nThe ferry to the island leaves at nine.\n", encoding="utf-8"
    )
    (folder / "projects" / "2025-03-04-zebra.md").write_text(
        "# Zebra\n\nShips in May.\n", encoding="utf-8"
    )
    (folder / "photo.pdf").write_bytes(b"%PDF")
    return folder


# --- adding and searching -------------------------------------------------------------------------


def test_an_added_folder_is_searched_and_its_citations_open_from_any_folder(
    place: Place, notes: Path
) -> None:
    added = place.run("add", str(notes))
    assert added.code == 0 and "notes: 2 Markdown files in ~/notes will be searched." in added.out
    assert "Not searched: 1 file that is not Markdown (1 .pdf)." in added.out
    (hit,) = place.run("search", "zebra May", "--json").json()["results"]
    assert hit["citation"] == "notes:projects/2025-03-04-zebra.md#L1-L3"
    assert hit["date"] == "2025-03-04"
    assert Path(hit["absolutePath"]) == notes / "projects" / "2025-03-04-zebra.md"
    for folder in (place.home, notes, Path("/")):
        assert place.run("get", hit["citation"], cwd=folder).out == "# Zebra\n\nShips in May.\n"
    (own,) = place.run("search", "PostgreSQL", "--json").json()["results"]
    assert own["path"] == "MEMORY.md" and Path(own["absolutePath"]) == place.workspace / "MEMORY.md"
    assert place.run("get", "notes:ferry.md", "--json").json()["absolutePath"] == str(
        notes / "ferry.md"
    )


def test_an_agent_reads_a_citation_of_an_added_folder_and_sees_no_absolute_path(
    place: Place, notes: Path
) -> None:
    from clawmark import Memory
    from clawmark.agent.tools import render

    with Memory.open(place.workspace, state_dir=place.state) as memory:
        memory.add_source(notes)
        search, get = memory.tools()
        found = search.call({"query": "ferry island"})
        assert str(place.home) not in render(found)
        results = found["results"]
        assert isinstance(results, list) and len(results) == 1
        assert (
            get.call({"path": results[0]["citation"]})["text"]
            == "| # Ferry\n\n| The ferry to the island leaves at nine."
        ), "text from outside is quoted"
        denied = get.call({"path": "notes:../../etc/passwd"})
        assert denied["text"] == "" and "error" in denied


def test_a_pattern_takes_a_part_of_a_folder(place: Place, notes: Path) -> None:
    report = place.run(
        "add", str(notes), "--name", "work", "--pattern", "projects/**/*.md", "--json"
    ).json()["source"]
    assert (report["name"], report["files"], report["patterns"]) == (
        "work",
        1,
        ["projects/**/*.md"],
    )
    assert place.run("search", "ferry island", "--json").json()["results"] == []
    refused = place.run("get", "work:ferry.md")
    assert refused.code == 4 and says_one_clear_thing(refused)


def test_a_removed_source_is_not_searched_and_its_files_stay(place: Place, notes: Path) -> None:
    place.run("add", str(notes))
    assert place.run("search", "ferry island", "--json").json()["results"]
    assert place.run("sources", "remove", "notes").code == 0
    assert place.run("search", "ferry island", "--json").json()["results"] == []
    assert place.run("get", "notes:ferry.md").code == 4
    assert (notes / "ferry.md").exists()
    assert place.run("verify").code == 0


def test_sources_are_listed_with_what_is_in_them(place: Place, notes: Path) -> None:
    nothing = place.run("sources")
    assert nothing.code == 0 and "`clawmark add DIR`" in nothing.err
    place.run("add", str(notes))
    (row,) = place.run("sources", "--json").json()["sources"]
    assert row == {
        "name": "notes",
        "path": str(notes),
        "patterns": [],
        "files": 2,
        "otherFiles": {".pdf": 1},
        "problem": "",
        "media": 0,
    }
    assert "~/notes (1 other file)" in place.run("sources").out


def test_a_folder_that_is_away_keeps_its_passages_until_it_is_back(
    place: Place, notes: Path
) -> None:
    place.run("add", str(notes))
    place.run("index")
    notes.rename(place.home / "elsewhere")
    assert "does not exist" in place.run("sources").out
    report = place.run("index", "--json").json()
    assert report["deleted"] == 0
    (place.home / "elsewhere").rename(notes)
    assert place.run("index", "--json").json()["added"] == 0
    assert place.run("search", "ferry island", "--json").json()["results"]


def test_each_workspace_has_sources_of_its_own_and_settings_are_not_touched(
    place: Place, notes: Path
) -> None:
    settings = (place.state / "clawmark.json").read_bytes()
    other = place.folder / "other"
    (other / "memory").mkdir(parents=True)
    place.run("add", str(notes), "--workspace", str(other))
    assert place.run("sources", "--json").json()["sources"] == []
    assert len(place.run("sources", "--json", "--workspace", str(other)).json()["sources"]) == 1
    assert (place.state / "clawmark.json").read_bytes() == settings


def test_adding_the_workspace_itself_searches_its_other_notes_and_nothing_twice(
    place: Place,
) -> None:
    place.write("docs/plan.md", "The yak plan.\n")
    place.write("AGENTS.md", "The yak is an instruction.\n")
    place.run("add", str(place.workspace), "--name", "ws")
    (hit,) = place.run("search", "yak", "--json").json()["results"]
    assert hit["path"] == "ws:docs/plan.md"
    assert place.run("status", "--json").json()["files"] == 3
    assert place.run("get", "ws:MEMORY.md", "--json").json()["path"] == "MEMORY.md"
    assert place.run("get", "docs/plan.md", "--json").json()["path"] == "ws:docs/plan.md"


# --- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["{home}/nope"], "does not exist"),
        (["{home}/notes/ferry.md"], "is a file, not a folder"),
        (["{home}"], "is your home folder"),
        (["/"], "is the whole disk"),
        (["{workspace}/memory"], "already searched"),
        (["{home}/notes", "--name", "a b"], "cannot be the name"),
        (["{home}/notes", "--name", "x:y"], "cannot be the name"),
        (["{home}/notes", "--name", "../x"], "cannot be the name"),
        (["{home}/notes", "--name", "n" * 65], "cannot be the name"),
        (["{home}/notes", "--pattern", "../*.md"], "not a supported pattern"),
        (["{home}/notes", "--pattern", "a{b,c}"], "not a supported pattern"),
        (["{home}/more", "--name", "KNOWN"], "already a source called known"),
        (["{home}/known", "--name", "again"], "already the source known"),
        (["{home}/known/inner"], "lies in the source known"),
        ([""], "must not be empty"),
        ([], "required: DIR"),
    ],
)
def test_what_cannot_be_added_is_refused_in_one_sentence(
    place: Place, notes: Path, words: list[str], reason: str
) -> None:
    (place.home / "known" / "inner").mkdir(parents=True)
    (place.home / "more").mkdir()
    place.run("add", str(place.home / "known"))
    ran = place.run(
        "add",
        *(
            word.replace("{home}", str(place.home)).replace("{workspace}", str(place.workspace))
            for word in words
        ),
    )
    assert ran.code == 2 and says_one_clear_thing(ran) and reason in ran.err, ran.err
    assert [row["name"] for row in place.run("sources", "--json").json()["sources"]] == ["known"]


def test_adding_the_same_folder_again_changes_nothing(place: Place, notes: Path) -> None:
    assert place.run("add", str(notes)).code == 0
    assert place.run("add", str(notes)).code == 0
    assert len(place.run("sources", "--json").json()["sources"]) == 1


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"sources": 3}', '{"sources": [{"name": "a:b", "path": "x"}]}']
)
def test_a_damaged_list_of_sources_is_one_sentence(place: Place, text: str) -> None:
    place.run("add", str(make_notes(place.home / "notes")))
    (file,) = (place.state / "sources").glob("*.json")
    file.write_text(text, encoding="utf-8")
    ran = place.run("search", "x")
    assert ran.code == 2 and says_one_clear_thing(ran) and "list of sources" in ran.err


def test_words_that_mean_nothing_to_sources_are_refused(place: Place) -> None:
    for words in (["rm", "x"], ["remove"], ["remove", "a", "b"]):
        assert (ran := place.run("sources", *words)).code == 2 and says_one_clear_thing(ran)
    assert (ran := place.run("sources", "remove", "nope")).code == 2 and says_one_clear_thing(ran)


# --- first contact --------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [["search", "ferry"], ["index"], ["status"]])
def test_without_any_workspace_a_folder_of_markdown_gets_the_command_that_makes_it_searchable(
    tmp_path: Path, verb: list[str]
) -> None:
    place = Place(tmp_path)
    notes = make_notes(place.home / "notes")
    ran = place.run(*verb, env=BARE, cwd=notes)
    assert ran.code == 2 and says_one_clear_thing(ran)
    assert (
        "2 Markdown files in ~/notes are not searched; to search them: clawmark add ~/notes"
        in ran.err
    )
    assert place.run("add", str(notes), env=BARE).code == 0
    found = place.run("search", "ferry island", "--json", env=BARE, cwd=Path("/")).json()["results"]
    assert found[0]["path"] == "notes:ferry.md"


@pytest.mark.parametrize("verb", [["search", "ferry"], ["index"], ["status"]])
def test_a_folder_of_markdown_as_workspace_does_not_look_empty(
    place: Place, notes: Path, verb: list[str]
) -> None:
    command = f"clawmark add ~/notes --workspace {notes}"
    ran = place.run(*verb, "--workspace", str(notes))
    assert ran.code == 0
    assert (
        "2 Markdown files in ~/notes are not searched" in ran.out + ran.err
        and command in ran.out + ran.err
    )
    document = place.run(*verb, "--workspace", str(notes), "--json").json()["unsearched"]
    assert (document["files"], document["command"]) == (2, command)
    place.run("add", str(notes), "--workspace", str(notes))
    after = place.run(*verb, "--workspace", str(notes))
    assert "not searched" not in after.err and "Not searched" not in after.out


def test_a_search_with_hits_and_a_fresh_workspace_give_no_hint(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.home.mkdir()
    assert place.run("init", "~/agent", env=BARE).code == 0
    assert "add" not in place.run("index", env=BARE, cwd=place.home / "agent").err
    assert "Not searched" not in place.run("status", env=BARE, cwd=place.home).out
    notes = make_notes(place.home / "notes")
    place.run("remember", "The ferry is late", env=BARE)
    assert "clawmark add" not in place.run("search", "ferry late", env=BARE, cwd=notes).err
    assert "clawmark add ~/notes" in place.run("search", "qqqq", env=BARE, cwd=notes).err


def test_status_counts_the_files_that_are_not_markdown(place: Place, notes: Path) -> None:
    place.write("memory/table.csv", "a,b\n")
    place.write("memory/plan.txt", "plan\n")
    place.run("add", str(notes))
    status = place.run("status", "--json").json()
    assert status["notMarkdown"] == {".csv": 1, ".txt": 1, ".pdf": 1}
    assert "3 files that are not Markdown" in place.run("status").out
    assert "notes · ~/notes · 2 files" in place.run("status").out


def test_the_list_of_sources_is_private_and_json(place: Place, notes: Path) -> None:
    place.run("add", str(notes))
    (file,) = (place.state / "sources").glob("*.json")
    assert file.stat().st_mode & 0o777 == 0o600
    assert json.loads(file.read_text(encoding="utf-8"))["sources"][0]["path"] == str(notes)


def test_an_index_without_changes_counts_what_is_next_to_the_memory_and_what_was_skipped(
    place: Place, notes: Path
) -> None:
    (notes / "memory").mkdir()
    (notes / "memory" / "2026-02-24.md").write_text("- The boat is blue\n", encoding="utf-8")
    (notes / "MEMORY.md").write_text("# Memory\n", encoding="utf-8")
    first = place.run("index", "--workspace", str(notes), "--json")
    assert (first.code, first.json()["added"]) == (0, 2), first.out
    again = place.run("index", "--workspace", str(notes), "--json").json()
    # A file that was written in the seconds before the first index is read once more.
    assert (again["unchanged"] + again["touched"], again["unsearched"]["files"]) == (2, 2), again
    (notes / "memory" / "large.md").write_bytes(b"x" * (65 << 20))
    skipped = place.run("index", "--workspace", str(notes), "--json").json()
    assert len(skipped["skipped"]) == 1 and skipped["unsearched"]["files"] == 3
