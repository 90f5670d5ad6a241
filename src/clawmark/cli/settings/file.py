"""Change the configuration file: one value at its place in the text, checked before it is written.

Comments and layout stay as they are. The file is replaced in one step under a lock, and a link to
it stays a link. A new file is readable by its owner only; an existing one keeps its permissions.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from clawmark.config.check import Source, Written, check
from clawmark.config.files import MAX_BYTES, ConfigFile, read_config
from clawmark.config.json5 import Json5Error, parse
from clawmark.config.load import load
from clawmark.config.paths import Places
from clawmark.config.schema import Loaded
from clawmark.config.schema.key import Key
from clawmark.config.sections import agent_entries, sections_for
from clawmark.hooks import jsontext
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError, ConfigError, WriteConflict
from clawmark.system.private_files import make_private_folder, open_private, sync_folder
from clawmark.system.shared_json import locked

LOCK_SECONDS = 10.0
UNCHANGED = "Nothing was changed."
_LISTS = ("choices", "paths", "texts", "names")
_PARSED = ("flag", "count", "number", "headers")
_NAMES_OF_EMBEDDERS = (
    "memorySearch.provider",
    "memorySearch.fallback",
    "memorySearch.model",
    "memorySearch.local.modelPath",
)
"""Keys that are checked when a memory is opened. Variables of the environment may be missing here.
"""
_PER_AGENT = ("memorySearch.", "tools.")
"""Keys that an entry of `agents.list` may have."""


class Change(NamedTuple):
    """What a change of the file did."""

    file: str
    is_changed: bool
    loaded: Loaded | None
    """The settings afterwards; None if other parts of the file are invalid."""


class Target(NamedTuple):
    """The file that is changed, and the places that apply with it."""

    file: str
    places: Places

    def loaded(self, config: ConfigFile) -> Loaded:
        """Return the settings with this content; ConfigError if no memory could be opened."""
        places = self.places._replace(config=config)
        loaded = load(places)
        try:
            Memory(places, loaded, background=False).close()
        except ConfigError as error:
            if error.key in _NAMES_OF_EMBEDDERS:
                raise
        except ClawmarkError:
            pass  # a key or a package is missing, which may be the next step
        return loaded


def find_target(places: Places, *, is_named: bool) -> Target:
    """Return the file to change. OpenClaw's own file is changed only if the user named it; without
    that, our file next to it gets the setting and wins over it.
    """
    ours = os.path.join(places.state_dir, "clawmark.json")
    if is_named or places.config is None or places.config_file == ours:
        return Target(places.config_file, places)
    beside = places._replace(config_file=ours, config=None, beneath=places.config)
    return Target(ours, beside)


def parse_value(key: Key, text: str) -> object:
    """Return a value as it is written in the file; ConfigError if the key may not have it.

    Lists may be given as `a,b`; numbers, true and false, lists and objects as in JSON5."""
    value: object = text
    is_json = text.lstrip().startswith(("[", "{"))
    if key.kind in _PARSED or (is_json and key.kind in (*_LISTS, "secret", "model")):
        try:
            value = parse(text).value
        except Json5Error:
            value = text  # the check below refuses it
    elif key.kind in ("choices", "paths", "texts") or (key.kind == "names" and "," in text):
        value = [part.strip() for part in text.split(",") if part.strip()]
    elif key.kind == "size" and text.strip().isdigit():
        value = int(text)
    check(key, Written(Source("flag"), tuple(key.name.split(".")), value))
    return value


def set_key(target: Target, key: Key, value: object, agent: str | None) -> Change:
    """Write a value at the place in the file where it takes effect."""

    def edited(text: str) -> str:
        at = written_at(target, text, key, agent) or default_place(target, text, key, agent)
        return jsontext.set_value(text, at, value, target.file)

    return change(target, edited)


def unset_key(target: Target, key: Key, agent: str | None) -> Change:
    """Remove a key from the most particular section of the file that has it."""

    def edited(text: str) -> str:
        at = written_at(target, text, key, agent)
        return jsontext.unset(text, at, target.file) if at is not None else text

    return change(target, edited)


def written_at(target: Target, text: str, key: Key, agent: str | None) -> jsontext.Path | None:
    """Return the place in the file from which a key takes its value, None if it is not there.

    With an `agent`, a key that an agent may have of its own is looked for in its entry only."""
    tree = jsontext.read(text, target.file)
    if not isinstance(tree, dict):
        return None
    source = Source(f"file {target.file}", target.file, text)
    own = _own_entry(tree, source, key, agent)
    found: jsontext.Path | None = None
    for section in sections_for(tree, target.places.agent, source):
        prefix = f"{section.name}." if section.name else ""
        if key.name.startswith(prefix) and (own is None or section.path[: len(own)] == own):
            at = (*section.path, *key.name[len(prefix) :].split("."))
            found = at if jsontext.has(text, at, target.file) else found
    return found


def default_place(target: Target, text: str, key: Key, agent: str | None) -> jsontext.Path:
    """Return where a key is written that the file does not have yet."""
    tree = jsontext.read(text, target.file)
    source = Source(f"file {target.file}", target.file, text)
    own = _own_entry(tree, source, key, agent) if isinstance(tree, dict) else None
    parts = tuple(key.name.split("."))
    if own is not None:
        return (*own, *parts)
    return ("agents", "defaults", *parts) if parts[0] == "memorySearch" else parts


def _own_entry(
    tree: dict[str, object], source: Source, key: Key, agent: str | None
) -> jsontext.Path | None:
    """Return the place of the entry of an agent that was named, if it may have the key."""
    if agent is None or not key.name.startswith(_PER_AGENT):
        return None
    entries = agent_entries(tree, source)
    return next((entry.path for entry in entries if entry.id == agent.strip().lower()), None)


def change(target: Target, edited: Callable[[str], str]) -> Change:
    """Replace the text of the file by an edited one, if the settings are valid with it."""
    real = os.path.realpath(target.file)
    lock = os.path.join(target.places.state_dir, "config")
    with locked(lock, LOCK_SECONDS) as is_ours:
        if not is_ours:
            raise ClawmarkError(
                f"{target.file} is being changed by another command.", hint="Try again."
            )
        before = read_text(target.file)
        after = edited(before)
        if after == before:
            return Change(target.file, False, _load_text(target, before) if before else None)
        loaded = _checked(target, before, after)
        _write(target.file, real, after)
    return Change(target.file, True, loaded)


def replace_text(target: Target, before: str, after: str) -> Change:
    """Replace a text that was read earlier; WriteConflict if the file has changed since."""

    def edited(current: str) -> str:
        if current != before:
            raise WriteConflict(
                f"{target.file} has changed since it was read.",
                path=target.file,
                base_hash="",
                current_hash="",
            )
        return after

    return change(target, edited)


def read_text(file: str) -> str:
    """Return the exact text of the file; empty if it does not exist."""
    if not os.path.lexists(file):
        return ""
    try:
        with open(os.open(file, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0)), "rb") as opened:
            if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
                raise ConfigError(f"{file} is not a regular file.", file=file, hint=UNCHANGED)
            return opened.read(MAX_BYTES).decode()
    except UnicodeDecodeError:
        raise ConfigError(f"{file} is not UTF-8.", file=file, hint=UNCHANGED) from None
    except OSError as error:
        raise _unusable(file, error) from None


def _checked(target: Target, before: str, after: str) -> Loaded | None:
    """Return the settings with the new text. If it is invalid, but the old one is too, the change
    may be one of several corrections: None is returned.
    """
    try:
        return _load_text(target, after)
    except ConfigError as error:
        try:
            if before:
                _load_text(target, before)
        except ConfigError:
            return None
        error.hint = UNCHANGED
        raise


def _load_text(target: Target, text: str) -> Loaded:
    """Load the settings as if the file had this text."""
    folder = os.path.dirname(os.path.realpath(target.file))
    temporary = os.path.join(folder, f".clawmark-check-{os.getpid()}.json")
    try:
        # In the same folder, because $include is relative to the file.
        with _created(temporary) as out:
            out.write(text.encode())
        read = read_config(temporary)
    except ConfigError as error:
        error.message = error.message.replace(temporary, target.file)
        error.args = (error.message,)
        raise
    except OSError as error:
        raise _unusable(target.file, error) from None
    finally:
        if os.path.lexists(temporary):
            os.unlink(temporary)
    return target.loaded(read._replace(path=target.file))


def _write(file: str, real: str, text: str) -> None:
    """Replace the file durably in one step."""
    temporary = f"{real}.{os.getpid()}.new"
    try:
        mode = stat.S_IMODE(os.stat(real).st_mode) if os.path.exists(real) else 0o600
        with _created(temporary) as out:
            out.write(text.encode())
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, mode)
        os.replace(temporary, real)
        sync_folder(os.path.dirname(real))
    except OSError as error:
        if os.path.lexists(temporary):
            os.unlink(temporary)
        raise _unusable(file, error) from None


def _created(path: str) -> BinaryIO:
    make_private_folder(os.path.dirname(path))
    return open(open_private(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), "wb")


def _unusable(file: str, error: OSError) -> ConfigError:
    return ConfigError(
        f"{file} cannot be changed: {error.strerror or type(error).__name__}.",
        file=file,
        hint=UNCHANGED,
    )
