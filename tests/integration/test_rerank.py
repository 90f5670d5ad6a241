"""A configured reranker, from the configuration to the answer, with a real service on loopback."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from rerank import RerankServer

from clawmark import Memory

KEY = "rk-test-4f9aXb21Qz77Lm03"
QUESTION = "heron nest harbour"


@pytest.fixture
def server() -> Iterator[RerankServer]:
    with RerankServer("jina", key=KEY) as made:
        yield made


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    root = tmp_path / "agent"
    (root / "memory").mkdir(parents=True)
    # Keywords prefer the note that says heron again and again; the reranker the one that answers.
    (root / "memory" / "a.md").write_text("heron heron heron heron nest\n", encoding="utf-8")
    (root / "memory" / "b.md").write_text(
        "We saw a heron by the water, and its nest is at the old harbour, as Ana told us last "
        "year.\n",
        encoding="utf-8",
    )
    (root / "memory" / "c.md").write_text("The harbour was closed.\n", encoding="utf-8")
    return root


def opened(workspace: Path, server: RerankServer, **more: object) -> Memory:
    rerank = {"provider": "jina", "baseUrl": server.url, "apiKey": KEY, **more}
    config = workspace.parent / "clawmark.json"
    settings = {"memorySearch": {"provider": "none", "query": {"minScore": 0, "rerank": rerank}}}
    config.write_text(json.dumps(settings), encoding="utf-8")
    return Memory.open(
        workspace, config=config, state_dir=workspace.parent / "state", background=False
    )


def test_the_reranker_decides_the_order_of_the_first_hits(
    workspace: Path, server: RerankServer
) -> None:
    with opened(workspace, server) as memory:
        found = memory.search(QUESTION, explain=True)
    assert found.hits[0].path == "memory/b.md" and found.degraded is None
    assert [hit.score for hit in found.hits] == sorted(
        (hit.score for hit in found.hits), reverse=True
    )
    assert found.explanation is not None
    assert any(step.name == "rerank" and "jina" in step.summary for step in found.explanation.steps)
    scores = sorted(story.rerank or 0.0 for story in found.explanation.candidates)
    assert scores == pytest.approx([1 / 3, 2 / 3, 1.0])
    assert json.loads(server.requests[0].body)["query"] == QUESTION


def test_a_reranker_that_fails_or_is_late_leaves_the_search_as_it_was(
    workspace: Path, server: RerankServer
) -> None:
    with Memory.open(
        workspace, state_dir=workspace.parent / "plain", provider="none", background=False
    ) as memory:
        expected = [hit.path for hit in memory.search(QUESTION, min_score=0.0).hits]
    for number, fault in enumerate(("500", "nan", "hang", "drip")):
        server.fault = fault
        with opened(workspace, server, timeoutMs=200) as memory:
            (Path(memory.places.state_dir) / "providers" / "rerank-jina.json").unlink(
                missing_ok=True
            )
            found = memory.search(QUESTION)
        assert [hit.path for hit in found.hits] == expected
        assert (
            found.degraded is not None and "jina" in found.degraded.reason and KEY not in str(found)
        )
        assert len(server.requests) == number + 1


def test_a_reranker_that_cannot_be_made_is_said_with_the_answer(
    workspace: Path, server: RerankServer
) -> None:
    with opened(workspace, server, provider="onnx", model="/no/such/folder") as memory:
        found = memory.search(QUESTION)
    assert found.hits and found.degraded is not None and "/no/such/folder" in found.degraded.reason


def test_without_the_setting_nothing_is_sent(workspace: Path, server: RerankServer) -> None:
    with opened(workspace, server, provider="none") as memory:
        assert memory.search(QUESTION).hits
    assert server.requests == []


def test_the_settings_inside_a_workspace_cannot_send_passages_elsewhere(
    workspace: Path, server: RerankServer
) -> None:
    (workspace / ".clawmark").mkdir()
    settings = {"memorySearch": {"query": {"rerank": {"provider": "jina", "baseUrl": server.url}}}}
    (workspace / ".clawmark" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    with Memory.open(
        workspace, state_dir=workspace.parent / "state", provider="none", background=False
    ) as memory:
        memory.search(QUESTION)
        assert any("rerank" in warning for warning in memory.loaded.warnings)
    assert server.requests == []
