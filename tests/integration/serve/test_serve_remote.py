"""The spaces of a real server over HTTP pass the contract of `TeamSpaces`, and survive trouble."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest
from team_machines import Machine, make_machine
from team_server import LOGIN, Team, TeamServer, team_server

from clawmark.backends.team.base import TeamSpaces
from clawmark.backends.team.remote import Limit, Limits, RemoteSpaces
from clawmark.model.errors import SpacesUnavailable
from clawmark.store.postgres.servers import Server
from clawmark.store.postgres.team import admin
from clawmark.testing import team_spaces_contract
from clawmark.testing.team_spaces import MEMBERS

SHORT = Limits(search=Limit(2, 5.0), publish=Limit(2, 5.0), other=Limit(2, 5.0))


@pytest.fixture(scope="module")
def tokens(team: Team) -> dict[str, str]:
    """The token of each member of the contract; the members are made with the spaces."""
    _make_spaces(team)
    return {name: team.token(name) for name in ("ada", "ben", "cy")}


def _make_spaces(team: Team) -> None:
    """Leave the spaces of the contract, empty, and no others."""
    with closing(Server(team.owner_uri)) as server, server.direct() as connection:
        for known in admin.list_spaces(connection):
            admin.delete_space(connection, known.name)
        for space, names in MEMBERS.items():
            admin.create_space(connection, space)
            for name, may_write in names.items():
                admin.grant(connection, space, name, login=LOGIN, may_write=may_write)


@pytest.mark.parametrize("check", team_spaces_contract, ids=lambda check: check.__name__)
def test_contract(
    check: Callable[[Callable[[str], TeamSpaces]], None],
    team: Team,
    server: TeamServer,
    tokens: dict[str, str],
) -> None:
    _make_spaces(team)
    check(lambda name: RemoteSpaces(f"http://127.0.0.1:{server.port}", tokens[name]))


@pytest.fixture
def ada(tmp_path: Path, team: Team, server: TeamServer, tokens: dict[str, str]) -> Machine:
    _make_spaces(team)
    return _client(tmp_path, server, "ada", tokens["ada"])


def _client(folder: Path, server: TeamServer, name: str, token: str) -> Machine:
    machine = make_machine(folder, name, f"http://127.0.0.1:{server.port}", token=token)
    del machine.team["name"]
    return machine


def test_two_machines_share_a_space_through_the_server(
    tmp_path: Path, ada: Machine, server: TeamServer, tokens: dict[str, str]
) -> None:
    ada.put("memory/team/plan.md", "The heron project moves to the new pier.\n")
    with ada.open() as memory:
        assert memory.loaded.warnings == ()
        assert memory.sync().spaces[0].published == 1
        log = memory.team.append("team", "The otter eats fish.").path
    cy = _client(tmp_path, server, "cy", tokens["cy"])
    with cy.open() as memory:
        (hit,) = memory.search("where does the heron project move?").hits
        assert (hit.space, hit.author) == ("team", "ada")
        assert memory.read(hit.citation).text == "The heron project moves to the new pier."
        (pulled,) = memory.team.pull()
        assert sorted(pulled.written) == sorted([log, hit.path])
        assert (cy.workspace / log).read_text().endswith(" ada: The otter eats fish.\n")
        assert memory.search("heron otter lake snow", min_score=1.0).hits == ()
        assert len(memory.search("heron otter lake snow", min_score=0.0).hits) == 2
        explained = memory.search("heron project", explain=True)
        assert explained.explanation is not None
        assert any(one.outcome == "hit 1" for one in explained.explanation.candidates)


def test_a_wrong_token_is_refused_without_being_repeated(ada: Machine) -> None:
    ada.team["token"] = "cmk_" + "x" * 43
    with ada.open() as memory:
        found = memory.search("heron")
        assert found.degraded is not None and "refused the token" in found.degraded.reason
        with pytest.raises(SpacesUnavailable, match="refused the token") as raised:
            memory.team.append("team", "Hello.")
        assert "xxx" not in f"{raised.value} {raised.value.hint} {found.degraded}"


def test_an_append_is_stored_once_although_the_server_restarts(
    tmp_path: Path, team: Team, tokens: dict[str, str]
) -> None:
    _make_spaces(team)
    with team_server(tmp_path / "first", team.uri) as first:
        port = first.port
        spaces = RemoteSpaces(f"http://127.0.0.1:{port}", tokens["ada"])
        done = spaces.append("team", "The heron nests.", key="k1")
    with pytest.raises(SpacesUnavailable, match="cannot be reached"):
        RemoteSpaces(f"http://127.0.0.1:{port}", tokens["ada"], limits=SHORT).spaces()
    with team_server(tmp_path / "second", team.uri, {"serve": {"port": port}}):
        again = spaces.append("team", "The heron nests.", key="k1")
        assert again == done._replace(is_repeated=True)
    spaces.close()
