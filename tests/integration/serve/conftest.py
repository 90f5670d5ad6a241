"""Fixtures of the server's tests: a team, and a server for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("mcp")
pytest.importorskip("psycopg_pool")

from postgres import fresh_database
from team_server import Team, TeamServer, make_team, team_server


@pytest.fixture(scope="module")
def team(postgres_template: tuple[str, str]) -> Iterator[Team]:
    with fresh_database(*postgres_template) as uri:
        yield make_team(uri)


@pytest.fixture(scope="module")
def server(team: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    with team_server(tmp_path_factory.mktemp("serve"), team.uri) as running:
        yield running
