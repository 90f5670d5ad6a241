"""The values that move through gathering: sections read from packages, and finished texts."""

from typing import Literal, NamedTuple

Kind = Literal["passage", "query", "dialogue", "note"]


class Section(NamedTuple):
    """A heading and the paragraphs under it. The heading may be empty."""

    heading: str
    paragraphs: tuple[str, ...]
    kind: Kind = "passage"


class Text(NamedTuple):
    """One line of the output file."""

    text: str
    source: str
    kind: Kind
