"""The verbs from end to end, as a person uses them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from commands import Place, new_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def test_init_remember_and_search_work_without_flags(tmp_path: Path) -> None:
    """The commands of the README, in a home where nothing is yet and with no flag at all."""
    place = Place(tmp_path)
    place.home.mkdir()
    bare = {"CLAWMARK_STATE_DIR": None, "CLAWMARK_WORKSPACE": None}
    made = place.run("init", "~/agent", env=bare)
    assert made.code == 0 and "default workspace" in made.out
    assert (place.home / ".clawmark" / "clawmark.json").is_file()
    remembered = place.run("remember", "We chose PostgreSQL for billing", env=bare)
    assert remembered.code == 0 and "memory/" in remembered.out
    found = place.run("search", "PostgreSQL billing", "--json", env=bare).json()
    assert "PostgreSQL" in found["results"][0]["snippet"]


def test_init_keeps_files_and_a_second_workspace_does_not_become_the_default(place: Place) -> None:
    (place.workspace / "AGENTS.md").write_text("mine", encoding="utf-8")
    bare = {"CLAWMARK_WORKSPACE": None}
    first = place.run("init", str(place.workspace), "--json", env=bare).json()
    assert first["default"] is True
    assert "AGENTS.md" not in first["made"]
    assert (place.workspace / "AGENTS.md").read_text(encoding="utf-8") == "mine"
    second = place.run("init", str(place.folder / "two"), "--json", env=bare).json()
    assert second["default"] is False
    assert (
        place.run("init", str(place.folder / "three"), "--default", env=bare).out.count(
            "exists and is not changed"
        )
        == 1
    )


def test_init_explains_how_to_set_the_default_in_existing_settings(
    place: Place,
) -> None:
    place.state.mkdir()
    (place.state / "clawmark.json").write_text(
        '{ memorySearch: { provider: "static" } }', encoding="utf-8"
    )
    bare = {"CLAWMARK_WORKSPACE": None}
    made = place.run("init", str(place.folder / "agent"), env=bare)
    assert (
        "exists and is not changed" in made.out and "agents: { defaults: { workspace:" in made.out
    )
    assert (
        "exists and is not changed"
        not in place.run("init", str(place.folder / "agent"), "--no-default", env=bare).out
    )
    settings = json.dumps({"agents": {"defaults": {"workspace": str(place.folder / "agent")}}})
    (place.state / "clawmark.json").write_text(settings, encoding="utf-8")
    assert (
        "exists and is not changed"
        not in place.run("init", str(place.folder / "two"), env=bare).out
    )


def test_an_import_without_new_files_says_so(place: Place) -> None:
    notes = place.folder / "recipes"
    notes.mkdir()
    (notes / "soup.md").write_text("# Soup\n\nNeeds salt.\n", encoding="utf-8")
    assert (
        "Imported into memory/imports/markdown/: 1 new.\n"
        in place.run("import", "markdown", str(notes)).out
    )
    assert (
        place.run("import", "markdown", str(notes)).out
        == "Nothing new for memory/imports/markdown/: 1 unchanged.\n"
    )


def test_skipped_files_are_not_reported_as_imported(place: Place) -> None:
    said = {
        "message": {
            "author": {"role": "user"},
            "content": {"content_type": "text", "parts": ["Hello"]},
        }
    }
    conversations = [
        {
            "id": "good",
            "title": "Greeting",
            "create_time": 1_700_000_000,
            "mapping": {"a": said},
            "current_node": "a",
        },
        {"id": "odd", "title": "No messages at all"},
        {"id": "quiet", "mapping": {}},
        ["text"],
    ]
    export = place.folder / "conversations.json"
    export.write_text(json.dumps(conversations), encoding="utf-8")
    tried = place.run("import", "chatgpt", str(export), "--dry-run")
    assert "Would be imported into memory/imports/chatgpt/: 1 new. Left out: 3.\n" in tried.out
    done = place.run("import", "chatgpt", str(export))
    assert "Imported into memory/imports/chatgpt/: 1 new. Left out: 3.\n" in done.out
    assert "odd: is not a conversation of ChatGPT: it has no mapping" in done.out
    assert "quiet: has no messages by you or the assistant" in done.out
    assert "entry 4: is not a conversation of ChatGPT: it is not an object" in done.out


def test_init_can_keep_the_default_and_refuses_a_file(place: Place) -> None:
    assert (
        place.run(
            "init", str(place.workspace), "--no-default", env={"CLAWMARK_WORKSPACE": None}
        ).code
        == 0
    )
    assert not (place.state / "clawmark.json").exists()
    refused = place.run("init", str(place.workspace / "MEMORY.md"))
    assert refused.code == 3 and "not a folder" in refused.err


def test_a_hit_is_cited_and_its_citation_can_be_read(place: Place) -> None:
    hit = place.run("search", "PostgreSQL", "--json").json()["results"][0]
    assert hit["path"] == "MEMORY.md"
    assert hit["citation"].startswith("MEMORY.md#L")
    excerpt = place.run("get", hit["citation"])
    assert excerpt.code == 0 and "PostgreSQL" in excerpt.out


def test_search_prints_text(place: Place) -> None:
    ran = place.run("search", "Tea", "with", "Ann", env={"COLUMNS": "60"})
    assert ran.code == 0
    assert "memory/2026-11-15.md#L" in ran.out and "harbour" in ran.out
    assert "\x1b" not in ran.out
    assert re.search(r"\bhits?\b.* (ms|s)$", ran.out.splitlines()[-1])


def test_a_search_without_hits_explains_itself_and_succeeds(place: Place) -> None:
    ran = place.run("search", "zyxwvut", "--provider", "none", "--json")
    assert ran.code == 0
    body = ran.json()
    assert body["results"] == [] and body["nothing"]["code"] == "no-such-words"
    said = place.run("search", "zyxwvut", "--provider", "none")
    assert said.code == 0 and body["nothing"]["message"] in said.out


def test_explain_shows_steps_and_candidates(place: Place) -> None:
    ran = place.run("search", "PostgreSQL", "--explain")
    assert "Steps" in ran.out and "Candidates" in ran.out and "hit 1" in ran.out
    body = place.run("search", "PostgreSQL", "--explain", "--json").json()
    assert [step["number"] for step in body["explanation"]["steps"]] == list(range(1, 10))


def test_a_batch_answers_line_by_line_and_continues_after_bad_lines(place: Place) -> None:
    lines = [
        '{"id": "a", "query": "PostgreSQL"}',
        "tea with Ann",
        "",
        '{"id": "c"}',
        "{broken",
        '{"query": "router"}',
    ]
    ran = place.run(
        "search", "--batch", "-", "--max-results", "2", "--min-score", "0", stdin="\n".join(lines)
    )
    assert ran.code == 0
    answers = [json.loads(line) for line in ran.out.splitlines()]
    assert [answer["id"] for answer in answers] == ["a", 2, "c", 5, 6]
    assert answers[0]["results"][0]["path"] == "MEMORY.md"
    assert [bool(answer.get("error")) for answer in answers] == [False, False, True, True, False]
    assert all(len(answer.get("results", [])) <= 2 for answer in answers)


def test_a_missing_batch_file_is_a_usage_error(place: Place) -> None:
    ran = place.run("search", "--batch", "nosuch.jsonl")
    assert (ran.code, ran.out) == (2, "")


def test_search_does_not_print_origin_labels(place: Place) -> None:
    place.write(
        "memory/2026-11-14.md",
        "# 2026-11-14\n\n- The harbour pilot is Ann. <!-- clawmark: origin=agent session=s1 -->\n",
    )
    assert "- The harbour pilot is Ann.\n" in place.run("search", "harbour pilot").out
    assert "origin=agent" in place.run("search", "--json", "harbour pilot").out


def test_the_next_search_finds_a_remembered_note(place: Place) -> None:
    place.run("index")
    written = place.run("remember", "The", "garage", "code", "is", "4711", "--json").json()
    assert written["citation"].startswith("memory/") and written["workspace"] == str(
        place.workspace
    )
    found = place.run("search", "garage code", "--json").json()
    assert "4711" in found["results"][0]["snippet"]
    assert place.run("remember", "--to", "MEMORY.md", "Prefers tea").out.startswith(
        "Remembered in MEMORY.md#L"
    )
    assert place.run("remember", "-", stdin="from a pipe\n").code == 0
    assert "from a pipe" in place.run("search", "from a pipe", "--json").out
    assert place.run("remember", "x", "--to", "../evil.md").code == 4


def test_index_dry_run_and_index_report_the_same_files(place: Place) -> None:
    plan = place.run("index", "--dry-run")
    assert "add     MEMORY.md" in plan.out and "2 to add" in plan.out
    assert not list(place.state.rglob("*.sqlite"))
    done = place.run("index", "--json").json()
    assert (done["added"], done["dueFiles"], done["failures"]) == (2, 0, [])
    (place.workspace / "memory" / "2026-11-15.md").unlink()
    assert place.run("index", "--dry-run", "--json").json()["delete"] == ["memory/2026-11-15.md"]
    again = place.run("index")
    assert "1 deleted" in again.out and "1 unchanged" in again.out
    assert (
        place.run("search", "Ann", "--json", "--min-score", "0", "--provider", "none").json()[
            "results"
        ]
        == []
    )


def test_skipped_files_are_listed_with_reasons(place: Place) -> None:
    (place.workspace / "memory" / "link.md").symlink_to("/etc/hostname")
    ran = place.run("index")
    assert ran.code == 0
    assert "1 file skipped" in ran.out and "memory/link.md" in ran.out


def test_get_reads_a_range_of_lines_and_says_how_to_continue(place: Place) -> None:
    place.write("memory/long.md", "\n".join(f"line {number}" for number in range(1, 501)))
    ran = place.run("get", "memory/long.md", "--from", "10", "--lines", "3")
    assert ran.out == "line 10\nline 11\nline 12\n"
    whole = place.run("get", "memory/long.md")
    assert "clawmark get memory/long.md --from " in whole.err
    body = place.run("get", "memory/long.md", "--json").json()
    assert body["truncated"] is True and body["nextFrom"] == body["lines"] + 1


def test_get_prints_exactly_the_cited_lines(place: Place) -> None:
    place.write("memory/long.md", "\n".join(f"line {number}" for number in range(1, 501)))
    assert place.run("get", "memory/long.md#L10-L12").out == "line 10\nline 11\nline 12\n"
    assert place.run("get", "memory/long.md#L499").out == "line 499\n"
    body = place.run("get", "memory/long.md#L10-L12", "--json").json()
    assert (body["from"], body["lines"]) == (10, 3)
    assert place.run("get", "memory/long.md#L10-L12", "--lines", "1").out == "line 10\n"
    assert (
        place.run("get", "memory/long.md#L10-L12", "--from", "3", "--lines", "1").out == "line 3\n"
    )


def test_get_of_a_missing_file_fails_and_an_empty_file_does_not(place: Place) -> None:
    missing = place.run("get", "memory/2031-01-01.md")
    assert (missing.code, missing.out) == (3, "")
    assert "There is no file memory/2031-01-01.md." in missing.err
    document = place.run("get", "memory/2031-01-01.md", "--json")
    assert document.code == 3 and document.json()["error"]["type"] == "FileMissing"
    place.write("memory/empty.md", "")
    empty = place.run("get", "memory/empty.md")
    assert (empty.code, empty.out) == (0, "") and "memory/empty.md is empty." in empty.err
    document = place.run("get", "memory/empty.md", "--json")
    assert document.code == 0 and document.json()["totalLines"] == 0


def test_get_past_the_end_says_how_many_lines_the_file_has(place: Place) -> None:
    beyond = place.run("get", "memory/2026-11-15.md", "--from", "99")
    assert (beyond.code, beyond.out) == (0, "")
    assert "memory/2026-11-15.md has 4 lines; line 99 is past its end." in beyond.err
    document = place.run("get", "memory/2026-11-15.md", "--from", "99", "--json").json()
    assert (document["text"], document["lines"], document["totalLines"]) == ("", 0, 4)


def test_get_refuses_files_that_are_not_memory(place: Place) -> None:
    (place.folder / "secret.md").write_text("canary", encoding="utf-8")
    ran = place.run("get", "../secret.md")
    assert ran.code == 4 and ran.out == "" and "canary" not in ran.err
    body = place.run("get", "../secret.md", "--json")
    assert (body.code, body.json()["error"]["type"]) == (4, "PathDenied")


def test_status_works_before_and_after_the_first_index(place: Place) -> None:
    before = place.run("status")
    assert before.code == 0 and "2 files due" in before.out
    assert not list(place.state.rglob("*.sqlite"))
    place.run("index")
    body = place.run("status", "--json").json()
    assert (body["files"], body["dueFiles"], body["workspace"]) == (2, 0, str(place.workspace))
    assert body["sqliteSafe"] is True
    assert "up to date" in place.run("status").out


def test_doctor_and_verify_detect_a_damaged_index(
    place: Place,
) -> None:
    place.run("index")
    assert place.run("doctor").code == 0
    assert place.run("verify").code == 0
    (index,) = place.state.rglob("*.sqlite")
    data = bytearray(index.read_bytes())
    data[100:-100] = b"\xa5" * (len(data) - 200)
    for extra in place.state.rglob("*.sqlite-*"):
        extra.unlink()
    index.write_bytes(data)
    sick = place.run("doctor")
    assert sick.code == 1 and "problem" in sick.out
    assert place.run("doctor", "--fix").code == 0
    assert place.run("search", "PostgreSQL").code == 0


def test_a_search_repairs_a_damaged_index_and_says_so(place: Place) -> None:
    place.run("index")
    (index,) = place.state.rglob("*.sqlite")
    index.write_bytes(b"no database at all")
    healed = place.run("search", "PostgreSQL")
    assert healed.code == 0
    assert "PostgreSQL" in healed.out
    assert "set aside" in healed.out + healed.err


def test_each_workspace_has_its_own_index(place: Place) -> None:
    other = place.folder / "other"
    other.mkdir()
    (other / "MEMORY.md").write_text("Zebra facts live here.\n", encoding="utf-8")
    place.run("index")
    found = place.run("search", "zebra", "--workspace", str(other), "--json").json()
    assert found["results"][0]["path"] == "MEMORY.md"
    assert len(list(place.state.rglob("*.sqlite"))) == 2
    assert place.run("search", "PostgreSQL", "--json").json()["results"]


def test_the_state_of_openclaw_is_never_written(tmp_path: Path) -> None:
    place = Place(tmp_path)
    base = place.home / ".openclaw"
    (base / "workspace" / "memory").mkdir(parents=True)
    (base / "memory").mkdir()
    (base / "memory" / "main.sqlite").write_bytes(b"theirs")
    (base / "workspace" / "MEMORY.md").write_text("The capital is Lisbon.\n", encoding="utf-8")
    (base / "openclaw.json").write_text(
        "{agents: {defaults: {model: {primary: 'x'}}}}", encoding="utf-8"
    )
    before = {path: path.read_bytes() for path in base.rglob("*") if path.is_file()}
    bare = {"CLAWMARK_STATE_DIR": None, "CLAWMARK_WORKSPACE": None}
    found = place.run(
        "search", "capital Lisbon", "--state-dir", str(base), "--json", env=bare
    ).json()
    assert found["results"][0]["path"] == "MEMORY.md"
    assert {path: path.read_bytes() for path in before} == before
    new = {
        path.relative_to(base).parts[0]
        for path in base.rglob("*")
        if path.is_file() and path not in before
    }
    assert new == {"clawmark"}


def test_the_demo_shows_three_answers_without_touching_the_users_state(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.home.mkdir()
    bare = {
        "CLAWMARK_STATE_DIR": None,
        "CLAWMARK_WORKSPACE": None,
        "TMPDIR": str(tmp_path),
        "COLUMNS": "80",
    }
    ran = place.run("demo", env=bare)
    assert ran.code == 0, ran.err
    assert ran.out.count("? ") >= 3 and ran.out.count("memory/") >= 3
    assert max(len(line) for line in ran.out.splitlines() if str(tmp_path) not in line) <= 80
    assert list(place.home.iterdir()) == []
    assert list(tmp_path.iterdir()) == [place.home], "the demo leaves nothing behind"
    assert "clawmark demo --keep" in ran.out
    kept = place.run("demo", "--keep", str(tmp_path / "kept"), "--json", env=bare).json()
    assert len(kept["answers"]) == 3 and all(answer["results"] for answer in kept["answers"])
    assert place.run("search", "--state-dir", kept["folder"], "hotel booking", env=bare).code == 0
    assert place.run("demo", "--keep", str(tmp_path / "kept"), env=bare).code == 2


def test_an_obsidian_vault_is_searched_in_place_without_changing_settings(place: Place) -> None:
    vault = place.folder / "my vault"
    (vault / ".obsidian").mkdir(parents=True)
    note = "See [[Zebra plan|the plan]] and ![[stripes.png]].\n"
    (vault / "note.md").write_text(note, encoding="utf-8")
    place.state.mkdir(mode=0o700)
    settings = '{ // mine\n  memorySearch: { provider: "none", extraPaths: ["other"] },\n}\n'
    file = place.state / "clawmark.json"
    file.write_text(settings, encoding="utf-8")
    tried = place.run("import", "obsidian", str(vault), "--dry-run")
    assert "would be added" in tried.out and place.run("sources", "--json").json()["sources"] == []
    assert (
        place.run("import", "obsidian", str(vault), "--json").json()["source"]["name"] == "my-vault"
    )
    assert "already searched" in place.run("import", "obsidian", str(vault)).out
    (found,) = place.run("search", "zebra plan", "--json").json()["results"]
    assert found["path"] == "my-vault:note.md" and "[[Zebra plan|the plan]]" in found["snippet"]
    assert (vault / "note.md").read_text(encoding="utf-8") == note
    assert file.read_text(encoding="utf-8") == settings


def test_importing_a_vault_does_not_change_openclaw_settings(place: Place) -> None:
    vault = place.folder / "vault"
    vault.mkdir()
    place.state.mkdir(mode=0o700)
    theirs = place.state / "openclaw.json"
    theirs.write_text("{}", encoding="utf-8")
    assert place.run("import", "obsidian", str(vault)).code == 0
    assert theirs.read_text(encoding="utf-8") == "{}"
    assert "already searched" in place.run("import", "obsidian", str(vault)).out
