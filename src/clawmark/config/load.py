"""Load the settings, with the origin of each value and the warnings.

Later sources win: defaults, the user's file (its sections from general to particular), the file
inside the workspace, and the caller's overrides. A wrong value in the user's own file is a
ConfigError. The file inside a workspace may be written by an agent, so it may set chunking and
query options only, and a mistake in it is a warning: it must neither redirect requests nor stop the
search. `paths` finds the files."""

# os.path and not pathlib, whose import costs 4 ms of every cold search.

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

from clawmark.config.check import Source, Written, check, patterns_of, refuse, show
from clawmark.config.files import ConfigFile, read_config
from clawmark.config.json5 import show_path
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded, Settings
from clawmark.config.search_keys import all_keys, find_key, is_group
from clawmark.config.sections import OTHER_SECTIONS, OUR_SECTIONS, Section, sections_for
from clawmark.config.settle import Gathered, settle
from clawmark.config.unsupported import UNSUPPORTED_BY_NAME, UNSUPPORTED_GROUPS
from clawmark.model.errors import ConfigError

_WORKSPACE_MAY_SET = ("memorySearch.chunking.", "memorySearch.query.")
_WORKSPACE_MAY_NOT_SET = ("memorySearch.query.rerank.",)
"""These name an address that passages and a key are sent to."""
_WORKSPACE_LIMIT = 64 * 1024
_JOINED = (
    "memorySearch.extraPaths",
    "memorySearch.sessions.paths",
    "memorySearch.qmd.extraCollections",
)
"""Lists to which a more particular section adds."""


def load(places: Places, overrides: Mapping[str, object] | None = None) -> Loaded:
    """The settings for these places; raises ConfigError."""
    if not places.has_settings and not overrides:
        return Loaded(Settings(), {}, ())
    inside = _workspace_file(places)
    loader = _Loader()
    for file in (places.beneath, places.config):
        if file is not None:
            loader.add_file(file, places.agent)
    if inside is not None:
        loader.add_workspace_file(inside)
    if overrides:
        loader.add_overrides(overrides)
    return settle(loader.gathered, places)


class _Loader:
    """Collects checked values; each source overrides the ones before it."""

    def __init__(self) -> None:
        self.gathered = Gathered()
        self.warnings = self.gathered.warnings

    def add_file(self, file: ConfigFile, agent: str) -> None:
        source = Source(f"file {file.path}", file.path, file.text)
        self.warnings += _unknown_sections(file)
        models = file.tree.get("models")
        providers = models.get("providers") if isinstance(models, dict) else None
        self.gathered.model_providers.update(providers if isinstance(providers, dict) else {})
        self._add_plugin_entries(file.tree.get("plugins"), source)
        self.warnings += _channel_warnings(file)
        for section in sections_for(file.tree, agent, source):
            for key, written in self._leaves(section, source):
                self._put(key, written)

    def _add_plugin_entries(self, plugins: object, source: Source) -> None:
        """Keep `plugins.entries` as written; `settle` checks those of memory plugins."""
        entries = plugins.get("entries") if isinstance(plugins, dict) else None
        for name, entry in entries.items() if isinstance(entries, dict) else ():
            self.gathered.plugin_entries[name] = Written(
                source, ("plugins", "entries", name), entry
            )

    def add_workspace_file(self, file: ConfigFile | str) -> None:
        if isinstance(file, str):
            self.warnings.append(file)
            return
        source = Source(f"workspace {file.path}", file.path, file.text)
        section = file.tree.get("memorySearch", {})
        ignored = [name for name in file.tree if name != "memorySearch"]
        values = section if isinstance(section, dict) else {}
        for key, written in self._leaves(
            Section("memorySearch", ("memorySearch",), values), source
        ):
            if not key.startswith(_WORKSPACE_MAY_SET) or key.startswith(_WORKSPACE_MAY_NOT_SET):
                ignored.append(key)
                continue
            try:
                self._put(key, written)
            except ConfigError as error:
                self.warnings.append(f"{error.message[:-1]}; it is not used.")
        if ignored or not isinstance(section, dict):
            names = ", ".join(sorted(ignored)[:3]) or "memorySearch"
            self.warnings.append(
                f"{file.path} may set memorySearch.chunking.* and memorySearch.query.* only; "
                f"ignored: {names[:120]}."
            )

    def add_overrides(self, overrides: Mapping[str, object]) -> None:
        for key, value in overrides.items():
            if find_key(key) is None:
                raise ConfigError(
                    f"{key} is not a setting.{_suggestion(key, all_keys().BY_NAME)}", key=key
                )
            if key in ("agents.defaults.workspace", "memorySearch.store.path"):
                raise ConfigError(
                    f"{key} decides where things are and cannot be overridden here.", key=key
                )
            plain = list(value) if isinstance(value, tuple) else value
            self._put(key, Written(Source("flag"), tuple(key.split(".")), plain))

    def _put(self, key: str, written: Written) -> None:
        gathered = self.gathered
        known = find_key(key)
        assert known is not None
        value = check(known, written, self.warnings)
        if key in ("tools.allow", "tools.deny"):
            assert isinstance(value, tuple)
            gathered.tool_lists[key, written.path[0]] = value
        is_added = bool(written.source.file)
        if key == "memorySearch.extraPaths":
            patterns = patterns_of(written, self.warnings)
            gathered.patterns[:] = [*gathered.patterns, *patterns] if is_added else patterns
        if key in _JOINED and key in gathered.values and is_added:
            earlier = gathered.values[key][0]
            assert isinstance(earlier, tuple) and isinstance(value, tuple)
            value = earlier + value
        gathered.values[key] = (value, written)

    def _leaves(self, section: Section, source: Source) -> Iterator[tuple[str, Written]]:
        """Every known key of a section with its value; unknown keys become warnings."""
        waiting = [(section.name, section.path, section.values)]
        while waiting:
            name, path, values = waiting.pop()
            for part, value in values.items():
                key, written = f"{name}.{part}".lstrip("."), Written(source, (*path, part), value)
                if find_key(key) is not None:
                    yield key, written
                elif key in UNSUPPORTED_BY_NAME:
                    self.gathered.unsupported[key] = written
                elif not is_group(key) and key not in UNSUPPORTED_GROUPS:
                    self.warnings.append(_unknown_key(written, key))
                elif isinstance(value, dict):
                    waiting.append((key, written.path, value))
                else:
                    error = refuse(written, f"must be an object, not {show(value)}")
                    if not source.origin.startswith("workspace "):
                        raise error
                    self.warnings.append(error.message)


def _workspace_file(places: Places) -> ConfigFile | str | None:
    """The settings inside the workspace, None, or a warning that says why they are not used."""
    path = places.workspace_config
    try:
        if not os.path.lexists(path):
            return None
        if os.path.islink(os.path.dirname(path)):
            return f"{os.path.dirname(path)} is a link; the settings behind it are not used."
        return read_config(path, follow_links=False, follow_includes=False, limit=_WORKSPACE_LIMIT)
    except ConfigError as error:
        return f"{error.message[:-1]}; it is not used."
    except (OSError, ValueError):
        return None


def _unknown_sections(file: ConfigFile) -> list[str]:
    """Warnings about unknown top-level names; OpenClaw's own file may have more than we know."""
    names = [name for name in file.tree if name not in OTHER_SECTIONS and name not in OUR_SECTIONS]
    warnings = list[str]()
    for name in names[:10]:
        suggestion = _suggestion(name, OUR_SECTIONS)
        if suggestion or os.path.basename(file.path) != "openclaw.json":
            warnings.append(
                f"{file.path}: there is no section {_short(name)}; it is ignored.{suggestion}"
            )
    return warnings


def _channel_warnings(file: ConfigFile) -> list[str]:
    """Warnings about the tool lists of groups, rooms and senders of channels that name memory."""
    waiting: list[tuple[tuple[str | int, ...], object]] = [
        (("channels",), file.tree.get("channels"))
    ]
    warnings = list[str]()
    while waiting:
        path, value = waiting.pop()
        if not isinstance(value, dict):
            continue
        for name, inner in value.items():
            if name not in ("tools", "toolsBySender"):
                waiting.append(((*path, name), inner))
            elif "memory" in str(inner):
                shown = _short(show_path((*path, name)))
                warnings.append(
                    f"{file.path}: {shown} has no effect: use tools.deny and tools.bySession for "
                    f"the memory tools."
                )
    return warnings


def _unknown_key(written: Written, key: str) -> str:
    where = f"{written.source.file}: " if written.source.file else ""
    name = _short(show_path(written.path))
    known = (*all_keys().BY_NAME, *all_keys().GROUPS)
    return f"{where}there is no key {name}; it is ignored.{_suggestion(key, known)}"


def _suggestion(name: str, known: Iterable[str]) -> str:
    """`Did you mean …?` for the real key whose last part is most similar, or an empty text.

    Whole keys are compared only to choose between equal last parts: their long common beginnings
    make any two look alike."""
    import difflib  # Imported late: only a mistake needs it.

    by_last = dict[str, list[str]]()
    for one in known:
        by_last.setdefault(one.rpartition(".")[2].lower(), []).append(one)
    near = difflib.get_close_matches(
        name.rpartition(".")[2][:100].lower(), list(by_last), n=1, cutoff=0.7
    )
    if not near:
        return ""
    best = max(
        by_last[near[0]], key=lambda one: difflib.SequenceMatcher(None, name[:200], one).ratio()
    )
    return f" Did you mean {best}?"


def _short(name: str) -> str:
    text = name if name.isprintable() else ascii(name)[1:-1]
    return text[:77] + "…" if len(text) > 80 else text
