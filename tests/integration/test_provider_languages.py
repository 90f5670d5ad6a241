"""Every provider over a real socket: one index and one search each, in its own format."""

from __future__ import annotations

from pathlib import Path

import pytest
from embeddings import EmbeddingServer

from clawmark import Memory

KEY = "key-of-the-loopback-server"
AWS = ("AKIDEXAMPLE", "secret-of-the-loopback-server")


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    (folder / "2026-02-24.md").write_text("# 2026-02-24\n\n- We chose PostgreSQL for billing.\n")
    (folder / "2026-02-25.md").write_text("# 2026-02-25\n\n- The heron nests by the harbour.\n")
    return folder.parent


@pytest.mark.parametrize(
    ("provider", "model", "dims", "address"),
    [
        ("openai", "", 1536, "url"),
        ("voyage", "", 1024, "url"),
        ("mistral", "", 1024, "url"),
        ("gemini", "", 3072, "gemini_url"),
        ("ollama", "", 768, "root"),
        ("openai-compatible", "homemade", 96, "url"),
        ("lmstudio", "", 768, "url"),
        ("bedrock", "amazon.titan-embed-text-v2:0", 1024, "root"),
        ("bedrock", "cohere.embed-english-v3", 1024, "root"),
    ],
)
def test_a_provider_embeds_passages_and_questions(
    workspace: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    provider: str,
    model: str,
    dims: int,
    address: str,
) -> None:
    is_bedrock = provider == "bedrock"
    if is_bedrock:
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", AWS[0])
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", AWS[1])
    with EmbeddingServer(
        dims=dims, key="" if is_bedrock else KEY, aws=AWS if is_bedrock else ("", "")
    ) as server:
        settings: dict[str, object] = {
            "memorySearch.provider": provider,
            "memorySearch.model": model,
            "memorySearch.remote.baseUrl": getattr(server, address),
        }
        if not is_bedrock:
            settings["memorySearch.remote.apiKey"] = KEY
        with Memory.open(workspace, state_dir=tmp_path / "state", overrides=settings) as memory:
            report = memory.sync()
            assert report.degraded is None
            assert report.due_vectors == 0
            found = memory.search("PostgreSQL billing")
            assert found.degraded is None
            assert found.provider == provider
            assert "PostgreSQL" in found.hits[0].snippet
            assert {
                space.identity.dims
                for space in memory.status().spaces
                if space.identity.provider == provider
            } == {dims}
        assert server.tally.unauthorised == 0
        assert server.tally.keys_in_url == 0
