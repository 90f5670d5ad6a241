"""A JSON5 parser that keeps the line of every key and reports errors with line, column and key.

The json5 package takes 50 ms for 4 KB with comments, more than a whole cold search, and its errors
have neither key nor line. This parser reads the same language except `\\u` escapes in unquoted
names. It is limited to 100 levels and linear in the length of the text."""

import re
from bisect import bisect_right
from functools import cache
from typing import NamedTuple

MAX_DEPTH = 100

# Compiled on first use: a file of strict JSON is read without them.
_compiled = cache(re.compile)
_BLANK = r"(?s:[\s\ufeff]+|//[^\n\r\u2028\u2029]*|/\*.*?\*/)*"
_DECIMAL = r"(?:(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = rf"([+-]?)(Infinity|NaN|0[xX][0-9a-fA-F]+|{_DECIMAL})"
_NAME = r"(?:[^\W\d]|\$)[\w$\u200c\u200d]*"
_PLAIN = r"[^\"'\\\n\r]*"
_LINE_END = r"\r\n|[\n\r\u2028\u2029]"
_WORDS: dict[str, object] = {"true": True, "false": False, "null": None}
_ESCAPES = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}

Path = tuple[str | int, ...]


class Json5Error(ValueError):
    """Text that is not JSON5: the line and column (from 1), the path of the key, and the reason."""

    def __init__(self, reason: str, line: int, column: int, path: Path) -> None:
        super().__init__(reason)
        self.reason = reason
        self.line = line
        self.column = column
        self.path = path


class Parsed(NamedTuple):
    """A value and the line of each key in it, by the key's path."""

    value: object
    lines: dict[Path, int]


def parse(text: str) -> Parsed:
    """Read one JSON5 value; raises Json5Error."""
    reader = _Reader(text)
    value = reader.value(0)
    reader.blank()
    if reader.at < len(text):
        raise reader.error(f"unexpected {reader.here()} after the end of the value")
    return Parsed(value, {path: reader.line_at(at) for path, at in reader.found.items()})


def show_path(path: Path) -> str:
    """`agents.list[2].id` for a path of keys and positions."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text if len(text) <= 160 else f"{text[:80]}…{text[-40:]}"


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.path: Path = ()
        self.found: dict[Path, int] = {}
        self.ends: list[int] = []

    def value(self, depth: int) -> object:
        self.blank()
        text, at = self.text, self.at
        first = text[at : at + 1]
        if depth > MAX_DEPTH:
            raise self.error(f"the text is nested more than {MAX_DEPTH} levels deep")
        if first == "{":
            return self.braces(depth)
        if first == "[":
            return self.brackets(depth)
        if first and first in "\"'":
            return self.string()
        if first and first in "+-.0123456789IN":
            return self.number()
        word = _compiled(_NAME).match(text, at)
        if word and word[0] in _WORDS:
            self.at = word.end()
            return _WORDS[word[0]]
        raise self.error(f"expected a value, found {self.here()}")

    def braces(self, depth: int) -> dict[str, object]:
        outer, values = self.path, dict[str, object]()
        self.at += 1
        while not self.ended("}"):
            start = self.at
            key = self.key()
            self.path = (*outer, key)
            if key in values:
                self.at, self.path = start, outer
                raise self.error(f"duplicate key {ascii(key)[1:-1][:60]} in one object")
            self.found[self.path] = start
            self.expect(":")
            values[key] = self.value(depth + 1)
            self.path = outer
            self.separator("}")
        return values

    def brackets(self, depth: int) -> list[object]:
        outer, values = self.path, list[object]()
        self.at += 1
        while not self.ended("]"):
            self.path = (*outer, len(values))
            values.append(self.value(depth + 1))
            self.path = outer
            self.separator("]")
        return values

    def key(self) -> str:
        if self.text[self.at : self.at + 1] in ('"', "'"):
            return self.string()
        start, name = self.at, _compiled(_NAME).match(self.text, self.at)
        if not name:
            raise self.error(f"expected a key, found {self.here()}")
        self.at = name.end()
        # Combining marks belong to a name too, and no pattern covers them.
        while self.at < len(self.text) and f"a{self.text[self.at]}".isidentifier():
            self.at += 1
        return self.text[start : self.at]

    def number(self) -> int | float:
        found = _compiled(_NUMBER).match(self.text, self.at)
        if (
            not found
            or _compiled(_NAME).match(self.text, found.end())
            or self.text[found.end() : found.end() + 1].isdigit()
        ):
            raise self.error("not a number")
        self.at = found.end()
        sign, digits = found.groups()
        if digits[:2] in ("0x", "0X"):
            return int(sign + digits, 16)
        if digits.isdigit() and len(digits) < 4000:  # int() refuses longer ones
            return int(sign + digits)
        return float(sign + digits)

    def string(self) -> str:
        text, quote = self.text, self.text[self.at]
        self.at += 1
        pieces: list[str] = []
        while True:
            plain = _compiled(_PLAIN).match(text, self.at)
            assert plain is not None  # it also matches nothing
            pieces.append(plain[0])
            self.at = plain.end()
            mark = text[self.at : self.at + 1]
            if mark == "\\":
                pieces.append(self.escape())
            elif mark == quote:
                self.at += 1
                return _joined(pieces)
            elif mark and mark in "\"'":
                pieces.append(mark)
                self.at += 1
            else:
                raise self.error("a quoted text does not end on its line")

    def escape(self) -> str:
        letter = self.text[self.at + 1 : self.at + 2]
        width = {"x": 2, "u": 4}.get(letter, 0)
        if width:
            digits = self.text[self.at + 2 : self.at + 2 + width]
            if not re.fullmatch(f"[0-9a-fA-F]{{{width}}}", digits):
                raise self.error(f"\\{letter} needs {width} hexadecimal digits")
            self.at += 2 + width
            return chr(int(digits, 16))
        line_end = _compiled(_LINE_END).match(self.text, self.at + 1)
        if line_end:  # the text continues on the next line
            self.at = line_end.end()
            return ""
        if not letter or letter in "123456789":
            raise self.error("invalid escape sequence")
        self.at += 2
        return _ESCAPES.get(letter, letter)

    def blank(self) -> None:
        found = _compiled(_BLANK).match(self.text, self.at)
        assert found is not None  # it also matches nothing
        self.at = found.end()
        if self.text.startswith("/*", self.at):
            raise self.error("a comment does not end")

    def ended(self, closing: str) -> bool:
        self.blank()
        if self.text.startswith(closing, self.at):
            self.at += 1
            return True
        return False

    def expect(self, mark: str) -> None:
        self.blank()
        if not self.text.startswith(mark, self.at):
            raise self.error(f'expected "{mark}", found {self.here()}')
        self.at += 1

    def separator(self, closing: str) -> None:
        self.blank()
        if not self.text.startswith(closing, self.at):
            if not self.text.startswith(",", self.at):
                raise self.error(f'expected "," or "{closing}", found {self.here()}')
            self.at += 1

    def here(self) -> str:
        if self.at >= len(self.text):
            return "the end of the file"
        mark = self.text[self.at]
        return f'"{mark}"' if mark.isprintable() else f"the character U+{ord(mark):04X}"

    def line_at(self, at: int) -> int:
        if not self.ends:
            self.ends = [found.end() for found in _compiled(_LINE_END).finditer(self.text)] or [
                len(self.text) + 1
            ]

        return bisect_right(self.ends, at) + 1

    def error(self, reason: str) -> Json5Error:
        line = self.line_at(self.at)
        start = self.ends[line - 2] if line > 1 else 0
        return Json5Error(reason=reason, line=line, column=self.at - start + 1, path=self.path)


def _joined(pieces: list[str]) -> str:
    """Join the pieces of a string and the halves of escaped surrogate pairs."""
    text = "".join(pieces)
    if len(pieces) > 1 and any("\ud800" <= letter <= "\udbff" for letter in text):
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text
