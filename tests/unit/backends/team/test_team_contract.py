"""The spaces in PostgreSQL pass the contract of `TeamSpaces`, with vectors and without."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from team_scene import make_spaces, open_direct

from clawmark.backends.team.base import TeamSpaces
from clawmark.backends.team.direct import DirectSpaces
from clawmark.store.postgres.servers import Server
from clawmark.testing import team_spaces_contract


@pytest.mark.parametrize("check", team_spaces_contract, ids=lambda check: check.__name__)
def test_contract(check: Callable[[Callable[[str], TeamSpaces]], None], postgres_uri: str) -> None:
    make_spaces(postgres_uri)
    check(lambda name: open_direct(postgres_uri, name))


@pytest.mark.parametrize("check", team_spaces_contract, ids=lambda check: check.__name__)
def test_contract_without_vectors(
    check: Callable[[Callable[[str], TeamSpaces]], None], postgres_uri: str
) -> None:
    make_spaces(postgres_uri)
    check(lambda name: DirectSpaces(Server(postgres_uri), name))
