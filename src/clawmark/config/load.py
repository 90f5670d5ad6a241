"""Places in; settings out, with where each value comes from and what there is to warn about.

Built-in values give way to the user's file (the sections in it from general to particular), that to
the settings inside the workspace, and those to what the caller asks for. A wrong value in the
user's own file is a ConfigError of one sentence. The file inside a workspace may be written by an
agent, so it may tune chunking and queries only, and a mistake in it is a warning: it must neither
reach endpoints nor be able to stop the search. `paths` finds the files."""

# os.path and not pathlib, whose import costs 4 ms of every cold search.

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from clawmark.config.check import Source, Written, check, patterns_of, refuse, show
from clawmark.config.files import read_config
from clawmark.config.json5 import show_path
from clawmark.config.keys import BY_NAME, GROUPS
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded, Settings
from clawmark.config.sections import OTHER_SECTIONS, OUR_SECTIONS, Section, sections_for
from clawmark.config.settle import settle
from clawmark.config.unsupported import UNSUPPORTED_BY_NAME, UNSUPPORTED_GROUPS
from clawmark.model.errors import ConfigError

if TYPE_CHECKING:
    from clawmark.config.check import Source, Written
    from clawmark.config.files import ConfigFile
    from clawmark.config.sections import Section

WORKSPACE_FILE = os.path.join(".clawmark", "settings.json")
_WORKSPACE_MAY_SET = ("memorySearch.chunking.", "memorySearch.query.")
_WORKSPACE_MAY_NOT_SET = ("memorySearch.query.rerank.",)
"""These name an address that passages and a key are sent to."""
_WORKSPACE_LIMIT = 64 * 1024
_JOINED = ("memorySearch.extraPaths", "memorySearch.sessions.paths")
"""Lists to which a more particular section adds."""


def load(places: Places, overrides: Mapping[str, object] | None = None) -> Loaded:
    """Every setting that counts for these places; raises ConfigError."""
    inside = _workspace_file(places)
    if places.config is None and inside is None and not overrides:
        return Loaded(Settings(), {}, ())  # the usual case, without loading the table of keys
    gathered = Gathered()
    for file in (places.beneath, places.config):
        if file is not None:
            gathered.take_file(file, places.agent)
    if inside is not None:
        gathered.take_workspace(inside)
    if overrides:
        gathered.take_overrides(overrides)

    return settle(gathered, places)


class Gathered:
    """Values by key with their origin: each source put over the ones before it."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[object, Written]] = {}
        self.patterns: list[tuple[str, str]] = []
        """The extra paths again, each with its pattern."""
        self.tool_lists: dict[tuple[str, str | int], tuple[str, ...]] = {}
        """`tools.allow` and `tools.deny`, each by its key and by whether it is for all agents or
        for this one.
        """
        self.unsupported: dict[str, Written] = {}
        """Values of keys that have no effect, by the key."""
        self.model_providers: dict[str, object] = {}
        """`models.providers` of all files."""
        self.warnings: list[str] = []

    def take_file(self, file: ConfigFile, agent: str) -> None:
        source = Source(f"file {file.path}", file.path, file.text)
        self.warnings += _odd_sections(file)
        models = file.tree.get("models")
        providers = models.get("providers") if isinstance(models, dict) else None
        self.model_providers |= providers if isinstance(providers, dict) else {}
        for section in sections_for(file.tree, agent, source):
            for key, written in self._leaves(section, source):
                self._put(key, written)

    def take_workspace(self, file: ConfigFile | str) -> None:
        if isinstance(file, str):
            self.warnings.append(file)
            return

        source = Source(f"workspace {file.path}", file.path, file.text)
        section = file.tree.get("memorySearch", {})
        others = [name for name in file.tree if name != "memorySearch"]
        values = section if isinstance(section, dict) else {}
        for key, written in self._leaves(
            Section("memorySearch", ("memorySearch",), values), source
        ):
            if not key.startswith(_WORKSPACE_MAY_SET) or key.startswith(_WORKSPACE_MAY_NOT_SET):
                others.append(key)
                continue
            try:
                self._put(key, written)
            except ConfigError as error:
                self.warnings.append(f"{error.message[:-1]}; it is not used.")
        if others or not isinstance(section, dict):
            names = ", ".join(sorted(others)[:3]) or "memorySearch"
            self.warnings.append(
                f"{file.path} may set memorySearch.chunking.* and memorySearch.query.* only; "
                f"ignored: {names[:120]}."
            )

    def take_overrides(self, overrides: Mapping[str, object]) -> None:
        for key, value in overrides.items():
            if key not in BY_NAME:
                raise ConfigError(f"{key} is not a setting.{_nearest(key, BY_NAME)}", key=key)
            if key in ("agents.defaults.workspace", "memorySearch.store.path"):
                raise ConfigError(
                    f"{key} decides where things are and cannot be overridden here.", key=key
                )
            plain = list(value) if isinstance(value, tuple) else value
            self._put(key, Written(Source("flag"), tuple(key.split(".")), plain))

    def _put(self, key: str, written: Written) -> None:
        value = check(BY_NAME[key], written, self.warnings)
        if key.startswith("tools."):
            assert isinstance(value, tuple)
            self.tool_lists[key, written.path[0]] = value
        if key == "memorySearch.extraPaths":
            patterns = patterns_of(written, self.warnings)
            self.patterns = self.patterns + patterns if written.source.file else patterns
        if key in _JOINED and key in self.values and written.source.file:
            earlier = self.values[key][0]
            assert isinstance(earlier, tuple) and isinstance(value, tuple)
            value = earlier + value
        self.values[key] = (value, written)

    def _leaves(self, section: Section, source: Source) -> Iterator[tuple[str, Written]]:
        """Every known key of a section with its value; unknown ones become warnings."""
        waiting = [(section.name, section.path, section.values)]
        while waiting:
            name, path, values = waiting.pop()
            for part, value in values.items():
                key, written = f"{name}.{part}".lstrip("."), Written(source, (*path, part), value)
                if key in BY_NAME:
                    yield key, written
                elif key in UNSUPPORTED_BY_NAME:
                    self.unsupported[key] = written
                elif key not in GROUPS and key not in UNSUPPORTED_GROUPS:
                    self.warnings.append(_unknown(written, key, (*BY_NAME, *GROUPS)))
                elif isinstance(value, dict):
                    waiting.append((key, written.path, value))
                elif source.origin.startswith("workspace "):
                    self.warnings.append(
                        refuse(written, f"must be an object, not {show(value)}").message
                    )
                else:
                    raise refuse(written, f"must be an object, not {show(value)}")


def fill_in(text: str, key: str, environ: Mapping[str, str]) -> str:
    """A value with its `${NAME}` references filled in; ConfigError when a variable is not set."""

    def known(found: re.Match[str]) -> str:
        if not environ.get(found[1]):
            raise ConfigError(
                f"{key} takes its value from the environment variable {found[1]}, which is not "
                f"set.",
                key=key,
                hint=f"Set {found[1]}, or write the value into your configuration file.",
            )
        return environ[found[1]]

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", known, text)


def _workspace_file(places: Places) -> ConfigFile | str | None:
    """The settings inside the workspace, nothing, or the warning that says why they are not used."""
    path = os.path.join(places.workspace, WORKSPACE_FILE)
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


def _odd_sections(file: ConfigFile) -> list[str]:
    """Top-level names that mean nothing; a file that OpenClaw keeps may know more sections than we
    do.
    """
    names = [name for name in file.tree if name not in OTHER_SECTIONS and name not in OUR_SECTIONS]
    warnings = list[str]()
    for name in names[:10]:
        near = _nearest(name, OUR_SECTIONS)
        if near or os.path.basename(file.path) != "openclaw.json":
            warnings.append(
                f"{file.path}: there is no section {_short(name)}; it is ignored.{near}"
            )
    return warnings


def _unknown(written: Written, key: str, known: Iterable[str]) -> str:
    where = f"{written.source.file}: " if written.source.file else ""
    return (
        f"{where}there is no key "
        f"{_short(show_path(written.path))}; it is ignored.{_nearest(key, known)}"
    )


def _nearest(name: str, known: Iterable[str]) -> str:
    """The real key whose last part is most like that of a wrong one; of several, the one that is
    nearest as a whole.

    Whole keys are not compared first: what they begin with is so long that any two of them look
    alike."""
    import difflib

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
