"""Read the descriptions in JSON documents that describe the interface of a service."""

import json
from collections.abc import Iterator

from training.gather.readers.html import strip_tags
from training.gather.readers.python_source import clean_markup, words_of
from training.gather.values import Section

_KEYS = ("documentation", "description", "summary", "markdownDescription")


def read_json(_name: str, content: bytes) -> Iterator[Section]:
    """Give one section for each description; its heading is the name of what is described."""
    yield from _walk(json.loads(content), "")


def _walk(value: object, key: str) -> Iterator[Section]:
    if isinstance(value, dict):
        found = tuple(text for each in _KEYS for text in _paragraphs(value.get(each)))
        if found:
            yield Section(words_of(key), found)
        for name, child in value.items():
            if isinstance(child, dict | list):
                yield from _walk(child, str(name))
    elif isinstance(value, list):
        for child in value:
            yield from _walk(child, key)


def _paragraphs(value: object) -> list[str]:
    if not isinstance(value, str):
        return []
    parts = strip_tags(value) if "<" in value else value.split("\n\n")
    return [clean for clean in map(clean_markup, parts) if clean]
