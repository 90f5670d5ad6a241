"""A directory or a FIFO in place of a file of the index is set aside; no command hangs on it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from commands import Place, new_place

from clawmark.config.paths import resolve_places


def make_folder(path: Path) -> None:
    path.mkdir()
    (path / "kept.txt").write_text("somebody's file", encoding="utf-8")


def make_link_to_folder(path: Path) -> None:
    other = path.parent / "elsewhere"
    other.mkdir()
    path.symlink_to(other)


THINGS: dict[str, Callable[[Path], None]] = {
    "folder": make_folder,
    "fifo": os.mkfifo,
    "link": make_link_to_folder,
}


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def index_file(place: Place) -> Path:
    return Path(resolve_places(str(place.workspace), None, None, str(place.state)).index_path)


def install_draft(place: Place, suffix: str, make: Callable[[Path], None]) -> None:
    path = Path(str(index_file(place)) + suffix)
    path.unlink(missing_ok=True)
    make(path)


@pytest.mark.parametrize(
    ("thing", "suffix"),
    [
        ("folder", ""),
        ("fifo", ""),
        ("link", ""),
        ("folder", "-wal"),
        ("fifo", "-wal"),
        ("fifo", "-journal"),
    ],
)
def test_index_sets_the_thing_aside_and_builds_again(place: Place, thing: str, suffix: str) -> None:
    place.run("index", "--instant")
    install_draft(place, suffix, THINGS[thing])
    done = place.run("index", "--instant")
    assert done.code == 0, done.err
    assert "set aside" in done.err
    assert place.run("search", "--json", "PostgreSQL").json()["results"][0]["path"] == "MEMORY.md"
    assert place.run("verify").code == 0


@pytest.mark.parametrize("thing", THINGS)
def test_search_sets_the_thing_aside_and_answers(place: Place, thing: str) -> None:
    put_in_place_before_the_first_index(place, THINGS[thing])
    found = place.run("search", "--json", "PostgreSQL").json()
    assert found["results"][0]["path"] == "MEMORY.md"
    assert "set aside" in found["degraded"]["reason"]


def put_in_place_before_the_first_index(place: Place, make: Callable[[Path], None]) -> None:
    index_file(place).parent.mkdir(parents=True)
    make(index_file(place))


@pytest.mark.parametrize("command", ["status", "doctor"])
def test_other_commands_name_the_thing_and_do_not_hang(place: Place, command: str) -> None:
    put_in_place_before_the_first_index(place, os.mkfifo)
    done = place.run(command)
    assert "FIFO" in done.out + done.err
    assert "Traceback" not in done.err


def test_a_folder_that_was_set_aside_is_never_deleted(place: Place) -> None:
    place.run("index", "--instant")
    for _ in range(4):
        install_draft(place, "", make_folder)
        assert place.run("index", "--instant").code == 0
    kept = [path / "kept.txt" for path in index_file(place).parent.iterdir() if path.is_dir()]
    assert len(kept) == 4 and all(path.read_text(encoding="utf-8") for path in kept)


@pytest.mark.parametrize("thing", THINGS)
def test_a_seal_that_is_not_a_file_stops_nothing(place: Place, thing: str) -> None:
    place.run("index", "--instant")
    install_draft(place, ".seal", THINGS[thing])
    assert place.run("index", "--instant").code == 0
    assert place.run("search", "--json", "PostgreSQL").json()["results"]


@pytest.mark.parametrize("verb", [("search", "heron"), ("index",), ("status",)])
def test_a_configured_path_with_a_file_of_the_user_is_refused(
    place: Place, verb: tuple[str, ...]
) -> None:
    thesis = place.folder / "thesis.md"
    thesis.write_text("# My thesis\n", encoding="utf-8")
    folder = place.folder / "docs"
    place.state.mkdir(exist_ok=True)
    make_folder(folder)
    for path in (thesis, folder):
        settings = {"memorySearch": {"store": {"path": str(path)}}}
        (place.state / "clawmark.json").write_text(json.dumps(settings), encoding="utf-8")
        done = place.run(*verb)
        assert done.code == 2, done.err
        assert f"memorySearch.store.path names {path}, which is not an index" in done.err
    assert thesis.read_text(encoding="utf-8") == "# My thesis\n"
    assert sorted(os.listdir(folder)) == ["kept.txt"]
