"""Where everything is: the orders of flags, environment, configuration and folders."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from clawmark.config.load import load
from clawmark.config.paths import Places, name_for, resolve_places
from clawmark.model.errors import ConfigError


class World:
    """A home with nothing in it, and an empty current folder."""

    def __init__(self, folder: Path) -> None:
        self.home, self.here = folder / "home", folder / "here"
        self.home.mkdir()
        self.here.mkdir()
        self.state = self.home / ".clawmark"
        self.env = {"HOME": str(self.home)}

    def workspace(self, path: Path) -> Path:
        (path / "memory").mkdir(parents=True)
        return path

    def config(self, body: object, path: Path | None = None) -> Path:
        path = path or self.state / "clawmark.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(body), encoding="utf-8")
        return path

    def places(
        self,
        workspace: str | None = None,
        *,
        agent: str | None = None,
        config: str | None = None,
        state_dir: str | None = None,
        must_exist: bool = False,
    ) -> Places:
        return resolve_places(
            workspace,
            agent,
            config,
            state_dir,
            env=self.env,
            cwd=str(self.here),
            must_exist=must_exist,
        )


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def test_by_default_everything_is_in_the_state_folder_in_home(world: World) -> None:
    places = world.places()
    assert places.state_dir == str(world.state)
    assert places.config_file == str(world.state / "clawmark.json")
    assert places.workspace == str(world.state / "workspace")
    assert places.index_path == str(world.state / "memory" / "main.sqlite")
    assert (places.agent_id, places.workspace_origin, places.config) == ("main", "default", None)


def test_nothing_is_created(world: World) -> None:
    world.places()
    assert list(world.home.iterdir()) == []


def test_the_state_folder_is_flag_then_environment_then_home(world: World, tmp_path: Path) -> None:
    world.env["CLAWMARK_STATE_DIR"] = str(tmp_path / "env")
    assert world.places().state_dir == str(tmp_path / "env")
    assert world.places(state_dir="flag").state_dir == str(world.here / "flag")
    assert world.places(state_dir="~/x").state_dir == str(world.home / "x")


def test_the_workspace_is_flag_then_environment_then_configuration_then_here_then_default(
    world: World, tmp_path: Path
) -> None:
    flag, env, configured = (
        world.workspace(tmp_path / name) for name in ("flag", "env", "configured")
    )
    assert world.places().workspace_origin == "default"
    (world.here / "MEMORY.md").write_text("x", encoding="utf-8")
    assert world.places().workspace == str(world.here)
    file = world.config({"agents": {"defaults": {"workspace": str(configured)}}})
    assert (world.places().workspace, world.places().workspace_origin) == (
        str(configured),
        f"file {file}",
    )
    world.env["CLAWMARK_WORKSPACE"] = str(env)
    assert world.places().workspace == str(env)
    assert world.places(str(flag)).workspace == str(flag)


@pytest.mark.parametrize("mark", ["MEMORY.md", "memory/", ".clawmark/workspace-state.json"])
def test_the_current_folder_counts_when_it_holds_memory(world: World, mark: str) -> None:
    path = world.here / mark
    path.parent.mkdir(exist_ok=True)
    if mark.endswith("/"):
        path.mkdir()
    else:
        path.touch()
    assert world.places().workspace == str(world.here)


def test_a_workspace_that_is_not_an_agents_own_has_a_separate_index(
    world: World, tmp_path: Path
) -> None:
    mine = world.workspace(tmp_path / "Some Project!")
    places = world.places(str(mine))
    assert places.agent_id == name_for(str(mine))
    assert (
        places.agent_id.startswith("some-project-")
        and len(places.agent_id) == len("some-project-") + 8
    )
    assert places.agent == "main"
    (tmp_path / "link").symlink_to(mine)
    assert world.places(str(tmp_path / "link")).agent_id == places.agent_id


def test_the_agents_own_workspace_keeps_its_index_however_it_is_named(
    world: World, tmp_path: Path
) -> None:
    mine = world.workspace(tmp_path / "agent")
    world.config({"agents": {"defaults": {"workspace": str(mine)}}})
    assert world.places(str(mine)).agent_id == "main"
    assert world.places().agent_id == "main"


def test_configured_paths_are_relative_to_their_file(world: World) -> None:
    world.config(
        {
            "agents": {
                "defaults": {
                    "workspace": "ws",
                    "memorySearch": {"store": {"path": "i/{agentId}.db"}},
                }
            }
        }
    )
    places = world.places()
    assert places.workspace == str(world.state / "ws")
    assert places.index_path == str(world.state / "i" / "main.db")


def test_each_listed_agent_has_its_own_places(world: World) -> None:
    world.config(
        {
            "agents": {
                "defaults": {"workspace": "~/shared"},
                "list": [{"id": "main"}, {"id": "Work", "workspace": "~/work"}, {"id": "spare"}],
            }
        }
    )
    assert world.places().workspace == str(world.home / "shared")
    work = world.places(agent="work")
    assert (work.workspace, work.agent_id) == (str(world.home / "work"), "work")
    assert world.places(agent="spare").workspace == str(world.state / "workspace-spare")


def test_the_default_agent_is_the_marked_one_else_the_first(world: World) -> None:
    world.config({"agents": {"list": [{"id": "a"}, {"id": "b", "default": True}]}})
    assert world.places().agent == "b"
    world.config({"agents": {"list": [{"id": "a"}, {"id": "b"}]}})
    assert world.places().agent == "a"
    assert world.places().workspace == str(world.state / "workspace")


@pytest.mark.parametrize(
    "agent",
    [
        "",
        ".",
        "..",
        "a/b",
        "a\\b",
        "a\0b",
        "CON",
        "Main",
        "main ",
        "agent:main",
        "*",
        "\u202ex",
        "a" * 65,
        "-a",
    ],
)
def test_an_agent_id_that_could_name_another_file_is_refused(world: World, agent: str) -> None:
    with pytest.raises(ConfigError, match="is not an agent id"):
        world.places(agent=agent)


def test_an_agent_that_is_not_listed_is_refused(world: World) -> None:
    with pytest.raises(ConfigError, match="There is no agent nosuch; there is main"):
        world.places(agent="nosuch")


def test_a_named_workspace_must_be_a_folder(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="does not exist"):
        world.places("nosuch", must_exist=True)
    with pytest.raises(ConfigError, match="is not a folder"):
        world.places(str(tmp_path / "file"), must_exist=True)
    with pytest.raises(ConfigError, match="no workspace yet"):
        world.places(must_exist=True)
    with pytest.raises(ConfigError, match="empty"):
        world.places("")


def test_a_named_configuration_must_exist_and_the_usual_one_need_not(world: World) -> None:
    assert world.places().config is None
    with pytest.raises(ConfigError, match="does not exist"):
        world.places(config="nosuch.json")
    world.env["CLAWMARK_CONFIG"] = "nosuch.json"
    with pytest.raises(ConfigError) as caught:
        world.places()
    assert "CLAWMARK_CONFIG" in caught.value.hint


def test_an_openclaw_state_folder_is_used_with_a_subfolder_of_ours(world: World) -> None:
    base = world.home / ".openclaw"
    world.workspace(base / "workspace")
    file = world.config(
        {"agents": {"defaults": {"memorySearch": {"store": {"path": "~/x.sqlite"}}}}},
        base / "openclaw.json",
    )
    places = world.places(state_dir=str(base))
    assert places.state_dir == str(base / "clawmark")
    assert places.config_file == str(file)
    assert places.workspace == str(base / "workspace")
    assert places.index_path == str(base / "clawmark" / "memory" / "main.sqlite")
    assert "OpenClaw's own index" in load(places).warnings[0]


def test_our_file_in_an_openclaw_folder_takes_precedence(world: World) -> None:
    base = world.home / ".openclaw"
    world.workspace(base / "notes")
    search = {"model": "m-1", "store": {"path": "~/x.sqlite"}, "extraPaths": ["theirs"]}
    theirs = {
        "agents": {
            "defaults": {"workspace": "notes", "memorySearch": search},
            "list": [{"id": "ann"}],
        }
    }
    world.config(theirs, base / "openclaw.json")
    ours = {
        "agents": {
            "defaults": {"memorySearch": {"chunking": {"mode": "lines"}, "extraPaths": ["ours"]}}
        }
    }
    (base / "clawmark").mkdir()
    file = world.config(ours, base / "clawmark" / "clawmark.json")
    places = world.places(state_dir=str(base))
    assert (places.config_file, places.workspace, places.agent) == (
        str(file),
        str(base / "notes"),
        "ann",
    )
    loaded = load(places)
    found = loaded.settings.memory_search
    assert (found.model, found.chunking.mode, found.store.path) == ("m-1", "lines", "")
    assert [os.path.basename(path) for path in found.extra_paths] == ["theirs", "ours"]
    assert loaded.origins["memorySearch.model"].endswith("openclaw.json")
    assert world.places(state_dir=str(base), config=str(file)).beneath is not None
    (base / "clawmark" / "other.json").write_text("{}")
    assert (
        load(
            world.places(state_dir=str(base), config=str(base / "clawmark" / "other.json"))
        ).settings.memory_search.model
        == ""
    )


def test_a_removed_current_folder_matters_only_to_relative_paths(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    places = resolve_places(None, state_dir=str(world.state), env=world.env, must_exist=False)
    assert places.workspace == str(world.state / "workspace")
    with pytest.raises(ConfigError, match="no longer exists"):
        resolve_places("relative", state_dir=str(world.state), env=world.env)


def test_a_missing_home_is_reported(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        os.path, "expanduser", lambda path: path
    )  # as where the user has no entry of its own
    with pytest.raises(ConfigError, match="HOME is not set"):
        resolve_places(env={})


def test_a_state_folder_that_is_a_file_is_refused(world: World, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="is not a folder"):
        world.places(state_dir=str(tmp_path / "file"))


def test_settings_that_cannot_be_read_are_an_error_and_not_treated_as_missing(
    tmp_path: Path,
) -> None:
    with pytest.raises(ConfigError, match=r"clawmark\.json could not be opened"):
        resolve_places(str(tmp_path), state_dir=str(tmp_path / ("x" * 300)))
