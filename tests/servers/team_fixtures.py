"""Fixtures of tests of `clawmark serve`: a team, and a server for all tests of a module."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from team_server import Team, TeamServer


@pytest.fixture(scope="module")
def team(postgres_template: tuple[str, str]) -> Iterator[Team]:
    """A database with spaces and members."""
    pytest.importorskip("mcp")
    # Imported late: optional extras.
    from postgres import fresh_database
    from team_server import make_team

    with fresh_database(*postgres_template) as uri:
        yield make_team(uri)


@pytest.fixture(scope="module")
def server(team: Team, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TeamServer]:
    """A server of that team."""
    from team_server import team_server

    with team_server(tmp_path_factory.mktemp("serve"), team.uri) as running:
        yield running
