"""Add an entry to a JSON or JSON5 text, and remove it again, without changing other bytes.

Comments and layout are preserved. An entry is inserted at the start of its object or list, where no
comma or comment has to move, with the indentation of its neighbours. It is one piece of text, and
removing that piece restores the file. If the file was reformatted since, `take` finds the entry by
its path."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from clawmark.config.json5 import Json5Error, parse
from clawmark.model.errors import ConfigError

Path: TypeAlias = tuple[str | int, ...]
"""Keys of objects; a number is the position of an existing item of a list."""

_BLANK = re.compile(r"(?:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'", re.DOTALL)
_WORD = re.compile(r"[^\s,:{}\[\]\"'/\ufeff]+")
_REST_OF_LINE = re.compile(r"[ \t]*(?://[^\n\r]*|/\*[^\n\r*]*\*/[ \t]*)?(?=\r?\n)")
_UNIT = "  "
_CORRECT_FIRST = "Correct this first; nothing was changed."


class Node(NamedTuple):
    """A value and its position in the text."""

    start: int
    end: int
    entries: tuple[Entry, ...] | None = None
    """Of an object or a list; None for other values."""


class Entry(NamedTuple):
    """A member of an object or an item of a list."""

    key: str
    """Empty for an item."""
    start: int
    value: Node
    comma: int
    """End of the comma after it; 0 if there is none."""


class Put(NamedTuple):
    """A text with a new entry."""

    text: str
    piece: str
    """The inserted text."""
    made: tuple[str, ...]
    """Path of the outermost object or list that was created; empty if none was."""


def read(text: str, file: str) -> object:
    """Parse a text, None if it is empty; raises ConfigError if it is not valid."""
    if not text.strip("\ufeff \t\r\n"):
        return None
    try:
        return parse(text).value
    except Json5Error as error:
        raise ConfigError(
            f"{file}, line {error.line}: {error.reason}.", file=file, hint=_CORRECT_FIRST
        ) from None


def put(text: str, path: Path, value: object, file: str, *, as_item: bool = False) -> Put:
    """Add a value at a path of keys, or as an item of the list there; create missing parents."""
    newline = "\r\n" if "\r\n" in text else "\n"
    if read(text, file) is None:
        at = len(text) - len(text.lstrip("\ufeff"))
        piece = _rendered(_nested(path, [value] if as_item else value), "", _UNIT, newline)
        piece += "" if text[at:] else newline
        return Put(text[:at] + piece + text[at:], piece, tuple(map(str, path[:1])))
    node, depth = _scan(text), 0
    while depth < len(path) and (found := _entry(node, path[depth])) is not None:
        node, depth = found.value, depth + 1
    is_there = depth == len(path)
    opening = "[" if is_there else "{"
    if node.entries is None or text[node.start] != opening:
        where = ".".join(map(str, path[:depth])) or "the top level"
        problem = f"{file}: {where} is not {'a list' if is_there else 'an object'}."
        raise ConfigError(problem, file=file, hint=_CORRECT_FIRST)
    if not is_there:
        value = _nested(path[depth + 1 :], [value] if as_item else value)
    piece, at = _piece(text, node, "" if is_there else str(path[depth]), value, newline)
    made = tuple(map(str, path[: depth + 1])) if depth < len(path) - (not as_item) else ()
    return Put(text[:at] + piece + text[at:], piece, made)


def take(
    text: str,
    path: Path,
    file: str,
    made: Path = (),
    *,
    item: Callable[[object], bool] | None = None,
) -> str:
    """Remove the entry at a path, or the items of the list there for which `item` is true.

    The parents down from `made` are removed as well if they are empty.
    """
    text = _without_items(text, path, file, item) if item is not None else _without(text, path)
    gone = path if item is not None else path[:-1]
    while (
        made
        and len(gone) >= len(made)
        and _find(text, gone) is not None
        and not _get(read(text, file), gone)
    ):
        text, gone = _without(text, gone), gone[:-1]
    return text


def set_value(text: str, path: Path, value: object, file: str) -> str:
    """Return the text with a value at a path of keys; create missing parents."""
    found = None if read(text, file) is None else _find(text, path)
    if found is None:
        return put(text, path, value, file).text
    node = found[1].value
    is_spread = "\n" in text[node.start : node.end]
    newline = "\r\n" if "\r\n" in text else "\n"
    indent, unit = _indent_at(text, found[1].start), _unit(text)
    piece = json.dumps(value, ensure_ascii=False)
    piece = _rendered(value, indent, unit, newline) if is_spread else piece
    return text[: node.start] + piece + text[node.end :]


def unset(text: str, path: Path, file: str) -> str:
    """Return the text without the entry at a path, and without parents that are empty then."""
    if not has(text, path, file):
        return text
    text = _without(text, path)
    while len(path) > 1:
        path = path[:-1]
        found = _find(text, path)
        if found is None or isinstance(path[-1], int):
            return text
        node = found[1].value
        if text[node.start + 1 : node.end - 1].strip():  # other entries, or a comment
            return text
        text = _without(text, path)
    return text


def has(text: str, path: Path, file: str) -> bool:
    """Whether there is an entry at a path."""
    return read(text, file) is not None and _find(text, path) is not None


def get(text: str, path: Path, file: str) -> object:
    """Return the value at a path; None if there is none."""
    return _get(read(text, file), path)


def _get(value: object, path: Path) -> object:
    for key in path:
        if isinstance(value, list) and isinstance(key, int):
            value = value[key] if key < len(value) else None
        else:
            value = value.get(key) if isinstance(value, dict) else None
    return value


def _nested(path: Path, value: object) -> object:
    for key in reversed(path):
        value = {str(key): value}
    return value


# --- Positions ---


def _scan(text: str) -> Node:
    """Return the positions of the values of a valid text."""
    return _value(text, _blank(text, 0))


def _blank(text: str, at: int) -> int:
    found = _BLANK.match(text, at)
    return found.end() if found else at


def _value(text: str, at: int) -> Node:
    if text[at] not in "{[":
        found = _STRING.match(text, at) or _WORD.match(text, at)
        assert found is not None  # the text is valid
        return Node(at, found.end())
    closing = "}" if text[at] == "{" else "]"
    entries, place = list[Entry](), _blank(text, at + 1)
    while text[place] != closing:
        key, start = "", place
        if closing == "}":
            key, place = _key(text, place)
            place = _blank(text, _blank(text, place) + 1)  # the colon
        value = _value(text, place)
        place = _blank(text, value.end)
        comma = place + 1 if text[place] == "," else 0
        entries.append(Entry(key=key, start=start, value=value, comma=comma))
        place = _blank(text, comma) if comma else place
    return Node(at, place + 1, tuple(entries))


def _key(text: str, at: int) -> tuple[str, int]:
    found = _STRING.match(text, at)
    if found is None:
        word = _WORD.match(text, at)
        assert word is not None
        return word[0], word.end()
    return str(parse(found[0]).value), found.end()


def _entry(node: Node, key: str | int) -> Entry | None:
    if isinstance(key, int):
        return (node.entries or ())[key] if key < len(node.entries or ()) else None
    return next((entry for entry in node.entries or () if entry.key == key), None)


def _find(text: str, path: Path) -> tuple[Node, Entry] | None:
    """Return the entry at a path with the object that contains it."""
    if not text.strip("\ufeff \t\r\n"):
        return None
    node, entry = _scan(text), None
    for number, key in enumerate(path):
        entry = _entry(node, key)
        if entry is None:
            return None
        if number < len(path) - 1:
            node = entry.value
    return (node, entry) if entry is not None else None


# --- Changes ---


def _piece(text: str, node: Node, key: str, value: object, newline: str) -> tuple[str, int]:
    """Return the text to insert into an object or a list, and where."""
    label = f"{json.dumps(key, ensure_ascii=False)}: " if key else ""
    first = node.entries[0].start if node.entries else node.end - 1
    outer = _indent_at(text, node.start)
    unit = _unit(text)
    is_spread = "\n" in text[node.start : first]
    if node.entries and not is_spread:
        return f"{label}{json.dumps(value, ensure_ascii=False)}, ", first
    indent = _indent_at(text, first) if node.entries else outer + unit
    entry = f"{newline}{indent}{label}{_rendered(value, indent, unit, newline)}"
    rest = _REST_OF_LINE.match(text, node.start + 1)
    at = rest.end() if rest and rest.end() <= first else node.start + 1
    if node.entries:
        return f"{entry},", at
    return entry if is_spread else f"{entry}{newline}{outer}", at


def _rendered(value: object, indent: str, unit: str, newline: str) -> str:
    text = json.dumps(value, ensure_ascii=False, indent=unit)
    return text.replace("\n", newline + indent)


def _indent_at(text: str, at: int) -> str:
    """Return the indentation of the line that contains a position."""
    start = max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1
    found = re.compile(r"\ufeff?([ \t]*)").match(text, start)
    return found[1] if found else ""


def _unit(text: str) -> str:
    """Return the indentation unit of the file."""
    root = _scan(text)
    first = root.entries[0].start if root.entries else 0
    return (_indent_at(text, first) if "\n" in text[root.start : first] else "") or _UNIT


def _without(text: str, path: Path) -> str:
    found = _find(text, path)
    return text if found is None else _cut(text, *found)


def _without_items(text: str, path: Path, file: str, is_ours: Callable[[object], bool]) -> str:
    while True:
        found, values = _find(text, path), get(text, path, file)
        if found is None or not isinstance(values, list):
            return text
        number = next((number for number, value in enumerate(values) if is_ours(value)), None)
        if number is None:
            return text
        node = found[1].value
        text = _cut(text, node, (node.entries or ())[number])


def _cut(text: str, node: Node, entry: Entry) -> str:
    """Remove an entry, the blanks before it and one comma; comments are kept."""
    entries = node.entries or ()
    number = entries.index(entry)
    start = len(text[: entry.start].rstrip(" \t\r\n"))
    rest = text[entry.comma or entry.value.end :]
    before = text[entries[number - 1].comma if number else node.start + 1 : start]
    if "//" in before and not rest.lstrip(" \t").startswith(("\r", "\n")):
        # The line break ends a comment, so it stays.
        found = re.match(r"[ \t]*(?:\r\n|\r|\n)", text[start : entry.start])
        start += found.end() if found else 0
    text = text[:start] + rest
    if number and not entry.comma:  # it was the last, so the comma before it must go
        comma = entries[number - 1].comma
        text = text[: comma - 1] + text[comma:]
    return text
