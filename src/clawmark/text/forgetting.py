"""Find the entries of a text that are to be forgotten, and remove or mask them.

An entry is a list item or a paragraph. Entries are compared by their content: without bullet,
quotation mark, time, label, case and line breaks. Everything here is pure."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeAlias

from clawmark.text.entry_content import normalize_entry, split_entries
from clawmark.text.entry_times import without_times
from clawmark.text.untrusted.invisible_characters import without_hidden
from clawmark.text.untrusted.origin_labels import without_comments

MARK = "[forgotten]"
"""Stands in a transcript for an entry that was forgotten."""
FEWEST_WORDS = 4
"""A shorter entry or sentence is too common to be found again by its words alone."""
MOST_DEPTH = 64
_QUOTE = re.compile(r"(?m)^[ \t]*(?:>[ \t]?)+")
_HEADING = re.compile(r"#{1,6}\s")
_EMPHASIS = re.compile(r"[*_~`]+")
_SENTENCE_END = re.compile(r"(?<=[.!?;:])\s+|\n+")
_STRUCTURE = frozenset(
    [
        "type",
        "role",
        "id",
        "uuid",
        "timestamp",
        "version",
        "provider",
        "model",
        "api",
        "stopReason",
        "cwd",
        "name",
        "toolName",
        "customType",
        "kind",
        "status",
        "chatType",
        "channel",
    ]
)

IsForgotten: TypeAlias = Callable[[str], bool]
"""Decides by the content of an entry, as `content_of` returns it."""


class TextUnit(NamedTuple):
    """An entry of a text, with its lines (1-based, inclusive)."""

    first_line: int
    last_line: int
    text: str
    content: str


def content_of(entry: str) -> str:
    """Return what an entry says, in the form in which entries are compared."""
    plain = without_times(_QUOTE.sub("", without_comments(entry)))
    return normalize_entry(" ".join(map(normalize_entry, plain.split("\n"))))


def plain_of(content: str) -> str:
    """Return a content without emphasis and invisible characters, as it is read on a page."""
    return " ".join(_EMPHASIS.sub("", without_hidden(content)).split())


def units_of(text: str) -> Iterator[TextUnit]:
    """Yield the entries of a text that say something."""
    for first, last, entry in split_entries(text):
        content = content_of(entry)
        if content:
            yield TextUnit(first_line=first, last_line=last, text=entry, content=content)


def is_heading(unit: TextUnit) -> bool:
    """Check whether an entry is a heading alone."""
    return _HEADING.match(unit.text) is not None and "\n" not in unit.text.strip()


def is_distinct(content: str) -> bool:
    """Check whether a content is long enough to be told apart from other people's words."""
    return len(content.split()) >= FEWEST_WORDS


def sentences_of(text: str) -> Iterator[str]:
    """Yield the content of each sentence and line of an entry that is distinct."""
    for part in _SENTENCE_END.split(_QUOTE.sub("", without_comments(text))):
        content = content_of(part)
        if is_distinct(content):
            yield content


def words_of(text: str) -> list[str]:
    """Return the words of a text, without punctuation around them."""
    plain = (word.strip(".,;:!?\"'()[]{}<>*_`") for word in content_of(text).split())
    return [word for word in plain if word]


def remove_entries(text: str, is_forgotten: IsForgotten) -> str:
    """Return a text without the forgotten entries; empty if only blank lines are left."""
    lines = text.split("\n")
    gone = set[int]()
    for unit in units_of(text):
        if is_forgotten(unit.content):
            gone.update(range(unit.first_line, unit.last_line + 1))
    if not gone:
        return text
    kept = list[str]()
    for number, line in enumerate(lines, 1):
        # A gap keeps one blank line, not the two that were around the entry.
        is_second_blank = number - 1 in gone and not line.strip() and (not kept or not kept[-1])
        if number not in gone and not is_second_blank:
            kept.append(line)
        elif is_second_blank:
            gone.add(number)
    left = "\n".join(kept)
    return left if left.strip() else ""


def mask_entries(text: str, is_forgotten: IsForgotten) -> str:
    """Return a message with a mark in the place of each forgotten entry."""
    lines: list[str | None] = list(text.split("\n"))
    for unit in units_of(text):
        if is_forgotten(unit.content):
            lines[unit.first_line - 1] = MARK
            for number in range(unit.first_line, unit.last_line):
                lines[number] = None
    return "\n".join(line for line in lines if line is not None)


def strings_in(value: Any, depth: int = 0) -> Iterator[str]:
    """Yield the strings of a JSON value, also of JSON documents inside its strings.

    Raises RecursionError for one that is nested too deeply."""
    if depth > MOST_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        inner = _document_in(value)
        if inner is None:
            yield value
        else:
            yield from strings_in(inner, depth + 1)
    elif isinstance(value, dict):
        for key, one in value.items():
            if not _is_structure(key):
                yield from strings_in(one, depth + 1)
    elif isinstance(value, list):
        for one in value:
            yield from strings_in(one, depth + 1)


def mask_value(value: Any, is_forgotten: IsForgotten, depth: int = 0) -> Any:
    """Return a JSON value with the forgotten entries of its strings masked.

    Raises RecursionError for one that is nested too deeply."""
    if depth > MOST_DEPTH:
        raise RecursionError
    if isinstance(value, str):
        inner = _document_in(value)
        if inner is None:
            return mask_entries(value, is_forgotten)
        masked = mask_value(inner, is_forgotten, depth + 1)
        return value if masked == inner else json.dumps(masked, ensure_ascii=False)
    if isinstance(value, dict):
        return {
            key: one if _is_structure(key) else mask_value(one, is_forgotten, depth + 1)
            for key, one in value.items()
        }
    if isinstance(value, list):
        return [mask_value(one, is_forgotten, depth + 1) for one in value]
    return value


def line_strings(line: str) -> list[str]:
    """Return the strings of a line of a transcript; the line itself if it is not JSON."""
    try:
        return list(strings_in(json.loads(line)))
    except (ValueError, RecursionError):
        return [line]


def mask_line(line: str, is_forgotten: IsForgotten) -> str:
    """Return a line of a transcript with forgotten entries masked; unchanged if it has none.

    A line that is not JSON is masked as a whole."""
    try:
        value = json.loads(line)
        masked = mask_value(value, is_forgotten)
    except (ValueError, RecursionError):
        return mask_entries(line, is_forgotten)
    if masked == value:
        return line
    return json.dumps(masked, ensure_ascii=False, separators=(",", ":"))


def _is_structure(key: str) -> bool:
    """Check whether a field says what a record is, not what was said."""
    return key in _STRUCTURE or key.endswith(("Id", "_id", "Uuid", "File", "Path", "Key"))


def _document_in(text: str) -> Any:
    """Return the JSON object or array that a string holds, such as the arguments of a tool call."""
    if text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None
