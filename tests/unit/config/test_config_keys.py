"""The table of keys against the settings: neither knows a key the other does not."""

from __future__ import annotations

from clawmark.config.check import _CHECKS
from clawmark.config.keys import BY_NAME, GROUPS, KEYS
from clawmark.config.schema import REMOTE, RUNTIME, Settings, attribute_path, value_of, with_value
from clawmark.config.unsupported import UNSUPPORTED_BY_NAME


def leaves(group: object, path: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not hasattr(group, "_fields"):
        return [path]
    return [leaf for name in group._fields for leaf in leaves(getattr(group, name), (*path, name))]


def test_every_setting_has_a_key_and_every_used_key_a_setting() -> None:
    as_given = (REMOTE, *RUNTIME)
    known = {attribute_path(key.name) for key in KEYS if not key.name.startswith(as_given)}
    search = {("memory_search", name) for name in ("remote", "extra_patterns", "provider_entries")}
    assert known | search | {("tools", "denied"), ("runtime",)} == set(leaves(Settings()))


def test_every_key_has_a_sentence_and_a_known_kind() -> None:
    assert len(BY_NAME) == len(KEYS)
    for key in KEYS:
        assert key.sentence.endswith(".") and key.sentence[0].isupper() | key.sentence.startswith(
            ("`", "1")
        )
        assert key.kind in _CHECKS
        assert bool(key.choices) == (key.kind in ("choice", "choices"))


def test_no_key_is_a_group() -> None:
    assert not GROUPS & set(BY_NAME)


def test_a_value_put_in_is_the_value_taken_out() -> None:
    for key in KEYS:
        assert value_of(with_value(Settings(), key.name, "marked"), key.name) == "marked"


def is_unsupported(name: str) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in UNSUPPORTED_BY_NAME)


def test_no_key_is_both_supported_and_unsupported() -> None:
    assert [key.name for key in KEYS if is_unsupported(key.name)] == []


def test_every_key_of_openclaw_is_known() -> None:
    names = """enabled sources extraPaths multimodal.enabled multimodal.modalities multimodal.maxFileBytes
    experimental.sessionMemory provider model outputDimensionality fallback remote.baseUrl remote.apiKey remote.headers
    remote.batch.enabled remote.batch.wait remote.batch.concurrency remote.batch.pollIntervalMs
    remote.batch.timeoutMinutes local.modelPath local.modelCacheDir store.driver store.path store.vector.enabled
    store.vector.extensionPath store.fts.tokenizer chunking.tokens chunking.overlap sync.onSessionStart sync.onSearch
    sync.watch sync.watchDebounceMs sync.intervalMinutes sync.sessions.deltaBytes sync.sessions.deltaMessages
    sync.sessions.postCompactionForce query.maxResults query.minScore query.hybrid.enabled query.hybrid.vectorWeight
    query.hybrid.textWeight query.hybrid.candidateMultiplier query.hybrid.mmr.enabled query.hybrid.mmr.lambda
    query.hybrid.temporalDecay.enabled query.hybrid.temporalDecay.halfLifeDays cache.enabled cache.maxEntries
    qmd.extraCollections"""
    others = """backend citations qmd.command qmd.searchMode qmd.searchTool qmd.includeDefaultMemory qmd.paths
    qmd.sessions.enabled qmd.sessions.exportDir qmd.sessions.retentionDays qmd.update.interval qmd.update.debounceMs
    qmd.update.onBoot qmd.update.waitForBootSync qmd.update.embedInterval qmd.update.commandTimeoutMs
    qmd.update.updateTimeoutMs qmd.update.embedTimeoutMs qmd.limits.maxResults qmd.limits.maxSnippetChars
    qmd.limits.maxInjectedChars qmd.limits.timeoutMs qmd.mcporter.enabled qmd.mcporter.serverName
    qmd.mcporter.startDaemon qmd.scope"""
    wanted = {f"memorySearch.{name}" for name in names.split()} | {
        f"memory.{name}" for name in others.split()
    }
    assert [
        name for name in sorted(wanted) if name not in BY_NAME and not is_unsupported(name)
    ] == []
