"""A team on the command line: from `clawmark db init` to a search on the second machine."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from commands import CLAWMARK, Place
from postgres import fresh_database, in_database

PLAN = "# Plan\n\nThe heron project moves to the new pier in March.\n"


class Person(Place):
    """A person with a machine, a login of the database and a configuration."""

    def configure(self, **sections: Any) -> None:
        self.state.mkdir(parents=True, exist_ok=True)
        self.home.mkdir(parents=True, exist_ok=True)
        (self.workspace / "memory").mkdir(parents=True, exist_ok=True)
        search = {"provider": "none"}
        given = {"memorySearch": search, **sections}
        (self.state / "clawmark.json").write_text(json.dumps(given), encoding="utf-8")

    def put(self, path: str, text: str) -> None:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


@pytest.fixture
def database(postgres: Any) -> Iterator[str]:
    """The address of an empty database, as its owner has it."""
    from postgres import admin_uri

    with fresh_database(admin_uri(postgres)) as uri:
        yield uri


def _person(folder: Path, name: str, uri: str, **team: Any) -> Person:
    made = Person(folder / name)
    made.configure(team={"uri": uri, "name": name, "spaces": ["team"], **team})
    return made


@pytest.fixture
def people(tmp_path: Path, database: str) -> tuple[Person, Person]:
    """Ada and Eve, whose owner has made a space for them with commands."""
    owner = Person(tmp_path / "owner")
    owner.configure(memorySearch={"store": {"uri": database}})
    assert owner.run("db", "init").code == 0
    with psycopg.connect(database, autocommit=True) as connection:
        for login in ("cli_ada", "cli_eve"):
            connection.execute(
                f"DO $$ BEGIN CREATE ROLE {login} LOGIN; "
                "EXCEPTION WHEN duplicate_object THEN NULL; END $$"
            )
            connection.execute(f"GRANT clawmark_service TO {login}")
    assert owner.run("space", "create", "team").code == 0
    for name in ("ada", "eve"):
        done = owner.run("space", "grant", "team", name, "--write", "--login", f"cli_{name}")
        assert done.code == 0, done.err
    ada, eve = (
        _person(tmp_path, name, in_database(database, user=f"cli_{name}"))
        for name in ("ada", "eve")
    )
    return ada, eve


def test_a_note_and_a_file_of_one_machine_are_found_on_the_other(
    people: tuple[Person, Person],
) -> None:
    ada, eve = people
    ada.put("memory/team/plan.md", PLAN)
    ada.put("memory/private.md", "The heron has a secret nest.\n")

    planned = ada.run("index", "--dry-run")
    assert "publish   memory/team/plan.md (spaces/team)" in planned.out
    assert "private.md (spaces" not in planned.out
    indexed = ada.run("index")
    assert (indexed.code, indexed.err) == (0, "")
    assert "Shared   team: 1 published · 0 withdrawn · 0 unchanged" in indexed.out
    shared = ada.run("remember", "--space", "team", "The otter eats fish.")
    assert shared.code == 0 and shared.out.startswith("Shared in spaces/team/")

    found = eve.run("search", "--json", "where does the heron project move?")
    assert found.code == 0, found.err
    (hit,) = found.json()["results"]
    assert (hit["space"], hit["author"]) == ("team", "ada")
    assert hit["path"] == "spaces/team/ada/memory/team/plan.md"
    text = eve.run("search", "heron project")
    assert "spaces/team/ada/memory/team/plan.md#L1-L3  shared in team by ada" in text.out
    assert eve.run("search", "--space", "team", "otter").out.count("shared in team by ada\n") == 1
    assert "secret nest" not in eve.run("search", "--min-score", "0", "secret nest").out
    assert eve.run("get", hit["path"]).out == PLAN
    assert eve.run("get", hit["path"], "--json").json()["text"] == PLAN.rstrip("\n")

    pulled = eve.run("pull")
    assert pulled.code == 0, pulled.err
    assert "team: 2 files written, 0 files deleted" in pulled.out
    for command in ("status", "index"):
        ran = eve.run(command)
        assert "ot searched" not in ran.out + ran.err, "copies of a space are not files to add"
    assert (eve.workspace / hit["path"]).read_text() == PLAN
    listed = eve.run("pull", "--list", "--json").json()["spaces"]
    assert listed == [
        {"name": "team", "mayWrite": True, "documents": 1, "entries": 1, "used": True}
    ]

    (ada.workspace / "memory/team/plan.md").unlink()
    assert ada.run("index", "--json").json()["spaces"][0]["withdrawn"] == 1
    assert eve.run("pull", "--json").json()["spaces"][0]["deleted"] == [hit["path"]]
    assert not (eve.workspace / hit["path"]).exists()


def test_mistakes_get_one_sentence_and_the_right_exit_code(people: tuple[Person, Person]) -> None:
    ada, eve = people
    assert ada.run("remember", "--space", "team", "The otter eats fish.").code == 0
    cases: list[tuple[list[str], int, str]] = [
        (["search", "--space", "nope", "x"], 4, "There is no space 'nope' that you may read."),
        (["search", "--space", "team", "--source", "memory", "x"], 2, "give one of them"),
        (["search", "--space", "team", "--as-of", "7d", "x"], 2, "has no history"),
        (["search", "--space", "team", "--why-not", "MEMORY.md", "x"], 2, "cannot be combined"),
        (["remember", "--space", "nope", "Hello there."], 4, "There is no space 'nope'"),
        (["remember", "--space", "team", "--to", "MEMORY.md", "x"], 2, "cannot be combined"),
        (["remember", "--space", "team", "The otter eats fish."], 4, "It is already there"),
        (["get", "spaces/team/ada/none.md"], 3, "There is no file spaces/team/ada/none.md."),
        (["get", "spaces/team/../../x.md"], 4, "is not a document of a shared space"),
        (["pull", "nope"], 4, "There is no space 'nope'"),
        (["pull", "--list", "team"], 2, "takes no names"),
    ]
    for words, code, sentence in cases:
        done = ada.run(*words)
        assert (done.code, sentence in done.err) == (code, True), (words, done)
        assert "Traceback" not in done.err and "cli_ada" not in done.err
    eve.configure()
    done = eve.run("pull")
    assert (done.code, "No team is configured" in done.err) == (2, True)
    done = eve.run("search", "--space", "team", "x")
    assert (done.code, "no team is configured" in done.err) == (4, True)


def test_a_changed_copy_is_a_conflict_with_exit_code_1(people: tuple[Person, Person]) -> None:
    ada, eve = people
    ada.put("memory/team/plan.md", PLAN)
    ada.run("index")
    eve.run("pull")
    eve.put("spaces/team/ada/memory/team/plan.md", "My own words.\n")
    ada.put("memory/team/plan.md", PLAN + "And in April.\n")
    ada.run("index")
    done = eve.run("pull")
    assert done.code == 1
    assert "was changed here and in the space; it is left as it is." in done.err
    assert (eve.workspace / "spaces/team/ada/memory/team/plan.md").read_text() == "My own words.\n"


def test_a_batch_names_spaces(people: tuple[Person, Person]) -> None:
    ada, eve = people
    ada.run("remember", "--space", "team", "The otter eats fish.")
    lines = [
        '{"id": 1, "query": "otter", "space": "team"}',
        '{"id": 2, "query": "x", "space": "no"}',
    ]
    done = eve.run("search", "--batch", "-", stdin="\n".join(lines))
    first, second = (json.loads(line) for line in done.out.splitlines())
    assert first["results"][0]["space"] == "team"
    assert second["error"]["type"] == "SpaceDenied"


def test_without_the_database_the_rest_goes_on(people: tuple[Person, Person]) -> None:
    ada, _ = people
    uri = "postgresql://cli_ada:pass-word@127.0.0.1:1/memory"
    ada.configure(team={"uri": uri, "name": "ada", "spaces": ["team"]})
    ada.put("memory/own.md", "My heron drawing is on the desk.\n")
    ada.put("memory/team/plan.md", PLAN)
    indexed = ada.run("index")
    assert indexed.code == 0
    assert "2 added" in indexed.out and "The space team is not up to date:" in indexed.out
    found = ada.run("search", "heron drawing")
    assert found.code == 0 and "memory/own.md" in found.out
    assert "The shared spaces are not searched" in found.err
    for words in (["pull"], ["remember", "--space", "team", "Hello there."]):
        done = ada.run(*words)
        assert done.code == 3, done
        assert "pass-word" not in done.err
    assert "pass-word" not in indexed.out + found.err


def test_a_pull_that_is_killed_is_finished_by_the_next_one(people: tuple[Person, Person]) -> None:
    ada, eve = people
    for number in range(200):
        ada.put(f"memory/team/{number}.md", f"The heron was seen {number} times.\n" * 50)
    assert ada.run("index", "--instant").code == 0
    copies = eve.workspace / "spaces/team/ada/memory/team"
    for wanted in (5, 60):
        command = [*CLAWMARK, "pull"]
        process = subprocess.Popen(command, env=eve.environment(), stdout=subprocess.DEVNULL)
        while process.poll() is None and len(list(copies.glob("*.md"))) < wanted:
            pass
        process.kill()
        process.wait()
    done = eve.run("pull", "--json")
    assert done.code == 0, done.err
    (space,) = done.json()["spaces"]
    assert (space["conflicts"], space["refused"], space["problem"]) == ([], [], "")
    texts = {file.name: file.read_text() for file in copies.iterdir()}
    assert texts == {
        f"{number}.md": f"The heron was seen {number} times.\n" * 50 for number in range(200)
    }
    assert eve.run("pull", "--json").json()["spaces"][0]["written"] == []


def test_forgetting_says_that_the_spaces_are_not_reached(people: tuple[Person, Person]) -> None:
    ada, _ = people
    ada.put("memory/own.md", "The heron has a secret nest.\n")
    plan = ada.run("forget", "secret nest", "--dry-run")
    said = plan.out + plan.err
    assert "The shared spaces team were not searched." in said, said
