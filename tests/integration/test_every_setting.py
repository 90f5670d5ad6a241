"""Every key that is accepted has an effect: two values of it lead to two results that can be seen.

The table below is compared with the table of keys, so every new key needs a row. Keys without
effect are in `config/unsupported.py`; `tests/unit/config/test_config_unsupported.py` tests the
warning for each, and the last tests here show where users and programs see it."""

from __future__ import annotations

import ast
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from commands import Place
from embeddings import EmbeddingServer
from setting_effects import (
    KEY,
    Acts,
    Scene,
    answer_in_a_group,
    chunks,
    citations,
    commands_are_logged,
    consolidation,
    conversation,
    due_after_compaction,
    due_after_small_growth,
    embedder_key,
    found,
    found_after_a_new_note,
    found_as_configured,
    heartbeat,
    index_owner,
    kept_vectors,
    log_after_a_new_note,
    media_files,
    opens,
    page_after_a_note_of_an_agent,
    prompt,
    put,
    question,
    recalled_from_a_folder,
    remote,
    sent,
    sent_to_reranker,
    session_start,
    spent,
    status,
    today,
    tools,
    tools_by_session,
    transcripts,
    versions_kept,
)
from team_effects import TEAM_ACTS

from clawmark.config.keys import BY_NAME
from clawmark.config.schema.tools import BySession

ROOT = Path(__file__).resolve().parents[2]
S, Q, H = "memorySearch.", "memorySearch.query.", "memorySearch.query.hybrid."
RERANK = "memorySearch.query.rerank."
R, B = "memorySearch.remote.", "memorySearch.remote.batch."
D, C, F = (
    "agents.defaults.",
    "agents.defaults.compaction.",
    "agents.defaults.compaction.memoryFlush.",
)
N, X = "hooks.internal.entries.session-memory.", "agents.defaults.startupContext."
HEART = "agents.defaults.heartbeat."
SESSIONS: dict[str, object] = {S + "sources": ["memory", "sessions"]}
SERVICE: dict[str, object] = {S + "provider": "openai", R + "baseUrl": "{url}", R + "apiKey": KEY}
RERANKER: dict[str, object] = {
    RERANK + "provider": "jina",
    RERANK + "baseUrl": "{url}",
    RERANK + "apiKey": KEY,
}
M = "memorySearch.multimodal."
MULTIMODAL: dict[str, object] = {
    S + "extraPaths": ["{folder}/extra"],
    S + "provider": "gemini",
    S + "model": "gemini-embedding-2",
    M + "enabled": True,
}
COMPATIBLE = {**SERVICE, S + "provider": "openai-compatible", S + "model": "nomic"}

SANDBOX: dict[str, object] = {D + "sandbox.mode": "all", D + "sandbox.workspaceAccess": "rw"}

ACTS: dict[str, Acts] = {
    S + "enabled": Acts(True, False, tools),
    S + "sources": Acts(["memory"], ["memory", "sessions"], transcripts),
    S + "experimental.sessionMemory": Acts(
        one=True, other=False, look=transcripts, beside=SESSIONS
    ),
    S + "sessions.paths": Acts(one=[], other=["{folder}/talks"], look=transcripts, beside=SESSIONS),
    S + "extraPaths": Acts([], ["{folder}/extra"], found),
    M + "enabled": Acts(one=True, other=False, look=media_files, beside=MULTIMODAL),
    M + "modalities": Acts(one=["image"], other=["audio"], look=media_files, beside=MULTIMODAL),
    M + "maxFileBytes": Acts(one=50, other=500, look=media_files, beside=MULTIMODAL),
    S + "provider": Acts("none", "static", status),
    S + "model": Acts(
        one="text-embedding-3-small", other="text-embedding-ada-002", look=sent, beside=SERVICE
    ),
    S + "fallback": Acts(one="none", other="ollama", look=embedder_key, beside=SERVICE),
    S + "local.modelPath": Acts(
        one="", other="{folder}/nosuch.gguf", look=opens, beside={S + "provider": "local"}
    ),
    S + "outputDimensionality": Acts(one=1536, other=256, look=sent, beside=SERVICE),
    S + "store.driver": Acts("sqlite", "postgres", opens),
    S + "store.path": Acts(
        one="",
        other="{folder}/elsewhere/{agentId}.sqlite",
        look=status,
        beside={S + "provider": "none"},
    ),
    S + "store.uri": Acts("", "postgresql://127.0.0.1:1/memory", opens),
    S + "store.owner": Acts(
        one="",
        other="{agentId}-ours",
        look=index_owner,
        beside={S + "store.uri": "postgresql://127.0.0.1:1/memory"},
    ),
    S + "store.vector.enabled": Acts(
        one=True, other=False, look=status, beside={S + "provider": "static"}
    ),
    S + "store.vector.engine": Acts(
        one="blocks", other="sqlite-vec", look=status, beside={S + "provider": "none"}
    ),
    S + "chunking.mode": Acts("markdown", "lines", chunks),
    S + "chunking.tokens": Acts(400, 20, chunks),
    S + "chunking.overlap": Acts(
        one=0,
        other=60,
        look=chunks,
        beside={S + "chunking.tokens": 80, S + "chunking.mode": "lines"},
    ),
    S + "cache.enabled": Acts(True, False, kept_vectors),
    S + "cache.maxEntries": Acts(1, 50, kept_vectors),
    S + "sync.onSessionStart": Acts(True, False, session_start),
    S + "sync.onSearch": Acts(True, False, found_after_a_new_note),
    S + "sync.sessions.deltaBytes": Acts(
        one=1, other=100_000, look=due_after_small_growth, beside=SESSIONS
    ),
    S + "sync.sessions.deltaMessages": Acts(
        one=1, other=50, look=due_after_small_growth, beside=SESSIONS
    ),
    S + "sync.sessions.postCompactionForce": Acts(
        one=True, other=False, look=due_after_compaction, beside=SESSIONS
    ),
    Q + "maxResults": Acts(1, 5, found),
    Q + "minScore": Acts(0, 1, found_as_configured),
    H + "enabled": Acts(True, False, question),
    H + "fusion": Acts("calibrated", "weighted", question),
    H + "vectorWeight": Acts(0.1, 0.9, question),
    H + "textWeight": Acts(0.1, 0.9, question),
    H + "candidateMultiplier": Acts(one=4, other=20, look=question, beside={Q + "maxResults": 50}),
    H + "mmr.enabled": Acts(True, False, question),
    H + "mmr.lambda": Acts(one=0.1, other=0.9, look=question, beside={H + "mmr.enabled": True}),
    H + "temporalDecay.enabled": Acts(True, False, question),
    H + "temporalDecay.halfLifeDays": Acts(
        one=1, other=90, look=question, beside={H + "temporalDecay.enabled": True}
    ),
    RERANK + "provider": Acts(one="jina", other="cohere", look=sent_to_reranker, beside=RERANKER),
    RERANK + "model": Acts(one="one", other="two", look=sent_to_reranker, beside=RERANKER),
    RERANK + "baseUrl": Acts(
        one="{url}", other="{url}/other", look=sent_to_reranker, beside=RERANKER
    ),
    RERANK + "apiKey": Acts(one=KEY, other="another-key", look=sent_to_reranker, beside=RERANKER),
    RERANK + "topK": Acts(one=2, other=3, look=sent_to_reranker, beside=RERANKER),
    "memory.citations": Acts("on", "off", citations),
    "memory.trustedPaths": Acts([], ["wiki:**"], recalled_from_a_folder),
    "memory.sharedSessions": Acts([], ["group"], answer_in_a_group),
    "memory.dailyLog.times": Acts(True, False, log_after_a_new_note),
    "memory.log": Acts("info", "off", commands_are_logged),
    "memory.history.enabled": Acts(True, False, versions_kept),
    "memory.history.maxDays": Acts(365, 10, versions_kept),
    "memory.history.maxMb": Acts(256, 1, versions_kept),
    "memory.review": Acts("curated", "off", page_after_a_note_of_an_agent),
    **TEAM_ACTS,
    "tools.allow": Acts([], ["memory_get"], tools),
    "tools.deny": Acts([], ["group:memory"], tools),
    "plugins.slots.memory": Acts("memory-core", "none", tools),
    "tools.profile": Acts("full", "minimal", tools),
    "tools.alsoAllow": Acts(
        one=[], other=["memory_get"], look=tools, beside={"tools.profile": "messaging"}
    ),
    **{
        f"tools.bySession.{kind}.{name}": Acts([], ["memory_get"], tools_by_session)
        for kind in BySession._fields
        for name in ("allow", "deny")
    },
    "tools.subagents.tools.allow": Acts([], ["memory_get"], tools_by_session),
    "tools.subagents.tools.alsoAllow": Acts([], ["memory_get"], tools_by_session),
    "tools.subagents.tools.deny": Acts([], ["memory_get"], tools_by_session),
    "tools.sandbox.tools.allow": Acts(
        one=[], other=["memory_get"], look=tools_by_session, beside=SANDBOX
    ),
    "tools.sandbox.tools.alsoAllow": Acts(
        one=[],
        other=["memory_search"],
        look=tools_by_session,
        beside={**SANDBOX, "tools.sandbox.tools.allow": ["memory_get"]},
    ),
    "tools.sandbox.tools.deny": Acts(
        one=[], other=["memory_get"], look=tools_by_session, beside=SANDBOX
    ),
    D + "sandbox.mode": Acts("off", "non-main", tools_by_session),
    D + "sandbox.workspaceAccess": Acts(
        one="ro", other="none", look=tools_by_session, beside=SANDBOX
    ),
    D + "workspace": Acts("{workspace}", "{folder}/extra", found),
    D + "userTimezone": Acts("Pacific/Kiritimati", "Pacific/Pago_Pago", today),
    D + "bootstrapMaxChars": Acts(60, 20_000, prompt),
    D + "bootstrapTotalMaxChars": Acts(60, 150_000, prompt),
    X + "enabled": Acts(True, False, prompt),
    X + "dailyMemoryDays": Acts(1, 14, prompt),
    X + "maxFileChars": Acts(20, 4000, prompt),
    X + "maxTotalChars": Acts(20, 12_000, prompt),
    D + "model": Acts("ollama:one", "ollama:two", conversation),
    D + "contextTokens": Acts(10_000, 20_000, conversation),
    C + "reserveTokensFloor": Acts(1000, 2000, conversation),
    F + "enabled": Acts(True, False, conversation),
    F + "softThresholdTokens": Acts(1000, 2000, conversation),
    F + "forceFlushTranscriptBytes": Acts("1mb", "2mb", conversation),
    F + "model": Acts("ollama:one", "ollama:two", conversation),
    F + "prompt": Acts("Save it.", "Write it down.", conversation),
    F + "systemPrompt": Acts("Be brief.", "Be exact.", conversation),
    HEART + "every": Acts("0m", "30m", heartbeat),
    HEART + "prompt": Acts("Look for Ann.", "Look for Bob.", heartbeat),
    HEART + "ackMaxChars": Acts(0, 300, heartbeat),
    HEART + "curation": Acts("off", "apply", heartbeat),
    "memory.consolidation.every": Acts("0m", "30m", consolidation),
    "memory.consolidation.days": Acts(10, 30, consolidation),
    "memory.consolidation.minDays": Acts(2, 5, consolidation),
    "hooks.internal.enabled": Acts(True, False, conversation),
    N + "enabled": Acts(True, False, conversation),
    N + "messages": Acts(5, 15, conversation),
    N + "llmSlug": Acts(True, False, conversation),
    "session.reset.mode": Acts("daily", "none", conversation),
    "session.reset.atHour": Acts(3, 4, conversation),
    "session.reset.idleMinutes": Acts(0, 60, conversation),
    R + "baseUrl": Acts("{url}", "{url}/other", remote),
    R + "apiKey": Acts(one=KEY, other="another-key", look=sent, beside={**SERVICE}),
    R + "headers": Acts(one={}, other={"X-More": "yes"}, look=sent, beside=SERVICE),
    R + "dailyTokens": Acts(one=0, other=1, look=spent, beside=SERVICE),
    R + "queryInputType": Acts(one="", other="query", look=sent, beside=COMPATIBLE),
    R + "documentInputType": Acts(one="", other="document", look=sent, beside=COMPATIBLE),
    R + "region": Acts("eu-west-1", "us-east-1", remote),
    B + "enabled": Acts(True, False, remote),
    B + "wait": Acts(True, False, remote),
    B + "concurrency": Acts(1, 2, remote),
    B + "pollIntervalMs": Acts(1, 2, remote),
    B + "timeoutMinutes": Acts(1, 2, remote),
}

PROVEN_ELSEWHERE = {
    S + "sync.watch": "integration/test_watch.py::"
    "test_with_watching_switched_off_only_the_rest_of_it_runs",
    S + "sync.watchDebounceMs": "integration/test_watch.py::"
    "test_a_manual_sync_while_watching_reports_its_own_work",
    S + "sync.intervalMinutes": "integration/test_background.py::"
    "test_the_clock_brings_the_index_up_to_date",
    RERANK + "timeoutMs": "integration/test_rerank.py::"
    "test_a_reranker_that_fails_or_is_late_leaves_the_search_as_it_was",
    **{
        f"serve.{key}": f"integration/serve/{test}"
        for key, test in {
            "host": "test_serve_settings.py::test_behind_a_proxy_tokens_are_accepted_from_it_only",
            "port": "test_serve_settings.py::test_the_port_and_the_log_are_those_of_the_settings",
            "workers": "test_serve_operations.py::"
            "test_workers_share_a_port_and_their_metrics_and_are_replaced",
            "publicUrl": "test_serve_settings.py::"
            "test_behind_a_proxy_tokens_are_accepted_from_it_only",
            "trustedProxies": "test_serve_settings.py::"
            "test_behind_a_proxy_tokens_are_accepted_from_it_only",
            "connections": "test_serve_settings.py::"
            "test_a_process_opens_no_more_connections_than_configured",
            "maxBodyBytes": "test_serve_settings.py::test_bodies_are_limited_in_size_and_time",
            "requestSeconds": "test_serve_settings.py::test_bodies_are_limited_in_size_and_time",
            "shutdownSeconds": "test_serve_operations.py::"
            "test_requests_that_do_not_finish_are_ended_after_the_limit",
            "embed": "test_serve_settings.py::test_missing_vectors_are_made_in_the_background",
            "accessLog": "test_serve_settings.py::"
            "test_the_port_and_the_log_are_those_of_the_settings",
            "rateLimits.perToken": "test_serve_operations.py::"
            "test_limits_count_by_token_and_by_address",
            "rateLimits.perAddress": "test_serve_operations.py::"
            "test_limits_count_by_token_and_by_address",
        }.items()
    },
    R + "proxy": "integration/test_every_setting.py::test_a_service_is_reached_through_the_proxy",
    "memory.backend": "integration/test_qmd_failures.py::test_the_commands_show_the_fallback",
    S + "qmd.extraCollections": "integration/test_qmd.py::"
    "test_folders_of_memory_search_are_searched_too",
    **{
        f"memory.qmd.{key}": f"integration/{test}"
        for key, test in {
            "command": "test_qmd_failures.py::test_the_commands_show_the_fallback",
            "searchMode": "test_qmd_failures.py::"
            "test_vectors_that_were_never_made_are_a_failure_and_not_an_empty_answer",
            "includeDefaultMemory": "test_qmd.py::test_the_workspaces_own_memory_can_be_left_out",
            "paths": "test_qmd.py::test_added_folders_and_extra_paths_are_collections",
            "scope": "test_qmd_sessions.py::"
            "test_a_session_outside_of_the_scope_gets_an_empty_answer_with_the_reason",
            "sessions.enabled": "test_qmd_sessions.py::"
            "test_transcripts_are_exported_only_if_that_is_enabled",
            "sessions.exportDir": "test_qmd_sessions.py::"
            "test_the_folder_of_the_export_can_be_chosen",
            "sessions.retentionDays": "test_qmd_sessions.py::"
            "test_deleted_and_old_transcripts_leave_the_export_and_other_files_stay",
            "update.interval": "test_qmd_upkeep.py::test_the_interval_updates_qmd_by_itself",
            "update.debounceMs": "test_qmd_upkeep.py::"
            "test_updates_that_no_search_asked_for_are_not_repeated_within_the_debounce",
            "update.onBoot": "test_qmd_upkeep.py::"
            "test_a_long_running_process_updates_qmd_when_it_starts",
            "update.waitForBootSync": "test_qmd_upkeep.py::"
            "test_the_first_search_can_wait_until_the_index_is_complete",
            "update.embedInterval": "test_qmd_upkeep.py::"
            "test_embedding_runs_only_where_the_mode_needs_vectors_and_its_failure_is_reported",
            "update.embedTimeoutMs": "test_qmd_upkeep.py::"
            "test_embedding_runs_only_where_the_mode_needs_vectors_and_its_failure_is_reported",
            "update.updateTimeoutMs": "test_qmd_upkeep.py::"
            "test_a_slow_update_ends_at_its_time_limit",
            "update.commandTimeoutMs": "test_qmd_upkeep.py::"
            "test_a_slow_command_about_collections_ends_at_its_time_limit",
            "limits.maxResults": "test_qmd.py::test_limits_of_the_answer_are_kept",
            "limits.maxSnippetChars": "test_qmd.py::test_limits_of_the_answer_are_kept",
            "limits.maxInjectedChars": "test_qmd.py::test_limits_of_the_answer_are_kept",
            "limits.timeoutMs": "test_qmd_failures.py::"
            "test_a_qmd_that_hangs_is_killed_at_the_time_limit",
        }.items()
    },
    HEART + "model": "integration/test_cli_heartbeat.py::test_openclaws_keys_act_or_warn",
}
"""Tests that need more than two values."""


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dims=1536) as running:
        yield running


@pytest.fixture
def place(tmp_path: Path) -> Place:
    made = Place(tmp_path)
    made.home.mkdir()
    made.state.mkdir()
    text = "".join(
        f"## Bird {n}\n\nThe heron {n} nests by pier {n}, and the swan does not.\n\n"
        for n in range(12)
    )
    made.write("MEMORY.md", f"# Birds\n\n{text}")
    (tmp_path / "extra").mkdir()
    (tmp_path / "extra" / "MEMORY.md").write_text(
        "The heron also nests inland.\n", encoding="utf-8"
    )
    return made


def result(place: Place, server: EmbeddingServer, key: str, value: object, acts: Acts) -> object:
    """What the look gives with this value in the configuration file, from a fresh index."""
    for name in ("memory", "agents", "providers"):
        shutil.rmtree(place.state / name, ignore_errors=True)
    (place.workspace / "memory" / "2026-03-01.md").unlink(missing_ok=True)
    for day in ("2026-02-23", "2026-02-24"):
        place.write(
            f"memory/{day}.md", f"- On {day} the heron was seen at the nest near the long pier.\n"
        )
    words = {
        "{folder}": str(place.folder),
        "{url}": server.url,
        "{workspace}": str(place.workspace),
    }
    tree: dict[str, Any] = {}
    put(tree, D + "workspace", str(place.workspace))
    for name, given in {**acts.beside, key: value}.items():
        put(tree, name, given)
    text = json.dumps(tree)
    for word, meant in words.items():
        text = text.replace(word, meant)
    (place.state / "clawmark.json").write_text(text, encoding="utf-8")
    return acts.look(Scene(place, server))


@pytest.mark.parametrize("key", ACTS)
def test_the_setting_has_an_effect(
    key: str, place: Place, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in place.environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CLAWMARK_WORKSPACE")
    monkeypatch.chdir(place.home)
    acts = ACTS[key]
    assert result(place, server, key, acts.one, acts) != result(
        place, server, key, acts.other, acts
    )


def test_every_key_has_a_test_of_its_effect() -> None:
    assert sorted({*ACTS, *PROVEN_ELSEWHERE}) == sorted(BY_NAME)
    assert not ACTS.keys() & PROVEN_ELSEWHERE.keys()


@pytest.mark.parametrize("key", PROVEN_ELSEWHERE)
def test_a_test_named_elsewhere_exists_and_sets_the_key(key: str) -> None:
    file, _, name = PROVEN_ELSEWHERE[key].partition("::")
    text = (ROOT / "tests" / file).read_text(encoding="utf-8")
    tests = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
    assert key.rpartition(".")[2] in (ast.get_source_segment(text, tests[name]) or "")


def test_a_service_is_reached_through_the_proxy(place: Place, server: EmbeddingServer) -> None:
    remote = {"baseUrl": "http://embeddings.test/v1", "apiKey": KEY, "proxy": server.root}
    tree = {"memorySearch": {"provider": "openai", "remote": remote}}
    (place.state / "clawmark.json").write_text(json.dumps(tree), encoding="utf-8")
    assert place.run("index").code == 0
    assert {request.target for request in server.requests} == {
        "http://embeddings.test/v1/embeddings"
    }


NOT_USED = {
    "plugins": {"entries": {"memory-wiki": {"enabled": True}}},
    "memorySearch": {"provider": "none", "multimodal": {"enabled": True}},
    "memory": {"qmd": {"mcporter": {"enabled": True}}},
}
NAMED = (
    "plugins.entries.memory-wiki",
    "memorySearch.multimodal",
    "memory.qmd.mcporter",
)


def test_settings_without_effect_are_named_by_status_and_doctor(place: Place) -> None:
    (place.state / "clawmark.json").write_text(json.dumps(NOT_USED), encoding="utf-8")
    looks = {
        words[0]: place.run(*words)
        for words in (["status"], ["doctor"], ["search", "heron"], ["get", "MEMORY.md"])
    }
    assert [(name, ran.code) for name, ran in looks.items()] == [
        ("status", 0),
        ("doctor", 1),
        ("search", 0),
        ("get", 0),
    ]
    for name, ran in looks.items():
        seen, unseen = (ran.out, ran.err) if name in ("status", "doctor") else (ran.err, ran.out)
        assert [seen.count(key) for key in NAMED] == [1] * len(NAMED), name
        assert not any(key in unseen for key in NAMED), name


@pytest.mark.parametrize(
    "words",
    [["search", "heron"], ["get", "MEMORY.md"], ["prompt"], ["index"], ["status"]],
    ids=lambda w: w[0],
)
def test_settings_without_effect_are_warnings_in_json_output(
    place: Place, words: list[str]
) -> None:
    (place.state / "clawmark.json").write_text(json.dumps(NOT_USED), encoding="utf-8")
    ran = place.run(*words, "--json")
    warnings = ran.json()["warnings"]
    assert [sum(key in warning for warning in warnings) for key in NAMED] == [1] * len(NAMED)


def test_a_file_without_mistakes_has_no_warnings(place: Place) -> None:
    (place.state / "clawmark.json").write_text(
        '{"memorySearch": {"provider": "none"}}', encoding="utf-8"
    )
    ran = place.run("search", "heron", "--json")
    assert "warnings" not in ran.json() and ran.err == ""
