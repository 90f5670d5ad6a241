"""The table of all keys, derived from the classes in `schema`.

`clawmark config` and the reference are printed from it, and `search_keys` finds in it what it does
not have itself. Keys of OpenClaw that have no effect here are in `unsupported`; `sections` knows
where in a file keys are written."""

from functools import reduce

from clawmark.config.schema import Settings
from clawmark.config.schema.agent import AgentSettings
from clawmark.config.schema.key import Key
from clawmark.config.search_keys import SEARCH_KEYS, groups_of, keys_of

KEYS: tuple[Key, ...] = (
    *SEARCH_KEYS.values(),
    *keys_of(AgentSettings(), "agents.defaults.", ()),
)
BY_NAME: dict[str, Key] = {key.name: key for key in KEYS}
GROUPS: frozenset[str] = groups_of(BY_NAME)
"""Every dotted name that holds other keys."""


def value_of(settings: Settings, name: str) -> object:
    """The value that a key has in these settings."""
    return reduce(getattr, BY_NAME[name].attributes, settings)
