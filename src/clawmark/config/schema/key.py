"""The description of one setting; separate from `check`, which a search with the defaults does not
need.
"""

from typing import NamedTuple


class Key(NamedTuple):
    """One key of the configuration; declared in the modules of `schema` and completed by `keys`."""

    description: str
    kind: str = ""
    """The name of a check in `check.KINDS`; by default it follows from the type of the field."""
    low: float = 0
    high: float = 2**31 - 1
    choices: tuple[str, ...] = ()
    name: str = ""
    """The dotted name, such as `memorySearch.query.maxResults`."""
    default: object = None
    attributes: tuple[str, ...] = ()
    """The attributes of `Settings` that lead to the value."""

    @property
    def is_secret(self) -> bool:
        return self.kind in ("secret", "headers")
