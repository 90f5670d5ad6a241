"""Add a block to the end of a TOML text, and remove it again, without changing other bytes.

A table may stand anywhere in TOML, so the end is always valid. Two comments enclose the block, so
it is found again after the rest of the file has changed."""

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
    """Parse a text; raises ConfigError if it is not valid."""
    try:
        return tomllib.loads(text.removeprefix("\ufeff").replace("\r\n", "\n"))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(
            f"{file}: {error}.", file=file, hint="Correct this first; nothing was changed."
        ) from None


def put(text: str, lines: Sequence[str], file: str) -> tuple[str, str]:
    """Add the block; return the text and the added piece."""
    newline = "\r\n" if "\r\n" in text else "\n"
    rest = text.removeprefix("\ufeff")
    before = "" if not rest else newline if rest.endswith("\n") else 2 * newline
    piece = before + newline.join([BEGIN, *lines, END, ""])
    try:
        read(text + piece, file)
    except ConfigError:
        read(text, file)  # if the text was invalid before, this raises the error
        raise ConfigError(
            f"{file} has values that conflict with Clawmark's tables.",
            file=file,
            hint="Write mcp_servers and hooks as [tables], not as values in braces, and try again.",
        ) from None
    return text + piece, piece


def take(text: str) -> str:
    """Remove the block."""
    return _BLOCK.sub("", text, count=1)


def table(name: str, values: Mapping[str, object], *, is_item: bool = False) -> list[str]:
    """Return the lines of a table, or of an item of an array of tables, after a blank line."""
    header = f"[[{name}]]" if is_item else f"[{name}]"
    # Strings, numbers and lists of JSON are valid TOML, except for DEL, which no path contains.
    return [
        "",
        header,
        *(f"{key} = {json.dumps(value, ensure_ascii=False)}" for key, value in values.items()),
    ]
