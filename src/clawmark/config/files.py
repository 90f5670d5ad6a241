"""Read a configuration file: JSON5 with `$include`, into plain values.

Only regular files are read, at most 16 MB and without blocking: a FIFO, a device or a folder under
the name of a configuration file is an error, not a hang. Errors are ConfigErrors that name file,
line, key and reason.

`$include` works as in OpenClaw: a path or a list of paths, relative to the file that names it.
Later files win over earlier ones and keys next to the directive win over both; objects are merged
and lists are joined. An included file must lie in the folder of the main configuration file, or
below it, after links are resolved."""

import json
import os
import stat
from typing import NamedTuple

from clawmark.config.json5 import Json5Error, parse, show_path
from clawmark.model.errors import ConfigError

MAX_BYTES = 16 * 1024 * 1024
DIRECTIVE = "$include"
MAX_DEPTH = 10
MAX_FILES = 100
"""Included files in all: a few files that include each other many times must not take forever."""
_LOCATED_BYTES = 1024 * 1024
"""Finding a line parses the text again in Python; errors in larger files have no line."""
_INCLUDE_HINT = "Correct the $include, or name another configuration file with --config."


class ConfigFile(NamedTuple):
    """A configuration file as read, with its includes resolved in `tree`."""

    path: str
    text: str
    tree: dict[str, object]


def read_config(
    path: str, *, follow_links: bool = True, follow_includes: bool = True, limit: int = MAX_BYTES
) -> ConfigFile:
    """Read a configuration file; raises FileNotFoundError when there is none, ConfigError for
    everything else.
    """
    text = _read_text(path, limit, follow_links=follow_links)
    tree = _parse(text, path)
    if follow_includes and DIRECTIVE in text:
        real = os.path.realpath(path)
        try:
            tree = _Includes(os.path.dirname(real), limit).resolve(tree, (real,))
        except RecursionError:
            raise _include_error(
                path, "the file is nested too deeply to look for $include in it"
            ) from None
    if not isinstance(tree, dict):
        raise _unreadable(path, f"{path} must hold one object in braces, not {_kind(tree)}.")
    return ConfigFile(path, text, tree)


def line_of(text: str, path: tuple[str | int, ...]) -> int:
    """The line a key is on, or 0 when it is not known."""
    if len(text) > _LOCATED_BYTES:
        return 0
    try:
        lines = parse(text).lines
    except Json5Error:  # strict JSON can be nested deeper than the JSON5 parser allows
        return 0
    for end in range(len(path), 0, -1):  # a list item has no line of its own; the list has
        if path[:end] in lines:
            return lines[path[:end]]
    return 0


def locate(file: str, text: str, path: tuple[str | int, ...]) -> tuple[str, str]:
    """The name of a key, and its place for the beginning of a message: `my.json, line 3: `."""
    name = show_path(path)
    if not file:
        return name, ""
    line = line_of(text, path)
    return name, f"{file}, line {line}: " if line else f"{file}: "


class _Includes:
    """Replaces the directives in a tree by the content of the files they name."""

    def __init__(self, folder: str, limit: int) -> None:
        self.folder = folder
        self.limit = limit
        self.files = 0

    def resolve(self, value: object, chain: tuple[str, ...]) -> object:
        """A value with its directives replaced; `chain` holds the files that led here, the
        including one last.
        """
        if isinstance(value, list):
            return [self.resolve(item, chain) for item in value]
        if not isinstance(value, dict):
            return value
        others = {
            key: self.resolve(inner, chain) for key, inner in value.items() if key != DIRECTIVE
        }
        if DIRECTIVE not in value:
            return others
        included = self._included(value[DIRECTIVE], chain)
        if others and not isinstance(included, dict):
            raise _include_error(
                chain[-1],
                f"{DIRECTIVE} has keys next to it, so the included file must hold an object",
            )
        return _merge(included, others) if others else included

    def _included(self, names: object, chain: tuple[str, ...]) -> object:
        given = names if isinstance(names, list) else [names]
        if not given or not all(
            isinstance(name, str) and name.strip() and "\0" not in name for name in given
        ):
            raise _include_error(chain[-1], f"{DIRECTIVE} must be a path or a list of paths")
        result: object = None
        for number, name in enumerate(given):
            loaded = self._load(name.strip(), chain)
            result = _merge(result, loaded) if number else loaded
        return result

    def _load(self, name: str, chain: tuple[str, ...]) -> object:
        including, directive = chain[-1], f'{DIRECTIVE} "{name}"'
        path = os.path.realpath(os.path.join(os.path.dirname(including), name))
        if not path.startswith(self.folder.rstrip(os.sep) + os.sep):
            raise _include_error(including, f"{directive} leads out of {self.folder}")
        if path in chain:
            raise _include_error(including, f"{directive} includes a file that includes this one")
        self.files += 1
        if len(chain) > MAX_DEPTH or self.files > MAX_FILES:
            limit = f"{MAX_DEPTH} levels" if len(chain) > MAX_DEPTH else f"{MAX_FILES} files"
            raise _include_error(including, f"{directive} goes beyond the limit of {limit}")
        try:
            tree = _parse(_read_text(path, self.limit), path)
        except FileNotFoundError:
            raise _include_error(
                including, f"{directive} names a file that does not exist"
            ) from None
        return self.resolve(tree, (*chain, path))


def _merge(target: object, source: object) -> object:
    """Merge objects key by key and join lists; otherwise `source` wins."""
    if isinstance(target, list) and isinstance(source, list):
        return [*target, *source]
    if isinstance(target, dict) and isinstance(source, dict):
        changed = {
            key: _merge(target[key], value) if key in target else value
            for key, value in source.items()
        }
        return {**target, **changed}
    return source


def _read_text(path: str, limit: int, *, follow_links: bool = True) -> str:
    data = _read_bytes(path, limit, follow_links=follow_links)
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        raise _unreadable(path, f"{path} is UTF-16; a configuration file must be UTF-8.")
    try:
        text = data.decode().removeprefix("\ufeff")  # a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise _unreadable(
            path, f"{path}, line {line}: the byte 0x{data[error.start]:02x} is not UTF-8."
        ) from None
    if not text.strip():
        raise _unreadable(path, f"{path} is empty; it must hold one object, at least {{}}.")
    return text


def _read_bytes(path: str, limit: int, *, follow_links: bool) -> bytes:
    names = ("O_NONBLOCK", "O_CLOEXEC", "O_NOCTTY", *(() if follow_links else ("O_NOFOLLOW",)))
    flags = os.O_RDONLY
    for name in names:
        flags |= getattr(os, name, 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise _unreadable(path, f"{path} could not be opened: {_reason(error)}.") from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise _unreadable(path, f"{path} is {_file_kind(mode)}, not a configuration file.")
        with open(descriptor, "rb", closefd=False) as file:
            data = file.read(limit + 1)
    except OSError as error:
        raise _unreadable(path, f"{path} could not be read: {_reason(error)}.") from None
    finally:
        os.close(descriptor)
    if len(data) > limit:
        raise _unreadable(
            path, f"{path} is larger than {limit:,} bytes, the limit for a configuration file."
        )
    return data


def _parse(text: str, path: str) -> object:
    """Parse strict JSON with the standard library, which is fast, and everything else as JSON5."""
    try:
        return json.loads(text, object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        pass
    try:
        return parse(text).value
    except Json5Error as error:
        under = f" (in {show_path(error.path)})" if error.path else ""
        raise ConfigError(
            f"{path}, line {error.line}, column {error.column}: {error.reason}{under}.",
            key=show_path(error.path),
            file=path,
            hint="The file must be JSON5: JSON with comments.",
        ) from None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) < len(pairs):
        raise ValueError("duplicate key")  # the JSON5 parser says which one, and where
    return values


def _unreadable(path: str, message: str) -> ConfigError:
    return ConfigError(message, file=path, hint="Correct the file, or name another with --config.")


def _include_error(path: str, reason: str) -> ConfigError:
    return ConfigError(f"{path}: {reason}.", key=DIRECTIVE, file=path, hint=_INCLUDE_HINT)


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
