"""Read the documentation comments in JavaScript and TypeScript files."""

import re
from collections.abc import Iterator

from training.gather.readers.plain import decode, paragraphs_of
from training.gather.readers.python_source import clean_markup, words_of
from training.gather.values import Section

_COMMENT = re.compile(r"/\*\*(.*?)\*/\s*([^\n]*)", re.DOTALL)
_NAME = re.compile(
    r"(?:export |declare |default |abstract |static |readonly |public |async )*"
    r"(?:function |class |interface |const |type |enum |let |var |get |set )?['\"]?([A-Za-z_]\w+)"
)


def read_comments(_name: str, content: bytes) -> Iterator[Section]:
    """Give one section for each comment, without its tags and examples."""
    for match in _COMMENT.finditer(decode(content)):
        lines = [re.sub(r"^\s*\*? ?", "", line) for line in match[1].splitlines()]
        text = "\n".join(lines).partition("@example")[0]
        text = re.sub(r"(?s)```.*?(```|$)", "", text)
        text = re.sub(r"\{@\w+ ([^}|]*)[^}]*\}", r"\1", text)
        text = re.sub(r"^@(param|returns?|throws)\b(?: \{[^}]*\})? ?", "\n", text, flags=re.M)
        text = re.sub(r"\[MDN Reference\]\([^)]*\)", "", text)
        text = re.sub(r"^@.*$", "", text, flags=re.M)
        paragraphs = tuple(map(clean_markup, paragraphs_of(text)))
        name = _NAME.match(match[2])
        if paragraphs:
            yield Section(words_of(name[1]) if name else "", paragraphs)
