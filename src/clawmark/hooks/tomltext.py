"""A TOML text in; the same text with one block of ours at its end, or without it, out. Every other
byte stays as it was.

A table may stand anywhere in TOML, so the end is always right. Two comments enclose the block:
whatever happens to the rest of the file, it can be found again. What is in the block is left to
`hosts`."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Sequence

from clawmark.model.errors import ConfigError

BEGIN = "# >>> clawmark (this block is taken out by: clawmark install codex --remove)"
END = "# <<< clawmark"
_BLOCK = re.compile(rf"(?:\r?\n)?{re.escape(BEGIN)}.*?{re.escape(END)}(?:\r?\n|\Z)", re.DOTALL)


def read(text: str, file: str) -> dict[str, object]:
    """What a text says; ConfigError where it cannot be understood."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(
            f"{file}: {error}.", file=file, hint="Put this right first; nothing was changed."
        ) from None


def put(text: str, lines: Sequence[str], file: str) -> tuple[str, str]:
    """The text with the block, and the piece of it that is new."""
    newline = "\r\n" if "\r\n" in text else "\n"
    rest = text.removeprefix("\ufeff")
    before = "" if not rest else newline if rest.endswith("\n") else 2 * newline
    piece = before + newline.join([BEGIN, *lines, END, ""])
    try:
        read(text + piece, file)
    except ConfigError:
        read(text, file)  # if it was wrong before, this says where
        raise ConfigError(
            f"{file} has tables of its own that leave no room for Clawmark's.",
            file=file,
            hint="Write mcp_servers and hooks as [tables], not as values in braces, and try again.",
        ) from None
    return text + piece, piece


def take(text: str) -> str:
    """The text without the block."""
    return _BLOCK.sub("", text, count=1)


def table(name: str, values: Mapping[str, object], *, is_item: bool = False) -> list[str]:
    """The lines of a table, or of an item of a list of tables, with a blank line before it."""
    header = f"[[{name}]]" if is_item else f"[{name}]"
    # JSON's strings, numbers and lists of them are TOML's too; only the escape of DEL is missing,
    # and no path has one.
    return [
        "",
        header,
        *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()),
    ]
