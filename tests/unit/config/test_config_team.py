"""The section `team`: what it accepts, what it refuses, and what it warns of."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clawmark.config.load import load
from clawmark.config.paths import resolve_places
from clawmark.config.schema import Loaded
from clawmark.model.errors import ConfigError


def loaded(tmp_path: Path, team: object, **others: object) -> Loaded:
    (tmp_path / "agent" / "memory").mkdir(parents=True, exist_ok=True)
    file = tmp_path / "clawmark.json"
    file.write_text(json.dumps({"team": team, **others}))
    return load(resolve_places(str(tmp_path / "agent"), None, str(file), str(tmp_path / "state")))


SERVER = {"uri": "https://memory.example.com", "token": "cmk_x", "spaces": ["team"]}
DATABASE = {"uri": "postgresql://db/memory", "name": "ada", "spaces": ["team"]}


def test_without_the_section_there_is_no_team(tmp_path: Path) -> None:
    assert not loaded(tmp_path, {}).settings.has_team


@pytest.mark.parametrize("team", [SERVER, DATABASE])
def test_a_complete_section_is_accepted_without_a_warning(
    tmp_path: Path, team: dict[str, object]
) -> None:
    found = loaded(tmp_path, team)
    assert found.settings.has_team
    assert found.settings.team.spaces == ("team",)
    assert found.warnings == ()


def test_the_database_of_the_index_is_used_if_no_address_is_given(tmp_path: Path) -> None:
    store = {"store": {"uri": "postgresql://db/memory"}}
    found = loaded(tmp_path, {"name": "ada", "spaces": ["team"]}, memorySearch=store)
    assert found.settings.has_team
    assert found.warnings == ()


def test_patterns_of_published_files_are_kept_by_space(tmp_path: Path) -> None:
    found = loaded(tmp_path, DATABASE | {"publish": {"team": ["./memory/plans/**", "MEMORY.md"]}})
    assert found.settings.team.publish == {"team": ("memory/plans/**", "MEMORY.md")}


@pytest.mark.parametrize(
    ("team", "warning"),
    [
        ({"spaces": ["team"]}, "team.spaces has no effect, because team.uri is not set."),
        (SERVER | {"name": "ada"}, "team.name has no effect: the token names the caller."),
        (SERVER | {"token": ""}, "team.token is not set, so the server will refuse us."),
        (DATABASE | {"name": ""}, "team.name is not set, so no shared space can be used."),
        (DATABASE | {"token": "x"}, "team.token has no effect: team.uri names a database, not a"),
        (DATABASE | {"spaces": []}, "team.spaces names no shared space, so none is searched."),
        (DATABASE | {"publish": {"other": []}}, "team.publish names the space other, which"),
        (DATABASE | {"publish": {"team": ["USER.md"]}}, "names USER.md, which is never published"),
        (DATABASE | {"sharedSessions": ["group"]}, 'lists "group", which memory.sharedSessions'),
        (DATABASE | {"uri": "${NO_SUCH_ADDRESS}"}, "NO_SUCH_ADDRESS, which is not set"),
        (DATABASE | {"space": ["x"]}, "there is no key team.space; it is ignored. Did you mean"),
    ],
)
def test_what_has_no_effect_is_warned_of(
    tmp_path: Path, team: dict[str, object], warning: str
) -> None:
    found = loaded(tmp_path, team)
    assert warning in " ".join(found.warnings)
    assert "cmk_x" not in " ".join(found.warnings)


@pytest.mark.parametrize(
    ("team", "reason"),
    [
        ({"spaces": "team"}, "must be a list of spaces"),
        ({"spaces": ["Team"]}, "must be 1 to 63 of a-z"),
        ({"spaces": ["../x"]}, "must be 1 to 63 of a-z"),
        (DATABASE | {"name": "Ada L"}, "must be 1 to 63 of a-z"),
        ({"publish": ["memory/**"]}, "must be an object such as"),
        ({"publish": {"team": "memory/**"}}, "must be a list of texts"),
        ({"publish": {"a/b": []}}, "is not a space"),
        ({"publish": {"team": ["/etc/**"]}}, "must be a pattern for files of the workspace"),
        ({"publish": {"team": ["../x/**"]}}, "must be a pattern for files of the workspace"),
        ({"publish": {"team": ["notes:**"]}}, "must be a pattern for files of the workspace"),
        ({"pull": "yes"}, "must be true or false"),
        ({"sharedSessions": ["main"]}, "must be a list of"),
        (["team"], "must be an object"),
    ],
)
def test_a_wrong_value_is_refused_with_its_place(tmp_path: Path, team: object, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason) as raised:
        loaded(tmp_path, team)
    assert raised.value.key.startswith("team")


def test_the_file_in_the_workspace_cannot_name_a_team(tmp_path: Path) -> None:
    inside = tmp_path / "agent" / ".clawmark"
    inside.mkdir(parents=True)
    for name in ("clawmark.json", "config.json"):
        (inside / name).write_text(json.dumps({"team": SERVER}))
    assert not loaded(tmp_path, {}).settings.has_team
