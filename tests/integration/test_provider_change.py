"""Changing the embedder: the old one answers until the new one is complete, and nothing is paid
twice.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from embeddings import EmbeddingServer

from clawmark import Memory
from clawmark.embed.local.weights import OWN, TEACHER, find_pack, has_numpy

needs_weights = pytest.mark.skipif(
    not (find_pack(TEACHER) and has_numpy()), reason="the extra `local` is not installed"
)


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=1536) as running:
        yield running


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    folder = tmp_path / "agent" / "memory"
    folder.mkdir(parents=True)
    for day in range(1, 29):
        (folder / f"2026-02-{day:02d}.md").write_text(
            f"# Day {day}\n\n- Note {day}: the heron nests by pier {day}.\n"
        )
    return folder.parent


def opened(workspace: Path, tmp_path: Path, server: EmbeddingServer, **settings: object) -> Memory:
    remote = {
        "memorySearch.remote.baseUrl": server.url,
        "memorySearch.remote.apiKey": "not-a-real-key",
    }
    background = bool(settings.pop("background", True))
    return Memory.open(
        workspace,
        state_dir=tmp_path / "state",
        overrides={**remote, **settings},
        background=background,
    )


@needs_weights
def test_the_old_embedder_answers_until_the_new_one_is_complete(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    with opened(workspace, tmp_path, server, **{"memorySearch.provider": "local"}) as memory:
        memory.sync()
    with opened(
        workspace, tmp_path, server, background=False, **{"memorySearch.provider": "openai"}
    ) as memory:
        assert memory.search("where does the heron nest?").provider == "local"
        status = memory.status()
        assert status.embedder == "granite-30m (local)", "who answers, and not who will"
        assert (
            "(openai) takes over once `clawmark index` has sent it the notes"
            in status.embedder_reason
        )
        assert server.requests == [], (
            "a search neither fills the new space nor asks the new service"
        )
        memory.sync()
        assert memory.search("where does the heron nest?").provider == "openai"


@needs_weights
def test_one_local_model_answers_until_the_other_one_is_complete(
    workspace: Path, tmp_path: Path
) -> None:
    state = tmp_path / "state"
    earlier = {"memorySearch.provider": "local", "memorySearch.model": OWN.name}
    with Memory.open(workspace, state_dir=state, overrides=earlier) as memory:
        memory.sync()
    with Memory.open(workspace, state_dir=state, background=False) as memory:
        status = memory.status()
        assert status.embedder == OWN.label
        assert "takes over once `clawmark index` has made its vectors" in status.embedder_reason
        memory.sync()
        assert memory.status().embedder == TEACHER.label
        assert memory.search("where does the heron nest?").model == TEACHER.name


def test_a_repair_sends_nothing(workspace: Path, tmp_path: Path, server: EmbeddingServer) -> None:
    with opened(workspace, tmp_path, server, **{"memorySearch.provider": "openai"}) as memory:
        assert any(finding.fixed for finding in memory.doctor(fix=True))
        assert memory.status().due_files == 0
        assert server.requests == []
        due = [
            finding
            for finding in memory.doctor(fix=True)
            if finding.what.startswith("Best vectors")
        ]
        assert [(finding.fixed, finding.next_step) for finding in due] == [
            (False, "clawmark index")
        ]
        assert server.requests == []


def test_a_model_that_is_flipped_back_costs_nothing(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    models = ("text-embedding-3-small", "text-embedding-ada-002", "text-embedding-3-small")
    embedded = []
    for model in models:
        settings = {"memorySearch.provider": "openai", "memorySearch.model": model}
        with opened(workspace, tmp_path, server, **settings) as memory:
            sent = len(server.requests)
            report = memory.sync()
            assert report.degraded is None
            embedded.append(len(server.requests) - sent)
            assert memory.search("where does the heron nest?").model == model
            assert memory.verify().problems == ()
    assert embedded[0] > 0
    assert embedded[1] > 0
    assert embedded[2] == 0


def test_naming_the_configured_provider_again_changes_nothing(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    settings = {"provider": "openai", "model": "text-embedding-3-large", "outputDimensionality": 64}
    remote = {"remote.baseUrl": server.url, "remote.apiKey": "not-a-real-key"}
    overrides = {f"memorySearch.{key}": value for key, value in (settings | remote).items()}
    with Memory.open(workspace, state_dir=tmp_path / "state", overrides=overrides) as memory:
        configured = memory.choice.embedders[-1].identity
    with Memory.open(
        workspace, state_dir=tmp_path / "state", overrides=overrides, provider="openai"
    ) as memory:
        assert memory.choice.embedders[-1].identity == configured


def test_before_the_first_index_status_names_who_will_embed(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    with opened(workspace, tmp_path, server, **{"memorySearch.provider": "openai"}) as memory:
        assert memory.status().embedder == "text-embedding-3-small (openai), once files are indexed"


def test_the_fallback_and_what_it_replaces_are_reported(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    with opened(
        workspace, tmp_path, server, background=False, **{"memorySearch.provider": "openai"}
    ) as memory:
        memory.sync()
        assert memory.search("where does the heron nest?").fallback_from == ""
        server.spoil("nothing-listens")
        found = memory.search("where does the osprey nest?")
        assert (found.provider, found.fallback_from) == ("static", "openai")
    no_key = {"memorySearch.provider": "voyage", "memorySearch.remote.apiKey": ""}
    with opened(workspace, tmp_path, server, background=False, **no_key) as memory:
        found = memory.search("where does the osprey nest?")
        assert (found.provider, found.fallback_from) == ("static", "voyage")


def test_one_index_never_mixes_two_identities(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    for model in ("text-embedding-3-small", "text-embedding-ada-002"):
        settings = {"memorySearch.provider": "openai", "memorySearch.model": model}
        with opened(workspace, tmp_path, server, **settings) as memory:
            memory.sync()
            spaces = [space.identity for space in memory.status().spaces]
            assert len(set(spaces)) == len(spaces)
            assert {identity.model for identity in spaces if identity.provider == "openai"} == {
                model
            }


def test_what_was_paid_before_a_failure_is_kept_for_the_next_process(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    server.script([413, 200, 400])
    with opened(workspace, tmp_path, server, **{"memorySearch.provider": "openai"}) as memory:
        report = memory.sync()
        assert report.degraded is not None
        assert (report.embedded, report.due_vectors) == (14 + 28, 14), (
            "half of them, and the instant ones"
        )
    with opened(workspace, tmp_path, server, **{"memorySearch.provider": "openai"}) as memory:
        assert memory.sync().due_vectors == 0
    assert server.tally.repeated == []


def test_a_budget_below_one_request_is_spent_all_the_same(
    workspace: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    settings = {"memorySearch.provider": "openai", "memorySearch.remote.dailyTokens": 150}
    with opened(workspace, tmp_path, server, **settings) as memory:
        report = memory.sync()
        assert report.degraded is not None
        assert "budget of 150 tokens is used up" in report.degraded.reason
        status = memory.status()
        assert 0 < status.due_vectors < 28
        assert 130 < status.spent["tokensToday"] <= 150


@pytest.fixture
def many(workspace: Path) -> Path:
    """Enough notes for a batch job."""
    for number in range(200):
        (workspace / "memory" / f"note-{number}.md").write_text(
            f"Note number {number} is about subject {number}.\n"
        )
    return workspace


def with_jobs(many: Path, tmp_path: Path, server: EmbeddingServer, **settings: object) -> Memory:
    jobs: dict[str, object] = {
        "remote.batch.enabled": True,
        "remote.batch.pollIntervalMs": 1,
        "provider": "openai",
    }
    overrides = {f"memorySearch.{key}": value for key, value in (jobs | settings).items()}
    return opened(many, tmp_path, server, **overrides)


def test_what_jobs_made_counts_as_made(many: Path, tmp_path: Path, server: EmbeddingServer) -> None:
    with with_jobs(many, tmp_path, server) as memory:
        report = memory.sync()
        assert (report.embedded, report.reused, report.due_vectors, report.jobs) == (
            2 * 228,
            0,
            0,
            "",
        )


def test_an_index_says_why_jobs_were_switched_off(
    many: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    server.jobs.script(["failed", "failed", "failed"])
    with with_jobs(many, tmp_path, server) as memory:
        report = memory.sync()
        assert report.due_vectors == 0, "plain calls did it"
        assert report.jobs.startswith("A batch job of openai failed (failed")


def test_an_index_that_does_not_wait_says_what_is_on_its_way(
    many: Path, tmp_path: Path, server: EmbeddingServer
) -> None:
    with with_jobs(many, tmp_path, server, **{"remote.batch.wait": False}) as memory:
        report = memory.sync()
        assert report.due_vectors == 228
        assert (
            report.jobs
            == "228 texts are on their way in a batch job; a later `clawmark index` has them."
        )


def test_the_cost_of_another_model_is_shown_with_what_it_needs(
    workspace: Path, tmp_path: Path, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("clawmark.embed.local.weights.find_pack", lambda _: "")
    server.script([400])
    with opened(workspace, tmp_path, server, **{"memorySearch.provider": "openai"}) as memory:
        degraded = memory.sync().degraded
        assert degraded is not None
        assert degraded.fix.endswith(
            "With memorySearch.fallback \"local\" and `pip install 'clawmark[local]'` 28 "
            "passages would be embedded on this "
            "machine, at no cost."
        )
