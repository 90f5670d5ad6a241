"""`$include` in a configuration file: the object of another file takes the place of the directive.

As in OpenClaw, the value is a path or a list of paths, relative to the file that names it. Later
files win over earlier ones and keys next to the directive win over both; objects are merged and
lists are joined. An included file must lie in the folder of the main configuration file, or below
it, after links are resolved."""

from __future__ import annotations

import os
from collections.abc import Callable

from clawmark.model.errors import ConfigError

DIRECTIVE = "$include"
MAX_DEPTH = 10
MAX_FILES = 100
"""Included files in all: a few files that include each other many times must not keep a command
busy.
"""
_HINT = "Correct the $include, or name another configuration file with --config."


def resolve_includes(tree: object, path: str, read: Callable[[str], object]) -> object:
    """The tree of the file at `path` with every directive replaced; `read` parses a file.

    Raises ConfigError.
    """
    try:
        return _Resolver(os.path.dirname(os.path.realpath(path)), read).resolve(
            tree, (os.path.realpath(path),)
        )
    except RecursionError:
        raise _error(path, "the file is nested too deeply to look for $include in it") from None


class _Resolver:
    def __init__(self, folder: str, read: Callable[[str], object]) -> None:
        self.folder = folder
        self.read = read
        self.files = 0

    def resolve(self, value: object, chain: tuple[str, ...]) -> object:
        """A value with the directives in it replaced; `chain` is the files that led here, the
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
        included = self.included(value[DIRECTIVE], chain)
        if others and not isinstance(included, dict):
            raise _error(
                chain[-1],
                f"{DIRECTIVE} has keys next to it, so the included file must hold an object",
            )
        return merged(included, others) if others else included

    def included(self, names: object, chain: tuple[str, ...]) -> object:
        given = names if isinstance(names, list) else [names]
        if not given or not all(
            isinstance(name, str) and name.strip() and "\0" not in name for name in given
        ):
            raise _error(chain[-1], f"{DIRECTIVE} must be a path or a list of paths")
        result: object = None
        for number, name in enumerate(given):
            loaded = self.load(name.strip(), chain)
            result = merged(result, loaded) if number else loaded
        return result

    def load(self, name: str, chain: tuple[str, ...]) -> object:
        path = os.path.realpath(os.path.join(os.path.dirname(chain[-1]), name))
        if not path.startswith(self.folder.rstrip(os.sep) + os.sep):
            raise _error(chain[-1], f'{DIRECTIVE} "{name}" leads out of {self.folder}')
        if path in chain:
            raise _error(chain[-1], f'{DIRECTIVE} "{name}" includes a file that includes this one')
        self.files += 1
        if len(chain) > MAX_DEPTH or self.files > MAX_FILES:
            limit = f"{MAX_DEPTH} levels" if len(chain) > MAX_DEPTH else f"{MAX_FILES} files"
            raise _error(chain[-1], f'{DIRECTIVE} "{name}" goes beyond the limit of {limit}')
        try:
            tree = self.read(path)
        except FileNotFoundError:
            raise _error(
                chain[-1], f'{DIRECTIVE} "{name}" names a file that does not exist'
            ) from None
        return self.resolve(tree, (*chain, path))


def merged(target: object, source: object) -> object:
    """Two values as one: objects key by key, lists one after the other; otherwise `source` wins."""
    if isinstance(target, list) and isinstance(source, list):
        return [*target, *source]
    if isinstance(target, dict) and isinstance(source, dict):
        return {
            **target,
            **{
                key: merged(target[key], value) if key in target else value
                for key, value in source.items()
            },
        }
    return source


def _error(path: str, sentence: str) -> ConfigError:
    return ConfigError(f"{path}: {sentence}.", key=DIRECTIVE, file=path, hint=_HINT)
