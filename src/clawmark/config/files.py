"""A path in; the object its JSON5 text holds out, or a ConfigError that names file, line, key and
reason.

Only regular files are read, never more than 16 MB, and without waiting: a FIFO, a device or a
folder under the name of a configuration file is an error and not a hang. What the keys mean is left
to `load`."""

import os
import stat
from typing import NamedTuple

from clawmark.model.errors import ConfigError

MAX_BYTES = 16 * 1024 * 1024
_LOCATED_BYTES = (
    1024 * 1024
)  # finding a line reads the text again in Python; above this an error goes without one


class ConfigFile(NamedTuple):
    """A configuration file as read."""

    path: str
    text: str
    tree: dict[str, object]


def read_config(
    path: str, *, follow_links: bool = True, follow_includes: bool = True, limit: int = MAX_BYTES
) -> ConfigFile:
    """Read a configuration file; FileNotFoundError when there is none, ConfigError for everything
    else.
    """
    text = _text_of(path, follow_links, limit)
    tree = _parsed(text, path)
    if follow_includes and "$include" in text:
        from clawmark.config.includes import resolve_includes

        tree = resolve_includes(
            tree, path, lambda included: _parsed(_text_of(included, True, limit), included)
        )
    if not isinstance(tree, dict):
        raise _unreadable(path, f"{path} must hold one object in braces, not {_kind(tree)}.")
    return ConfigFile(path, text, tree)


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """The line a key stands on, or 0 when it cannot be told."""
    from clawmark.config.json5 import Json5Error, parse

    if len(text) > _LOCATED_BYTES:
        return 0
    try:
        lines = parse(text).lines
    except Json5Error:  # strict JSON can be nested deeper than we follow
        return 0
    for end in range(len(path), 0, -1):  # a list item has no line of its own: the list's will do
        if path[:end] in lines:
            return lines[path[:end]]
    return 0


def _text_of(path: str, follow_links: bool, limit: int) -> str:
    text = _decoded(_read_bytes(path, follow_links, limit), path)
    if not text.strip():
        raise _unreadable(path, f"{path} is empty; it must hold one object, at least {{}}.")
    return text


def _read_bytes(path: str, follow_links: bool, limit: int) -> bytes:
    flags = (
        os.O_RDONLY
        | getattr(os, "O_NONBLOCK", 0)
        | getattr(os, "O_CLOEXEC", 0)
        | getattr(os, "O_NOCTTY", 0)
    )
    if not follow_links:
        flags |= getattr(os, "O_NOFOLLOW", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"{path} could not be opened: {_reason(error)}.") from None
    try:
        seen = os.fstat(descriptor)
        if not stat.S_ISREG(seen.st_mode):
            raise _unreadable(
                path, f"{path} is {_file_kind(seen.st_mode)}, not a configuration file."
            )
        data = _read_up_to(descriptor, limit + 1)
    except OSError as error:
        raise _unreadable(path, f"{path} could not be read: {_reason(error)}.") from None
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise _unreadable(
            path, f"{path} is larger than {limit:,} bytes, which no configuration file is."
        )
    return data


def _read_up_to(descriptor: int, limit: int) -> bytes:
    pieces, room = list[bytes](), limit
    while room > 0:
        piece = os.read(descriptor, min(room, 1024 * 1024))
        if not piece:
            break
        pieces.append(piece)
        room -= len(piece)
    return b"".join(pieces)


def _decoded(data: bytes, path: str) -> str:
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise _unreadable(path, f"{path} is UTF-16; a configuration file must be UTF-8.")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        byte = data[error.start]
        raise _unreadable(
            path, f"{path}, line {line}: the byte 0x{byte:02x} is not UTF-8."
        ) from None


def _parsed(text: str, path: str) -> object:
    """Strict JSON by the standard library, which is fast; everything else by our own reader, which
    explains.
    """
    import json

    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        from clawmark.config.json5 import Json5Error, parse, show_path
    try:
        return parse(text).value
    except Json5Error as error:
        under = f" (in {show_path(error.path)})" if error.path else ""
        message = f"{path}, line {error.line}, column {error.column}: {error.reason}{under}."
        raise ConfigError(
            message,
            key=show_path(error.path),
            file=path,
            hint="The file must be JSON5: JSON with comments.",
        ) from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("a key stands twice")  # our own reader says which, and where
    return values


def _unreadable(path: str, message: str) -> ConfigError:
    return ConfigError(message, file=path, hint="Correct the file, or name another with --config.")


def _reason(error: OSError | ValueError) -> str:
    return (error.strerror if isinstance(error, OSError) else str(error)) or type(error).__name__


def _file_kind(mode: int) -> str:
    kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))
    return next((name for is_kind, name in kinds if is_kind(mode)), "a device")


def _kind(value: object) -> str:
    kinds: dict[type, str] = {
        list: "a list",
        str: "a text",
        bool: "true or false",
        int: "a number",
        float: "a number",
    }
    return kinds.get(type(value), "null")
