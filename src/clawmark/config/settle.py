"""Build the settings from checked values: the rules between keys, and the warnings.

Values are clamped where OpenClaw clamps them, with a warning: an overlap below the chunk size, at
most 20 candidates for one result, weights that sum to 1. An extra path that would index the whole
home folder or disk by mistake is refused."""

# os.path and not pathlib, whose import costs 4 ms of every cold search.

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from clawmark.config.check import Written, fill_in, refuse, show
from clawmark.config.json5 import show_path
from clawmark.config.paths import Places
from clawmark.config.plugins import settled_plugins
from clawmark.config.schema import (
    Chunking,
    Hybrid,
    Loaded,
    MemorySearch,
    Settings,
    Store,
)
from clawmark.config.schema.media import MODEL, Multimodal, can_embed
from clawmark.config.search_keys import with_value
from clawmark.config.unsupported import OPENCLAW_PROVIDERS, UNSUPPORTED_BY_NAME
from clawmark.model.errors import ConfigError

LEAST_TOKENS = 16
"""A smaller passage does not hold a sentence, and a large file would become a million of them."""
MOST_CANDIDATES = 20
Values = dict[str, tuple[object, Written]]


class Gathered:
    """The values of all sources, checked one by one, each with where it is written."""

    def __init__(self) -> None:
        self.values: Values = {}
        self.patterns: list[tuple[str, str]] = []
        """The extra paths, each with its pattern."""
        self.tool_lists: dict[tuple[str, str | int], tuple[str, ...]] = {}
        """`tools.allow` and `tools.deny`, by key and by whether they are for all agents or one."""
        self.unsupported: dict[str, Written] = {}
        """Values of keys that have no effect."""
        self.model_providers: dict[str, object] = {}
        """`models.providers` of all files."""
        self.plugin_entries: dict[str, Written] = {}
        """`plugins.entries` of all files."""
        self.warnings: list[str] = []


def settle(gathered: Gathered, places: Places) -> Loaded:
    """The settings that these values make; raises ConfigError."""
    values, warnings = gathered.values, gathered.warnings
    settings, origins = Settings(), dict[str, str]()
    for key, (value, written) in values.items():
        origins[key] = written.source.origin
        settings = with_value(settings, key, value)
    search = settings.memory_search
    search = search._replace(
        chunking=_settled_chunking(
            search.chunking, "memorySearch.chunking.overlap" in values, warnings
        ),
        query=search.query._replace(hybrid=_settled_hybrid(search.query.hybrid, warnings)),
        extra_paths=_settled_paths(values, places, "memorySearch.extraPaths"),
        sessions=search.sessions._replace(
            paths=_settled_paths(values, places, "memorySearch.sessions.paths")
        ),
        sources=_settled_sources(search),
        multimodal=_settled_multimodal(search, warnings),
    )
    search = search._replace(
        extra_patterns=_settled_patterns(search.extra_paths, gathered.patterns, places)
    )
    search = _with_providers(search, gathered.model_providers, warnings)
    settings = settings._replace(memory_search=search)
    if any(key.startswith("tools.") for key in values):
        settings = _with_tool_lists(settings, gathered.tool_lists, origins)
    plugins = settled_plugins(settings.plugins.slots.memory, gathered.plugin_entries, warnings)
    settings = settings._replace(plugins=plugins)
    warnings += unsupported_warnings(gathered.unsupported)
    settings = _with_qmd(settings, places, warnings)
    if settings.memory_search.store.path and _is_in_openclaw_file(
        values["memorySearch.store.path"][1]
    ):
        warnings.append(
            f"memorySearch.store.path names OpenClaw's own index; ours is {places.index_path}."
        )
        settings = with_value(settings, "memorySearch.store.path", "")
    warnings += _unused_with_uri(settings.memory_search.store, values)
    team = {key: written for key, (_, written) in values.items() if key.startswith("team.")}
    if team:
        # Imported late: most files have no shared spaces.
        from clawmark.config.team import team_warnings

        warnings += team_warnings(settings, team)
    warnings += _unused_fallback(settings)
    _warn_of_unset_variables(settings, warnings)
    if settings.user_timezone:
        _check_timezone(values["agents.defaults.userTimezone"][1])
    return Loaded(settings, origins, tuple(dict.fromkeys(warnings)))


def _unused_with_uri(store: Store, values: Values) -> list[str]:
    """Warn of settings of the SQLite file where the index is in PostgreSQL."""
    names = ("memorySearch.store.path", "memorySearch.store.vector.engine")
    return [
        f"{name} has no effect, because memorySearch.store.uri names a database."
        for name in names
        if store.uri and name in values
    ]


def _unused_fallback(settings: Settings) -> list[str]:
    """Warn of a fallback of the database that is never used."""
    store = settings.memory_search.store
    if store.fallback == "none":
        return []
    name, why = "memorySearch.store.fallback", ""
    if not store.uri:
        why = "memorySearch.store.uri names no database"
    elif settings.memory.backend != "builtin":
        why = f'memory.backend is "{settings.memory.backend}"'
    return [f"{name} has no effect, because {why}."] if why else []


def _with_qmd(settings: Settings, places: Places, warnings: list[str]) -> Settings:
    """Add the folders and the transcripts of the QMD backend to what is searched, so that they are
    also searched when the built-in backend answers.
    """
    if settings.memory.backend != "qmd":
        return settings
    search, qmd = settings.memory_search, settings.qmd
    extras, patterns = list(search.extra_paths), dict(search.extra_patterns)
    known = {_absolute(path, places) for path in extras}
    for entry in (*qmd.paths, *settings.qmd_search.extra_collections):
        if _absolute(entry["path"], places) not in known:
            known.add(_absolute(entry["path"], places))
            extras.append(entry["path"])
            pattern = entry.get("pattern", "").removeprefix("./")
            if pattern.startswith(("!", "/")) or any(sign in pattern for sign in "{}()\\,"):
                warnings.append(
                    f"The pattern {show(pattern)} of the QMD folder {show(entry['path'])} is not "
                    f"used: only * ** ? and [] are known. Every Markdown file in it is searched."
                )
            elif pattern not in ("", "**", "**/*", "**/*.md"):
                patterns[entry["path"]] = (pattern,)
    sources = search.sources
    if qmd.sessions.enabled and "sessions" not in sources:
        sources = (*sources, "sessions")
    search = search._replace(extra_paths=tuple(extras), extra_patterns=patterns, sources=sources)
    return settings._replace(memory_search=search)


def unsupported_warnings(found: Mapping[str, Written]) -> list[str]:
    """A warning for each key that is set and has no effect."""
    warnings = list[str]()
    for key, written in found.items():
        entry = UNSUPPORTED_BY_NAME[key]
        if entry.is_harmless(written.value):
            continue
        where = f"{written.source.file}: " if written.source.file else ""
        is_group = isinstance(written.value, (dict, list))
        value = "" if is_group else f" is {show(written.value)}, which"
        warnings.append(f"{where}{show_path(written.path)}{value} has no effect: {entry.reason}.")
    return warnings


def _with_tool_lists(
    settings: Settings,
    lists: Mapping[tuple[str, str | int], tuple[str, ...]],
    origins: dict[str, str],
) -> Settings:
    tools = settings.tools.with_layers(lists)
    of_agents = settings.of_agents._replace(tools=tools)
    return _with_subagents(settings._replace(given_to_agents=of_agents), origins)


def _with_subagents(settings: Settings, origins: dict[str, str]) -> Settings:
    """Let sub-agents read the memory if `tools.subagents.tools` names a memory tool.

    Then they have the named tools only, as in OpenClaw."""
    lists = settings.tools.subagents.tools
    named = (*lists.allow, *lists.also_allow)
    shared = settings.memory.shared_sessions
    if "subagent" in shared or not any(names_memory(name) for name in named):
        return settings
    key = "allow" if any(map(names_memory, lists.allow)) else "alsoAllow"
    origins["memory.sharedSessions"] = origins[f"tools.subagents.tools.{key}"]
    settings = with_value(settings, "memory.sharedSessions", (*shared, "subagent"))
    return with_value(settings, "tools.subagents.tools.allow", named)


def names_memory(entry: str) -> bool:
    """Whether an entry of a tool list is the name of a memory tool or a group of them."""
    return entry.lower().startswith(("memory_", "memory-", "group:memory"))


def _settled_sources(search: MemorySearch) -> tuple[str, ...]:
    is_left_out = "" if search.experimental.session_memory else "sessions"
    return (
        tuple(source for source in search.sources if source != is_left_out)
        or MemorySearch().sources
    )


def _settled_multimodal(search: MemorySearch, warnings: list[str]) -> Multimodal:
    """Switch images and audio off, with a warning, where the model cannot embed them."""
    multimodal = search.multimodal
    if not multimodal.wanted or can_embed(search.provider, search.model):
        return multimodal
    warnings.append(
        "memorySearch.multimodal.enabled is true, but images and audio are not indexed: "
        f'memorySearch.provider has to be "gemini" and memorySearch.model "{MODEL}".'
    )
    return multimodal._replace(enabled=False)


def _with_providers(
    search: MemorySearch, entries: Mapping[str, object], warnings: list[str]
) -> MemorySearch:
    """Add `models.providers`, in which OpenClaw describes services by name."""
    known = {name: entry for name, entry in entries.items() if isinstance(entry, dict)}
    warnings += [
        f'memorySearch.fallback names "{name}", which is not supported; it is left out.'
        for name in search.fallback
        if name in OPENCLAW_PROVIDERS
    ]
    fallback = tuple(name for name in search.fallback if name not in OPENCLAW_PROVIDERS)
    return search._replace(provider_entries=known, fallback=fallback)


def _is_in_openclaw_file(written: Written) -> bool:
    return os.path.basename(written.source.file) == "openclaw.json"


def _settled_chunking(chunking: Chunking, overlap_is_set: bool, warnings: list[str]) -> Chunking:
    tokens, overlap = chunking.tokens, chunking.overlap
    if tokens < LEAST_TOKENS:
        warnings.append(
            f"memorySearch.chunking.tokens is {tokens}; {LEAST_TOKENS} is used, the least there is."
        )
        tokens = LEAST_TOKENS
    if overlap >= tokens and not overlap_is_set and chunking.mode == "markdown":
        overlap = tokens // 5  # the share that 80 has of 400
    elif overlap >= tokens:
        warnings.append(
            f"memorySearch.chunking.overlap is {overlap}; {tokens - 1} is used, which is below "
            f"the size."
        )
        overlap = tokens - 1
    return chunking._replace(tokens=tokens, overlap=overlap)


def _settled_hybrid(hybrid: Hybrid, warnings: list[str]) -> Hybrid:
    vector_weight, text_weight = hybrid.vector_weight, hybrid.text_weight
    total = vector_weight + text_weight
    if total <= 0:
        warnings.append(
            "memorySearch.query.hybrid.vectorWeight and textWeight are both 0; 0.7 and 0.3 are "
            "used."
        )
        vector_weight, text_weight = Hybrid().vector_weight, Hybrid().text_weight
    elif abs(total - 1) >= 1e-9:
        vector_weight, text_weight = vector_weight / total, text_weight / total
    multiplier = hybrid.candidate_multiplier
    if multiplier > MOST_CANDIDATES:
        warnings.append(
            f"memorySearch.query.hybrid.candidateMultiplier is {multiplier}; {MOST_CANDIDATES} "
            f"is used."
        )
    return hybrid._replace(
        vector_weight=vector_weight,
        text_weight=text_weight,
        candidate_multiplier=min(multiplier, MOST_CANDIDATES),
    )


def _settled_paths(values: Values, places: Places, key: str) -> tuple[str, ...]:
    """Extra paths without duplicates; a folder that contains the workspace is refused."""
    if key not in values:
        return ()
    paths, written = values[key]
    assert isinstance(paths, tuple)
    kept = dict[str, str]()
    workspace = os.path.realpath(places.workspace)
    home = os.path.realpath(os.path.expanduser("~"))
    for path in paths:
        full = _absolute(path, places)
        real = os.path.realpath(full)
        if real == home or workspace.startswith(real.rstrip(os.sep) + os.sep):
            raise refuse(
                written,
                f"would open {show(path)}, which is {_describe(real, home)}; name the folders you "
                f"want in it",
            )
        kept.setdefault(full, path)
    return tuple(kept.values())


def _settled_patterns(
    paths: Sequence[str], patterns: Sequence[tuple[str, str]], places: Places
) -> dict[str, tuple[str, ...]]:
    """The patterns of each path; a path that is also given without one is searched as a whole."""
    given = {_absolute(path, places): path for path in paths}
    found = dict[str, list[str]]()
    for path, pattern in patterns:
        found.setdefault(given[_absolute(path, places)], []).append(pattern)
    return {path: tuple(some) for path, some in found.items() if all(some)}


def _absolute(path: str, places: Places) -> str:
    return os.path.normpath(os.path.join(places.workspace, os.path.expanduser(path)))


def _describe(real: str, home: str) -> str:
    if real == os.path.dirname(real):
        return "the whole disk"
    return "your whole home folder" if real == home else "a folder around the workspace"


def _warn_of_unset_variables(settings: Settings, warnings: list[str]) -> None:
    remote = settings.memory_search.remote
    for name, value in (("apiKey", remote.api_key), ("baseUrl", remote.base_url)):
        try:
            if isinstance(value, str):
                fill_in(value, f"memorySearch.remote.{name}", os.environ)
        except ConfigError as error:
            warnings.append(error.message)


def _check_timezone(written: Written) -> None:
    import zoneinfo  # Imported late: few files name a time zone.

    try:
        zoneinfo.ZoneInfo(str(written.value).strip())
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        if not zoneinfo.available_timezones():
            why = (
                "names a time zone, but this system has no list of "
                'them: install it with "pip install tzdata"'
            )
            raise refuse(written, why) from None
        raise refuse(
            written, f'must be a time zone such as "Europe/Berlin", not {show(written.value)}'
        ) from None
