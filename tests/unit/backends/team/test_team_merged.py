"""A memory with a team keeps the promises of a backend, whatever the team does."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from team_scene import make_spaces, open_direct

from clawmark import Memory
from clawmark.backends.team import merged
from clawmark.backends.team.files.copies import CopyFiles
from clawmark.backends.team.merged import MergedBackend, TeamAccess
from clawmark.model.errors import SpacesUnavailable
from clawmark.model.sync_report import SpaceSync
from clawmark.model.values import Filters, Found, Query
from clawmark.testing import HashingEmbedder, backend_contract

QUERY = Query("where does the heron nest?", min_score=0.0)


def with_team(workspace: Path, spaces: Callable[[], Any], **more: Any) -> MergedBackend:
    memory = Memory.open(
        workspace,
        state_dir=workspace.parent / "state",
        embedder=HashingEmbedder(),
        background=False,
    )
    access = TeamAccess(
        names=("team",),
        spaces=spaces,
        copies=CopyFiles(str(workspace), None),
        publish=lambda: (SpaceSync("team", published=1),),
        close=lambda: None,
    )
    return MergedBackend(memory._builtin, access, **more)


def away() -> Any:
    raise SpacesUnavailable("The server is away.", hint="Start it.")


def broken() -> Any:
    raise RuntimeError("a mistake of ours")


def test_the_contract_of_a_backend_is_kept_without_the_team() -> None:
    backend_contract(lambda folder: with_team(folder, away))


def test_the_contract_of_a_backend_is_kept_with_a_team(postgres_uri: str) -> None:
    make_spaces(postgres_uri, {"team": {"ada": True}})
    opened = open_direct(postgres_uri, "ada")
    backend_contract(lambda folder: with_team(folder, lambda: opened))
    opened.close()


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "x.md").write_text("The heron nests by the old pier.\n")
    return folder


def test_a_failed_team_is_left_alone_for_a_while(workspace: Path) -> None:
    now, calls = [0.0], list[int]()

    def spaces() -> Any:
        calls.append(1)
        return away()

    backend = with_team(workspace, spaces, clock=lambda: now[0])
    for _ in range(3):
        found = backend.search(QUERY)
        assert [hit.path for hit in found.hits] == ["memory/x.md"]
        assert found.degraded is not None and "The server is away." in found.degraded.reason
    assert len(calls) == 1
    now[0] = 11.0
    backend.search(QUERY)
    assert len(calls) == 2
    backend.close()


def test_a_team_that_does_not_answer_does_not_hold_up_a_search(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(merged, "WAIT_SECONDS", 0.01)
    released = threading.Event()

    class Silent:
        def search(self, query: Query, names: Sequence[str] = ()) -> Found:
            released.wait(60)
            raise SpacesUnavailable("Too late.")

    backend = with_team(workspace, Silent)
    found = backend.search(QUERY)
    released.set()
    assert [hit.path for hit in found.hits] == ["memory/x.md"]
    assert found.degraded is not None and "did not answer within" in found.degraded.reason
    backend.close()


def test_a_mistake_in_the_spaces_does_not_fail_a_search(workspace: Path) -> None:
    backend = with_team(workspace, broken)
    found = backend.search(QUERY)
    assert [hit.path for hit in found.hits] == ["memory/x.md"]
    assert found.degraded is not None and "RuntimeError" in found.degraded.reason
    backend.close()


def test_a_search_of_the_workspace_alone_does_not_ask_the_team(workspace: Path) -> None:
    backend = with_team(workspace, broken)
    for filters in (Filters(space="-"), Filters(source="memory")):
        found = backend.search(QUERY._replace(filters=filters))
        assert found.degraded is None and len(found.hits) == 1
    assert with_team(workspace, broken, searches=False).search(QUERY).degraded is None
    backend.close()


def test_a_named_space_that_does_not_answer_is_an_error(workspace: Path) -> None:
    backend = with_team(workspace, away)
    with pytest.raises(SpacesUnavailable):
        backend.search(QUERY._replace(filters=Filters(space="team")))
    backend.close()


def test_another_backend_publishes_after_its_sync(workspace: Path) -> None:
    backend = with_team(workspace, away, publishes=True)
    assert backend.sync().spaces == (SpaceSync("team", published=1),)
    assert backend.sync(seconds=5.0).spaces == ()
    backend.close()
    assert with_team(workspace, away).sync().spaces == ()


def test_a_probe_says_what_is_wrong_with_the_spaces(workspace: Path) -> None:
    backend = with_team(workspace, away)
    probe = backend.probe()[-1]
    assert (probe.part, probe.state, probe.reason) == ("spaces", "failed", "The server is away.")
    backend.close()
