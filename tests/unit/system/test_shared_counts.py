"""Counters that processes share: nothing is lost between them, and nothing ever fails."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from clawmark.system import shared_json
from clawmark.system.counters import SharedCounts
from clawmark.system.shared_counts import EventCount, add_counts, read_counts


def test_nothing_is_written_before_the_first_event(tmp_path: Path) -> None:
    SharedCounts(str(tmp_path / "counts" / "main.json"))
    assert list(tmp_path.iterdir()) == []
    assert read_counts(str(tmp_path / "counts" / "main.json")) == {}


def test_an_event_is_counted_with_its_time(tmp_path: Path) -> None:
    path = str(tmp_path / "counts" / "main.json")
    assert add_counts(path, {"denied": 2}, 1000) and add_counts(path, {"denied": 1}, 5000)
    assert read_counts(path) == {"denied": EventCount(3, 5000)}


def test_a_clock_that_goes_back_does_not_change_the_last_time(tmp_path: Path) -> None:
    path = str(tmp_path / "main.json")
    add_counts(path, {"denied": 1}, 5000)
    add_counts(path, {"denied": 1}, 1000)
    assert read_counts(path)["denied"].last_ms == 5000


def test_threads_and_processes_lose_no_event(tmp_path: Path) -> None:
    path = str(tmp_path / "main.json")
    children = []
    for _ in range(3):
        child = os.fork()
        if not child:
            for _ in range(20):
                while not add_counts(path, {"fallbacks": 1}, 1):
                    pass
            os._exit(0)
        children.append(child)
    counts = SharedCounts(path)
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: counts.add("fallbacks"), range(20)))
    assert [os.waitpid(child, 0)[1] for child in children] == [0, 0, 0]
    counts.add("fallbacks")  # with what waited for the lock
    assert read_counts(path)["fallbacks"].times == 81


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"denied": [1', "\x00" * 50, '{"denied": "x"}'])
def test_a_damaged_file_starts_again_from_zero(tmp_path: Path, text: str) -> None:
    path = tmp_path / "main.json"
    path.write_text(text, encoding="utf-8")
    assert read_counts(str(path)) == {}
    SharedCounts(str(path)).add("denied")
    assert read_counts(str(path))["denied"].times == 1


@pytest.mark.parametrize("value", [[1], [1, 2, 3], [-1, 2], [1.5, 2], [True, 2], None, {}])
def test_an_entry_of_another_form_is_left_out(tmp_path: Path, value: object) -> None:
    path = str(tmp_path / "main.json")
    shared_json.save(path, {"denied": value, "fallbacks": [4, 9]})
    assert read_counts(path) == {"fallbacks": EventCount(4, 9)}


def test_a_folder_that_cannot_be_written_is_not_an_error(tmp_path: Path) -> None:
    (tmp_path / "counts").write_text("in the way", encoding="utf-8")
    SharedCounts(str(tmp_path / "counts" / "main.json")).add("denied")
    (tmp_path / "a.json").mkdir()
    SharedCounts(str(tmp_path / "a.json")).add("denied")
    assert sorted(path.name for path in tmp_path.iterdir() if path.is_dir()) == ["a.json"]
    assert (tmp_path / "counts").read_text(encoding="utf-8") == "in the way"


def test_what_could_not_be_written_is_added_later(tmp_path: Path) -> None:
    path = tmp_path / "counts" / "main.json"
    counts = SharedCounts(str(path))
    (tmp_path / "counts").write_text("in the way", encoding="utf-8")
    counts.add("denied")
    (tmp_path / "counts").unlink()
    counts.add("denied")
    assert read_counts(str(path))["denied"].times == 2
    assert path.stat().st_mode & 0o777 == 0o600
