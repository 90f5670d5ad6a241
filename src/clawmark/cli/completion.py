"""Find the words that complete a command line, from the same parsers as `--help`.

What a value is follows from its placeholder in the help: DIR is a folder, FILE a file, PATH and
GLOB a memory file, also where a version may follow. The scripts in `commands/completion` call this
for every TAB."""

from __future__ import annotations

import re
import shlex
from argparse import REMAINDER, Action
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from clawmark.cli.arguments import Parser, add_common, make_parser
from clawmark.cli.verbs import VERBS, module_of
from clawmark.config.keys import BY_NAME
from clawmark.memory import Memory
from clawmark.model.errors import ClawmarkError
from clawmark.text.untrusted.origin_labels import IMPORTS

MEMORY_COMMANDS = ("status", "index", "search")
"""The words after `clawmark memory`; each takes the flags of the command of its name."""
_SWITCHES = {"-h": "show the help", "--help": "show the help", "--version": "show the version"}


class Answer(NamedTuple):
    """Words with a short description each, or the kind of files that the shell completes."""

    words: tuple[tuple[str, str], ...] = ()
    files: str = ""
    """`files`, `folders` or empty."""


class Walked(NamedTuple):
    """The words of a command line, as far as they are typed."""

    positionals: list[str]
    first: int
    """The position of the first positional word; -1 without one."""
    values: dict[str, str]
    """The values of flags, by the name of their argument."""
    used: set[str]
    """The arguments whose flags were given."""
    pending: Action | None
    """The flag whose value is next."""
    has_dashes: bool
    """Whether `--` was given: no flags follow."""


def complete(words: Sequence[str]) -> Answer:
    """Return what the last of the words after `clawmark` can become."""
    *before, current = words or [""]
    common = Parser(prog="clawmark", add_help=False)
    add_common(common)
    leading = walk(common, before)
    if not leading.positionals:
        verbs = [(verb, line) for verb, (_, line) in VERBS.items()]
        if current.startswith("-") or leading.pending is not None:
            return _within(common, leading, current, [*_SWITCHES.items()])
        return _starting([*verbs, ("help", "Explain a command")], current)
    verb, rest = leading.positionals[0], list(before)
    rest.pop(leading.first)
    if verb == "help":
        return _starting([(verb, line) for verb, (_, line) in VERBS.items()], current)
    if verb == "memory":
        if len(leading.positionals) == 1:
            return _starting([(name, VERBS[name][1]) for name in MEMORY_COMMANDS], current)
        return complete([*rest, current]) if leading.positionals[1] in MEMORY_COMMANDS else Answer()
    if verb not in VERBS:
        return Answer()
    parser = make_parser(verb, VERBS[verb][1], module_of(verb))
    return _within(parser, walk(parser, rest), current, verb=verb)


def walk(parser: Parser, words: Sequence[str]) -> Walked:
    """Sort words into flags, their values and other words; unknown flags are passed over."""
    known = parser._option_string_actions
    positionals, first, values, used = list[str](), -1, dict[str, str](), set[str]()
    pending: Action | None = None
    has_dashes = False
    for number, word in enumerate(words):
        if pending is not None:
            values[pending.dest], pending = word, None
        elif has_dashes or not word.startswith("-") or word == "-":
            first = first if positionals else number
            positionals.append(word)
        elif word == "--":
            has_dashes = True
        else:
            name, is_joined, value = word.partition("=")
            if not word.startswith("--") and word[:2] in known and known[word[:2]].nargs != 0:
                name, is_joined, value = word[:2], word[2:], word[2:]
            action = known.get(name)
            if action is not None:
                used.add(action.dest)
                if action.nargs is None and not is_joined:
                    pending = action
                elif is_joined:
                    values[action.dest] = value
    return Walked(
        positionals=positionals,
        first=first,
        values=values,
        used=used,
        pending=pending,
        has_dashes=has_dashes,
    )


def _within(
    parser: Parser,
    typed: Walked,
    current: str,
    more: Sequence[tuple[str, str]] = (),
    verb: str = "",
) -> Answer:
    """Complete a flag, the value of a flag, or the next word of a command."""
    if typed.pending is not None:
        return _values(typed.pending, typed, current, verb)
    name, is_joined, value = current.partition("=")
    if current.startswith("-") and not typed.has_dashes:
        action = parser._option_string_actions.get(name)
        if is_joined and action is not None:
            answer = _values(action, typed, value, verb)
            joined = tuple((f"{name}={word}", line) for word, line in answer.words)
            return answer._replace(words=joined)
        return _starting([*_flags(parser, typed), *more], current)
    left = len(typed.positionals)
    for action in parser._get_positional_actions():
        if left == 0 or action.nargs in ("*", "+", REMAINDER):
            return _values(action, typed, current, verb)
        left -= 1
    return Answer()


def _flags(parser: Parser, typed: Walked) -> Iterable[tuple[str, str]]:
    """The flags that can still be given, with the long names first."""
    for action in parser._actions:
        is_repeatable = type(action).__name__ == "_AppendAction"
        if action.option_strings and (is_repeatable or action.dest not in typed.used):
            for flag in sorted(action.option_strings, key=len, reverse=True):
                yield flag, action.help or ""


def _values(action: Action, typed: Walked, current: str, verb: str) -> Answer:
    """Complete a value or another word of a command."""
    if action.choices is not None:
        return _starting([(str(choice), "") for choice in action.choices], current)
    place = str(action.metavar or "")
    if place in ("DIR", "FILE"):
        return Answer(files="folders" if place == "DIR" else "files")
    if place == "GLOB" or re.match(r"\[?PATH\b", place):
        return _starting(_levels(_memory_paths(typed), current), current)
    if verb == "config":
        return _starting(_setting_words(typed), current)
    if place in ("show NAME", "remove NAME") and not typed.positionals:
        return _starting([(place.split()[0], action.help or "")], current)
    names = _names_for(action, verb)
    return _starting(_opened_words(typed, names), current) if names is not None else Answer()


def _names_for(action: Action, verb: str) -> Callable[[Memory], list[str]] | None:
    """Return what lists the names that a value can have."""
    is_source = "--source" in action.option_strings
    if verb == "forget" and is_source:
        return _forgettable_sources
    if is_source or action.metavar == "remove NAME":
        return _source_names
    if action.metavar == "show NAME" or (verb == "forget" and action.dest == "session"):
        return _session_names
    return _proposal_names if verb == "review" and action.metavar == "ID" else None


def _setting_words(typed: Walked) -> list[tuple[str, str]]:
    """The keys for `config get`, `set` and `unset`, and the values that a key is limited to."""
    if typed.positionals[:1] not in (["get"], ["set"], ["unset"]):
        return []
    if len(typed.positionals) == 1:
        return [(key.name, key.description) for key in BY_NAME.values()]
    named = BY_NAME.get(typed.positionals[1])
    if named is None or typed.positionals[0] != "set":
        return []
    return [(word, "") for word in (("true", "false") if named.kind == "flag" else named.choices)]


def _memory_paths(typed: Walked) -> list[str]:
    return [word for word, _ in _opened_words(typed, _file_names)]


def _file_names(memory: Memory) -> list[str]:
    return [state.path for state in memory.workspace.scan().files if state.source == "memory"]


def _source_names(memory: Memory) -> list[str]:
    return ["memory", "sessions", *(source.name for source in memory.workspace.sources())]


def _forgettable_sources(memory: Memory) -> list[str]:
    """The imports and the added folders."""
    below = (path.split("/") for path in _file_names(memory) if path.startswith(IMPORTS))
    imported = {parts[2] for parts in below if len(parts) > 3}
    return sorted({*imported, *(source.name for source in memory.workspace.sources())})


def _proposal_names(memory: Memory) -> list[str]:
    return [proposal.id for proposal in memory.review.list()]


def _session_names(memory: Memory) -> list[str]:
    return [session.path for session in memory.sessions()]


def _opened_words(typed: Walked, names: Callable[[Memory], list[str]]) -> list[tuple[str, str]]:
    """Names in the memory that the common flags lead to; none if it cannot be opened."""
    try:
        with Memory.open(
            typed.values.get("workspace"),
            agent=typed.values.get("agent"),
            config=typed.values.get("config"),
            state_dir=typed.values.get("state_dir"),
            background=False,
        ) as memory:
            return [(name, "") for name in names(memory) if name.isprintable()]
    except (ClawmarkError, OSError):
        return []


def _levels(paths: Iterable[str], current: str) -> list[tuple[str, str]]:
    """Cut paths after the next slash, so that a folder is completed before what is in it."""
    found = dict[str, None]()
    for path in paths:
        if path.startswith(current):
            end = path.find("/", len(current))
            found[path if end < 0 else path[: end + 1]] = None
    return [(path, "") for path in found]


def _starting(words: Iterable[tuple[str, str]], current: str) -> Answer:
    return Answer(tuple((word, line) for word, line in words if word.startswith(current)))


# --- bash ---


def split_line(line: str) -> tuple[list[str], str]:
    """Split the line that is typed in bash into words, the last one unfinished, and return the
    quote that is still open.
    """
    if re.search(r"(?<!\\)(?:\\\\)*\\$", line):
        line = line[:-1]  # a backslash that escapes nothing yet
    for quote in ("", '"', "'"):
        try:
            words = shlex.split(line + quote)
        except ValueError:
            continue
        if not quote and (not line or re.search(r"(?<!\\)\s$", line)):
            words.append("")
        return words, quote
    return [*line.split(), ""], ""


def as_bash(word: str, current: str, quote: str) -> str:
    """Return a word as bash inserts it: escaped, and without what bash counts as words of its own
    because it ends with `:` or `=`.
    """
    cut = max(current.rfind(":"), current.rfind("=")) + 1
    word = word[cut:]
    return word if quote else re.sub(r"([^\w@%+=:,./~-])", r"\\\1", word)
