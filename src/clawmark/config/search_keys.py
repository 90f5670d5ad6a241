"""The keys that a search reads, and how any key is found by its name.

Most files set only these keys, so `find_key` and `is_group` load the table of all keys (`keys`)
only for a name that is not among them."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Any

from clawmark.config.schema import Settings
from clawmark.config.schema.field_keys import FIELD_KEYS
from clawmark.config.schema.key import Key

_SECTIONS = {
    "memory_search": "memorySearch",
    "memory": "memory",
    "tools": "tools",
    "hooks": "hooks.internal",
    "session_reset": "session.reset",
    "consolidation": "memory.consolidation",
    "history": "memory.history",
    "review": "memory.review",
    "plugins": "plugins",
    "qmd": "memory.qmd",
    "qmd_search": "memorySearch.qmd",
    "team": "team",
    "serve": "serve",
}
"""The sections outside of `agents.defaults`, by the attribute of `Settings`."""
_IRREGULAR = {"lambda_": "lambda", "note": "entries.session-memory"}
_KINDS: dict[object, tuple[str, str]] = {
    bool: ("flag", ""),
    int: ("count", ""),
    float: ("number", ""),
    str: ("text", "choice"),
    tuple[str, ...]: ("", "choices"),
}
"""The kind of a field of this type, without and with a list of choices."""


def find_key(name: str) -> Key | None:
    """Return the key of that name, None if there is none."""
    if name in SEARCH_KEYS or name in SEARCH_GROUPS:
        return SEARCH_KEYS.get(name)
    found: Key | None = all_keys().BY_NAME.get(name)
    return found


def is_group(name: str) -> bool:
    """Whether a dotted name holds other keys."""
    return name in SEARCH_GROUPS or name in all_keys().GROUPS


def all_keys() -> Any:
    """Return the module `keys`, which has the table of all keys."""
    # Imported late: the table has the keys of agents too, which a search does without.
    return import_module("clawmark.config.keys")


def with_value(settings: Settings, name: str, value: object) -> Settings:
    """The same settings with one key changed."""

    def replaced(group: Any, attributes: tuple[str, ...]) -> Any:
        first, *rest = attributes
        inner = replaced(getattr(group, first), tuple(rest)) if rest else value
        return group._replace(**{first: inner})

    key = find_key(name)
    assert key is not None
    attributes = key.attributes
    if attributes[0] not in Settings._fields:
        return settings._replace(given_to_agents=replaced(settings.of_agents, attributes))
    changed: Settings = replaced(settings, attributes)
    return changed


def keys_of(group: Any, prefix: str, attributes: tuple[str, ...]) -> Iterator[Key]:
    """The keys in a group of settings (a named tuple with its defaults) and in the groups below."""
    for attribute, hint in type(group).__annotations__.items():
        path, value = (*attributes, attribute), getattr(group, attribute)
        name = _SECTIONS.get(".".join(path)) or prefix + _spelling(attribute)
        if key := _key_of(type(group), attribute, hint):
            plain = hint.__origin__ if hasattr(hint, "__metadata__") else hint
            kind = key.kind or _KINDS[plain][bool(key.choices)]
            yield key._replace(name=name, kind=kind, default=value, attributes=path)
        if hasattr(value, "_fields"):
            yield from keys_of(value, f"{name}.", path)


def _key_of(group: type, attribute: str, hint: object) -> Key | None:
    """The key of a field, from `field_keys` or from its annotation; None if it is not a setting."""
    if group in FIELD_KEYS:
        return FIELD_KEYS[group].get(attribute)
    found: Key | None = next(iter(getattr(hint, "__metadata__", ())), None)
    return found


def _spelling(attribute: str) -> str:
    """`max_results` as a file has it: `maxResults`."""
    first, *others = attribute.split("_")
    return _IRREGULAR.get(attribute) or first + "".join(map(str.capitalize, others))


def groups_of(names: Iterable[str]) -> frozenset[str]:
    """Return every dotted name that holds others."""
    return frozenset(
        ".".join(parts[:end])
        for parts in (name.split(".") for name in names)
        for end in range(1, len(parts))
    )


SEARCH_KEYS: dict[str, Key] = {key.name: key for key in keys_of(Settings(), "agents.defaults.", ())}
SEARCH_GROUPS = groups_of(SEARCH_KEYS)
