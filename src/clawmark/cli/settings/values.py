"""Find a key by a part of its name, and write its value in words. Secrets are never shown."""

from __future__ import annotations

import difflib
import json
import re

from clawmark.cli.arguments import UsageError
from clawmark.cli.as_json import as_json
from clawmark.config.keys import BY_NAME, KEYS, value_of
from clawmark.config.schema import Loaded
from clawmark.config.schema.key import Key

HIDDEN = "(hidden)"


def shown_value(loaded: Loaded, key: Key) -> object:
    """The value in effect; secrets only as set or not, addresses without user name and password."""
    value = value_of(loaded.settings, key.name)
    if key.is_secret:
        return HIDDEN if value else ""
    return re.sub(r"(?<=://)[^/?#]*@", f"{HIDDEN}@", value) if isinstance(value, str) else value


def written(value: object) -> str:
    """A value as it is written in a file."""
    return "unset" if value is None else json.dumps(as_json(value), ensure_ascii=False)


def find_key(name: str) -> Key:
    """A key by its name, by its path in the file, or by an unambiguous ending; of several keys with
    that ending, the least nested one.
    """
    short = re.sub(r"^(agents\.defaults\.memorySearch|memory\.search)\.", "memorySearch.", name)
    if short in BY_NAME:
        return BY_NAME[short]

    def depth(key: Key) -> int:
        return len(key.name.split("."))

    endings = sorted([key for key in KEYS if key.name.endswith("." + short)], key=depth)
    if endings and (len(endings) == 1 or depth(endings[0]) < depth(endings[1])):
        return endings[0]
    if endings:
        raise UsageError(f"{name} may be {' or '.join(key.name for key in endings[:4])}.")
    near = difflib.get_close_matches(short, BY_NAME, n=1)
    raise UsageError(
        f"There is no key {name[:80]}.",
        hint=f"Did you mean {near[0]}?" if near else "`clawmark config schema` lists all.",
    )
