"""The table of keys, derived from the classes in `schema`.

`load` checks files against it, and `clawmark config` and the reference are printed from it. Keys of
OpenClaw that have no effect here are in `unsupported`; `sections` knows where in a file keys are
written."""

from collections.abc import Iterator
from functools import reduce
from typing import Any

from clawmark.config.schema import Settings
from clawmark.config.schema.agent import AgentSettings
from clawmark.config.schema.key import Key

_SECTIONS = {
    "memory_search": "memorySearch",
    "memory": "memory",
    "tools": "tools",
    "hooks": "hooks.internal",
    "session_reset": "session.reset",
    "plugins": "plugins",
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


def value_of(settings: Settings, name: str) -> object:
    """The value that a key has in these settings."""
    return reduce(getattr, BY_NAME[name].attributes, settings)


def with_value(settings: Settings, name: str, value: object) -> Settings:
    """The same settings with one key changed."""

    def replaced(group: Any, attributes: tuple[str, ...]) -> Any:
        first, *rest = attributes
        inner = replaced(getattr(group, first), tuple(rest)) if rest else value
        return group._replace(**{first: inner})

    attributes = BY_NAME[name].attributes
    if attributes[0] in AgentSettings._fields:
        return settings._replace(given_to_agents=replaced(settings.of_agents, attributes))
    changed: Settings = replaced(settings, attributes)
    return changed


def _keys(group: Any, prefix: str, attributes: tuple[str, ...]) -> Iterator[Key]:
    """The keys in a group of settings (a named tuple with its defaults) and in the groups below."""
    for attribute, hint in type(group).__annotations__.items():
        path, value = (*attributes, attribute), getattr(group, attribute)
        name = _SECTIONS.get(".".join(path)) or prefix + _spelling(attribute)
        for key in getattr(hint, "__metadata__", ()):
            kind = key.kind or _KINDS[hint.__origin__][bool(key.choices)]
            yield key._replace(name=name, kind=kind, default=value, attributes=path)
        if hasattr(value, "_fields"):
            yield from _keys(value, f"{name}.", path)


def _spelling(attribute: str) -> str:
    """`max_results` as a file has it: `maxResults`."""
    first, *others = attribute.split("_")
    return _IRREGULAR.get(attribute) or first + "".join(map(str.capitalize, others))


KEYS: tuple[Key, ...] = (
    *_keys(Settings(), "agents.defaults.", ()),
    *_keys(AgentSettings(), "agents.defaults.", ()),
)
BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}
GROUPS: frozenset[str] = frozenset(
    ".".join(parts[:end])
    for parts in (key.name.split(".") for key in KEYS)
    for end in range(1, len(parts))
)
"""Every dotted name that holds other keys."""
