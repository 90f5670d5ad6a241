"""The table of keys is complete and agrees with the settings."""

from __future__ import annotations

from clawmark.config.check import KINDS, Source, Written, check
from clawmark.config.keys import BY_NAME, GROUPS, KEYS, value_of
from clawmark.config.schema import Settings
from clawmark.config.schema.agent import AgentSettings
from clawmark.config.search_keys import with_value
from clawmark.config.unsupported import UNSUPPORTED_BY_NAME


def leaves(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not hasattr(group, "_fields"):
        return [path]
    return [leaf for name in group._fields for leaf in leaves(getattr(group, name), (*path, name))]


def test_every_setting_has_a_key_except_the_derived_ones() -> None:
    derived: set[tuple[str, ...]] = {
        ("memory_search", "extra_patterns"),
        ("memory_search", "provider_entries"),
        ("tools", "layers"),
        ("plugins", "entries"),
        ("given_to_agents",),
    }
    known = {key.attributes for key in KEYS}
    assert known | derived == {*leaves(Settings()), *leaves(AgentSettings())}


def test_keys_have_the_names_that_openclaw_uses() -> None:
    attributes = {
        "memorySearch.query.maxResults": ("memory_search", "query", "max_results"),
        "memorySearch.query.hybrid.mmr.lambda": (
            "memory_search",
            "query",
            "hybrid",
            "mmr",
            "lambda_",
        ),
        "agents.defaults.userTimezone": ("user_timezone",),
        "hooks.internal.entries.session-memory.llmSlug": ("hooks", "note", "llm_slug"),
        "session.reset.atHour": ("session_reset", "at_hour"),
    }
    assert {name: BY_NAME[name].attributes for name in attributes} == attributes


def test_the_default_of_a_key_passes_its_own_check() -> None:
    for key in KEYS:
        written = list(key.default) if isinstance(key.default, tuple) else key.default
        if written != "" or key.kind not in ("url", "model"):
            checked = check(key, Written(Source("flag"), tuple(key.name.split(".")), written))
            assert checked == key.default


def test_every_key_has_a_description_and_a_known_kind() -> None:
    assert len(BY_NAME) == len(KEYS)
    for key in KEYS:
        assert key.description.endswith(".") and key.description[
            0
        ].isupper() | key.description.startswith(("`", "1"))
        assert key.kind in KINDS
        assert bool(key.choices) == (key.kind in ("choice", "choices"))


def test_no_key_is_a_group() -> None:
    assert not GROUPS & set(BY_NAME)


def test_with_value_and_value_of_agree() -> None:
    for key in KEYS:
        assert value_of(with_value(Settings(), key.name, "marked"), key.name) == "marked"


def is_unsupported(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in UNSUPPORTED_BY_NAME)


def test_no_key_is_both_supported_and_unsupported() -> None:
    assert [key.name for key in KEYS if is_unsupported(key.name)] == []


def test_every_key_of_openclaw_is_known() -> None:
    names = """
    enabled sources extraPaths multimodal.enabled multimodal.modalities multimodal.maxFileBytes
    experimental.sessionMemory provider model outputDimensionality fallback remote.baseUrl
    remote.apiKey remote.headers remote.batch.enabled remote.batch.wait remote.batch.concurrency
    remote.batch.pollIntervalMs remote.batch.timeoutMinutes local.modelPath local.modelCacheDir
    store.driver store.path store.vector.enabled store.vector.extensionPath store.fts.tokenizer
    chunking.tokens chunking.overlap sync.onSessionStart sync.onSearch sync.watch
    sync.watchDebounceMs sync.intervalMinutes sync.sessions.deltaBytes
    sync.sessions.deltaMessages sync.sessions.postCompactionForce query.maxResults
    query.minScore query.hybrid.enabled query.hybrid.vectorWeight query.hybrid.textWeight
    query.hybrid.candidateMultiplier query.hybrid.mmr.enabled query.hybrid.mmr.lambda
    query.hybrid.temporalDecay.enabled query.hybrid.temporalDecay.halfLifeDays cache.enabled
    cache.maxEntries qmd.extraCollections
    """
    others = """
    backend citations qmd.command qmd.searchMode qmd.searchTool qmd.includeDefaultMemory
    qmd.paths qmd.sessions.enabled qmd.sessions.exportDir qmd.sessions.retentionDays
    qmd.update.interval qmd.update.debounceMs qmd.update.onBoot qmd.update.waitForBootSync
    qmd.update.embedInterval qmd.update.commandTimeoutMs qmd.update.updateTimeoutMs
    qmd.update.embedTimeoutMs qmd.limits.maxResults qmd.limits.maxSnippetChars
    qmd.limits.maxInjectedChars qmd.limits.timeoutMs qmd.mcporter.enabled
    qmd.mcporter.serverName qmd.mcporter.startDaemon qmd.scope
    """
    wanted = {f"memorySearch.{name}" for name in names.split()} | {
        f"memory.{name}" for name in others.split()
    }
    assert [
        name for name in sorted(wanted) if name not in BY_NAME and not is_unsupported(name)
    ] == []
