"""`$include`: what included files add, and the one sentence for those that cannot be used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.config.files import MAX_DEPTH
from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded
from clawmark.model.errors import ConfigError


def write(file: Path, tree: object) -> Path:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps(tree), encoding="utf-8")
    return file


def loaded(folder: Path, tree: object) -> Loaded:
    write(folder / "conf" / "clawmark.json", tree)
    (folder / "workspace").mkdir(exist_ok=True)
    places = resolve_places(
        str(folder / "workspace"),
        None,
        str(folder / "conf" / "clawmark.json"),
        str(folder / "state"),
        env={"HOME": str(folder)},
    )
    return load(places)


def query(**values: object) -> dict[str, object]:
    return {"agents": {"defaults": {"memorySearch": {"query": values}}}}


def test_an_included_file_has_the_same_effect_as_the_main_one(tmp_path: Path) -> None:
    write(tmp_path / "conf" / "search.json5", {"memorySearch": {"query": {"maxResults": 9}}})
    made = loaded(tmp_path, {"agents": {"defaults": {"$include": "./search.json5"}}})
    assert made.settings.memory_search.query.max_results == 9
    assert made.warnings == ()


def test_later_files_win_over_earlier_ones_and_keys_next_to_the_directive_over_both(
    tmp_path: Path,
) -> None:
    write(tmp_path / "conf" / "a.json", query(maxResults=2, minScore=0.1))
    write(tmp_path / "conf" / "b.json", query(maxResults=3))
    made = loaded(tmp_path, {"$include": ["a.json", "b.json"], **query(minScore=0.2)})
    options = made.settings.memory_search.query
    assert (options.max_results, options.min_score) == (3, 0.2)


def test_lists_of_included_files_are_joined(tmp_path: Path) -> None:
    write(tmp_path / "conf" / "a.json", {"memorySearch": {"extraPaths": ["/srv/a"]}})
    write(tmp_path / "conf" / "b.json", {"memorySearch": {"extraPaths": ["/srv/b"]}})
    made = loaded(tmp_path, {"$include": ["a.json", "b.json"]})
    assert made.settings.memory_search.extra_paths == ("/srv/a", "/srv/b")


def test_a_path_is_relative_to_the_file_that_names_it(tmp_path: Path) -> None:
    write(tmp_path / "conf" / "parts" / "all.json", {"$include": "one.json"})
    write(tmp_path / "conf" / "parts" / "one.json", query(maxResults=4))
    assert (
        loaded(tmp_path, {"$include": "parts/all.json"}).settings.memory_search.query.max_results
        == 4
    )


def test_a_workspace_that_an_included_file_sets_is_used(tmp_path: Path) -> None:
    (tmp_path / "notes").mkdir()
    write(tmp_path / "conf" / "agents.json", {"defaults": {"workspace": str(tmp_path / "notes")}})
    config = write(tmp_path / "conf" / "clawmark.json", {"agents": {"$include": "agents.json"}})
    places = resolve_places(
        None,
        None,
        str(config),
        str(tmp_path / "state"),
        env={"HOME": str(tmp_path)},
        cwd=str(tmp_path),
    )
    assert places.workspace == str(tmp_path / "notes")


def refusal(folder: Path, tree: object) -> str:
    with pytest.raises(ConfigError) as caught:
        loaded(folder, tree)
    error = caught.value
    assert "\n" not in error.message and error.hint and error.exit_code == 2
    assert str(folder / "conf") in error.message
    return error.message


@pytest.mark.parametrize(
    "name", ["../outside.json", "/etc/hostname", "link.json", "parts/../../outside.json"]
)
def test_a_file_outside_the_folder_of_the_configuration_is_refused(
    tmp_path: Path, name: str
) -> None:
    write(tmp_path / "outside.json", query(maxResults=4))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "link.json").symlink_to(tmp_path / "outside.json")
    assert "leads out of" in refusal(tmp_path, {"$include": name})


def test_files_that_include_each_other_are_refused(tmp_path: Path) -> None:
    write(tmp_path / "conf" / "a.json", {"$include": "b.json"})
    write(tmp_path / "conf" / "b.json", {"$include": "a.json"})
    assert "includes a file that includes this one" in refusal(tmp_path, {"$include": "a.json"})
    assert "includes a file that includes this one" in refusal(
        tmp_path, {"$include": "clawmark.json"}
    )


def test_the_depth_and_the_number_of_files_are_limited(tmp_path: Path) -> None:
    for number in range(MAX_DEPTH + 1):
        write(tmp_path / "conf" / f"{number}.json", {"$include": f"{number + 1}.json"})
    write(tmp_path / "conf" / f"{MAX_DEPTH}.json", query(maxResults=7))
    assert loaded(tmp_path, {"$include": "1.json"}).settings.memory_search.query.max_results == 7
    assert f"beyond the limit of {MAX_DEPTH} levels" in refusal(tmp_path, {"$include": "0.json"})
    write(tmp_path / "conf" / "many.json", {"$include": [f"{MAX_DEPTH}.json"] * 60})
    assert "beyond the limit of 100 files" in refusal(tmp_path, {"$include": ["many.json"] * 60})


@pytest.mark.parametrize(
    ("directive", "reason"),
    [
        ("nosuch.json", "does not exist"),
        (7, "must be a path or a list of paths"),
        ([], "must be a path or a list of paths"),
        ({"path": "a.json"}, "must be a path or a list of paths"),
        (["a\0b"], "must be a path or a list of paths"),
        ("broken.json", "broken.json, line 1"),
        ("list.json", "must hold an object"),
    ],
)
def test_an_invalid_include_is_reported_in_one_sentence(
    tmp_path: Path, directive: object, reason: str
) -> None:
    write(tmp_path / "conf" / "list.json", [1])
    (tmp_path / "conf" / "broken.json").write_text("{", encoding="utf-8")
    assert reason in refusal(tmp_path, {"$include": directive, "memory": {}})


def test_the_settings_inside_a_workspace_include_nothing(tmp_path: Path) -> None:
    inside = tmp_path / "workspace" / ".clawmark"
    write(inside / "more.json", {"query": {"maxResults": 2}})
    write(inside / "settings.json", {"memorySearch": {"$include": "more.json"}})
    made = loaded(tmp_path, {})
    assert made.settings.memory_search.query.max_results == 6
    assert "$include" in made.warnings[0]
