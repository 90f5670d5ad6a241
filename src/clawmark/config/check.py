"""Check single values against the table of keys.

An error is one sentence with the file, the line, the path of the key, what is allowed and what was
found; it never repeats a secret. Rules between keys (weights that sum to 1) are in `settle`."""

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeGuard

from clawmark.config.schema.key import Key
from clawmark.model.errors import ConfigError


class Source(NamedTuple):
    """Where values come from: a file with its text, or the caller."""

    origin: str
    """As `config list` shows it: `file <path>`, `workspace <path>` or `flag`."""
    file: str = ""
    text: str = ""


class Written(NamedTuple):
    """A value as written, and where."""

    source: Source
    path: tuple[str | int, ...]
    value: object


def check(key: Key, written: Written, warnings: list[str] | None = None) -> object:
    """The value as the settings hold it; raises ConfigError. A count that is too large is reduced,
    with a warning.
    """
    value = written.value
    if key.kind == "count" and _is_number(value) and key.high < value < math.inf:
        if warnings is not None:
            reason = f"is {show(value)}; {key.high:.0f} is used, the most there is"
            warnings.append(refuse(written, reason).message)
        return int(key.high)
    return KINDS[key.kind].check(key, written)


def refuse(written: Written, sentence_end: str) -> ConfigError:
    """The error for a value: its place, followed by `sentence_end` ("must be …")."""
    # Imported here: the parser is needed only when there is a file to read.
    from clawmark.config.files import locate

    name, where = locate(written.source.file, written.source.text, written.path)
    hint = "`clawmark config schema` lists every key and what it may hold."
    return ConfigError(
        f"{where}{name} {sentence_end}.", key=name, file=written.source.file, hint=hint
    )


def show(value: object) -> str:
    """A value as it would be written in the file, at most 40 characters, on one line."""
    words: dict[object, str] = {True: "true", False: "false", None: "null"}
    if isinstance(value, (bool, type(None))):
        return words[value]
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if isinstance(value, (dict, list, tuple)):
        return "an object" if isinstance(value, dict) else "a list"
    text = ascii(value)[1:-1] if isinstance(value, str) and not value.isprintable() else str(value)
    text = text[:37] + "…" if len(text) > 40 else text
    return f'"{text}"' if isinstance(value, str) else text


def fill_in(text: str, key: str, environ: Mapping[str, str]) -> str:
    """Replace `${NAME}` references; ConfigError when a variable is not set."""

    def value(found: re.Match[str]) -> str:
        if not environ.get(found[1]):
            raise ConfigError(
                f"{key} takes its value from the environment variable {found[1]}, which is not "
                f"set.",
                key=key,
                hint=f"Set {found[1]}, or write the value into your configuration file.",
            )
        return environ[found[1]]

    return re.sub(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}", value, text)


def _flag(key: Key, written: Written) -> bool:
    if isinstance(written.value, bool):
        return written.value
    raise refuse(written, f"must be true or false, not {show(written.value)}")


def _count(key: Key, written: Written) -> int:
    value = written.value
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    if _is_number(value) and isinstance(value, int) and key.low <= value <= key.high:
        return value
    raise refuse(
        written,
        f"must be a whole number from {key.low:.0f} to {key.high:.0f}, not {show(written.value)}",
    )


def _number(key: Key, written: Written) -> float:
    value = written.value
    if _is_number(value) and key.low <= value <= key.high:
        return float(value)
    raise refuse(written, f"must be a number from {key.low:g} to {key.high:g}, not {show(value)}")


def _text(key: Key, written: Written) -> str:
    value = written.value
    if isinstance(value, str) and not _has_controls(value) and len(value) <= 4096:
        return value.strip()
    raise refuse(written, f"must be a text of one line, not {show(value)}")


def _words(key: Key, written: Written) -> str:
    """A text of several lines."""
    value = written.value
    if (
        isinstance(value, str)
        and len(value) <= 20_000
        and not _has_controls(re.sub(r"[\t\r\n]", "", value))
    ):
        return value.strip()
    raise refuse(written, f"must be a text of at most 20,000 characters, not {show(value)}")


def _size(key: Key, written: Written) -> int:
    """A number of bytes, or a text such as `2mb`."""
    value = written.value
    found = (
        re.fullmatch(r"\s*([0-9]{1,12})(?:\.([0-9]{1,3}))?\s*([kmg]?)i?b?\s*", value.lower())
        if isinstance(value, str)
        else None
    )
    if found:
        power = {"": 0, "k": 10, "m": 20, "g": 30}[found[3]]
        return int(float(f"{found[1]}.{found[2] or 0}") * (1 << power))
    if _is_number(value) and 0 <= value <= 2**50:
        return int(value)
    raise refuse(written, f'must be a number of bytes or a size such as "2mb", not {show(value)}')


def _model(key: Key, written: Written) -> str:
    """A model's name, or OpenClaw's object with a primary model and fallbacks, of which the primary
    one is used.
    """
    value = written.value
    if isinstance(value, dict):
        if value.get("primary") is None and "fallbacks" in value:
            return ""
        value = value.get("primary")
    if isinstance(value, str) and value.strip() and not _has_controls(value) and len(value) <= 512:
        return value.strip()
    raise refuse(
        written, f'must be a model such as "openai:gpt-4o-mini", not {show(written.value)}'
    )


def _name(key: Key, written: Written) -> str:
    """A provider: any name, because plugins and `models.providers` add their own."""
    if isinstance(written.value, str) and re.fullmatch(
        "[A-Za-z0-9][A-Za-z0-9_.:/-]{0,63}", written.value
    ):
        return written.value
    raise refuse(written, f'must be a name such as "auto", not {show(written.value)}')


def _names(key: Key, written: Written) -> tuple[str, ...]:
    """Providers in order: one name, a list of names, or `none`."""
    given = written.value if isinstance(written.value, list) else [written.value]
    names = [_name(key, written._replace(value=item)) for item in given]
    return tuple(dict.fromkeys(name for name in names if name != "none"))


def _choice(key: Key, written: Written) -> str:
    if isinstance(written.value, str) and written.value in key.choices:
        return written.value
    raise refuse(written, f"must be {_either(key.choices)}, not {show(written.value)}")


def _choices(key: Key, written: Written) -> tuple[str, ...]:
    value = written.value
    if isinstance(value, list) and all(
        isinstance(item, str) and item in key.choices for item in value
    ):
        return tuple(dict.fromkeys(value))
    wrong = (
        next((item for item in value if item not in key.choices), value)
        if isinstance(value, list)
        else value
    )
    raise refuse(written, f"must be a list of {_either(key.choices)}, not {show(wrong)}")


def _paths(key: Key, written: Written) -> tuple[str, ...]:
    """Paths as texts, or as `{path, pattern}` objects; the patterns are read by `patterns_of`."""
    if not isinstance(written.value, list):
        raise refuse(written, f'must be a list such as ["notes"], not {show(written.value)}')
    paths = list[str]()
    for number, item in enumerate(written.value):
        path = item.get("path") if isinstance(item, dict) else item
        if not isinstance(path, str) or not path.strip() or _has_controls(path):
            inner = written._replace(path=(*written.path, number))
            raise refuse(inner, f"must be the path of a folder or file, not {show(item)}")
        paths.append(path.strip())
    return tuple(paths)


def patterns_of(written: Written, warnings: list[str]) -> list[tuple[str, str]]:
    """Each extra path with its pattern, empty for the whole path; warns of patterns that are not
    supported.
    """
    assert isinstance(written.value, list)
    found = list[tuple[str, str]]()
    for item in written.value:
        path, pattern = (
            (item["path"], item.get("pattern")) if isinstance(item, dict) else (item, "")
        )
        if (
            not isinstance(pattern, str)
            or pattern.startswith(("!", "/"))
            or any(sign in pattern for sign in "{}()\\")
        ):
            if pattern is not None:
                warnings.append(
                    f"{written.source.file or 'memorySearch.extraPaths'}: the pattern "
                    f"{show(pattern)} of the extra path "
                    f"{show(path)} is not used: only * ** ? and [] are known. Every Markdown "
                    f"file in it is searched."
                )
            pattern = ""
        plain = pattern.strip().removeprefix("./")
        found.append((path.strip(), "" if plain in ("**", "**/*", "**/*.md") else plain))
    return found


def _url(key: Key, written: Written) -> str:
    if not isinstance(written.value, str):
        raise refuse(written, f"must be the address of a service, not {show(written.value)}")
    if re.fullmatch(r"\$\{[A-Za-z_][A-Za-z0-9_]*\}", written.value):
        return written.value  # checked when it is filled in
    # Imported late: ipaddress takes 2 ms.
    from clawmark.config.urls import problem_with

    problem = problem_with(written.value)
    if problem:
        raise refuse(written, f"is refused: {problem}")
    return written.value


def _secret(key: Key, written: Written) -> object:
    """A key, or OpenClaw's reference to one; the value never appears in a message."""
    if isinstance(written.value, dict):
        return written.value
    if isinstance(written.value, str) and written.value.isprintable() and written.value.isascii():
        return written.value
    raise refuse(written, "must be one line of plain ASCII text, with no control characters")


def _headers(key: Key, written: Written) -> object:
    value = written.value
    if isinstance(value, dict) and all(
        isinstance(text, str)
        and text.isprintable()
        and re.fullmatch(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+", name)
        for name, text in value.items()
    ):
        return value
    raise refuse(written, "must be an object of header names and one-line texts")


def _texts(key: Key, written: Written) -> tuple[str, ...]:
    value = written.value
    if isinstance(value, list) and all(
        isinstance(item, str) and not _has_controls(item) for item in value
    ):
        return tuple(item.strip() for item in value if item.strip())
    raise refuse(written, f"must be a list of texts, not {show(value)}")


def _duration(key: Key, written: Written) -> float:
    """The minutes of a time such as `5m` or `1h`; a bare number is minutes."""
    value = written.value
    text = f"{value:g}" if _is_number(value) and 0 <= value < 1e6 else value
    found = (
        re.fullmatch(r"\s*([0-9]{1,6}(?:\.[0-9]{1,3})?)\s*(ms|[smhd]?)\s*", text.lower())
        if isinstance(text, str)
        else None
    )
    if found:
        per_minute = {"ms": 60_000, "s": 60, "m": 1, "": 1, "h": 1 / 60, "d": 1 / 1440}[found[2]]
        return float(found[1]) / per_minute
    raise refuse(written, f'must be a time such as "5m" or "1h", not {show(value)}')


def _collections(key: Key, written: Written) -> tuple[Mapping[str, str], ...]:
    """Folders as `{path, name, pattern}` objects or as texts."""
    paths = _paths(key, written)
    assert isinstance(written.value, list)
    found = list[Mapping[str, str]]()
    for number, (path, item) in enumerate(zip(paths, written.value, strict=True)):
        others = item if isinstance(item, dict) else {}
        entry = {"path": path}
        for name in ("name", "pattern"):
            value = others.get(name, "")
            if not isinstance(value, str) or _has_controls(value):
                inner = written._replace(path=(*written.path, number, name))
                raise refuse(inner, f"must be a text, not {show(value)}")
            if value.strip():
                entry[name] = value.strip()
        found.append(entry)
    return tuple(found)


def _scope(key: Key, written: Written) -> Mapping[str, object]:
    """OpenClaw's object of rules; the first one that matches decides."""
    value = written.value
    rules = value.get("rules", []) if isinstance(value, dict) else None
    if not isinstance(value, dict) or not isinstance(rules, list):
        raise refuse(written, f'must be an object with "default" and "rules", not {show(value)}')
    actions: list[tuple[tuple[str | int, ...], object]] = [
        (("default",), value.get("default", "deny"))
    ]
    for number, rule in enumerate(rules):
        match = rule.get("match", {}) if isinstance(rule, dict) else None
        if not isinstance(match, dict) or not all(isinstance(one, str) for one in match.values()):
            inner = written._replace(path=(*written.path, "rules", number))
            raise refuse(inner, 'must be an object such as { action: "allow", match: {} }')
        actions.append((("rules", number, "action"), rule.get("action")))
    for where, action in actions:
        if action not in ("allow", "deny"):
            inner = written._replace(path=(*written.path, *where))
            raise refuse(inner, f'must be "allow" or "deny", not {show(action)}')
    return value


def _spaces(key: Key, written: Written) -> tuple[str, ...]:
    """Names of shared spaces."""
    value = written.value
    if not isinstance(value, list):
        raise refuse(written, f'must be a list of spaces such as ["team"], not {show(value)}')
    for number, name in enumerate(value):
        if not is_space_name(name):
            inner = written._replace(path=(*written.path, number))
            raise refuse(inner, f"{_SPACE_RULE}, not {show(name)}")
    return tuple(dict.fromkeys(value))


def _publish(key: Key, written: Written) -> Mapping[str, tuple[str, ...]]:
    """Patterns of files for each space."""
    value = written.value
    if not isinstance(value, dict):
        example = '{ team: ["memory/team/**"] }'
        raise refuse(written, f"must be an object such as {example}, not {show(value)}")
    found = dict[str, tuple[str, ...]]()
    for name, patterns in value.items():
        inner = written._replace(path=(*written.path, name), value=patterns)
        if not is_space_name(name):
            raise refuse(inner, f"is not a space: {_SPACE_RULE}")
        for number, pattern in enumerate(_texts(key, inner)):
            if pattern.startswith(("/", "../", "!", "~")) or ":" in pattern.partition("/")[0]:
                place = inner._replace(path=(*inner.path, number))
                raise refuse(
                    place, f"must be a pattern for files of the workspace, not {show(pattern)}"
                )
        found[name] = tuple(one.removeprefix("./") for one in _texts(key, inner))
    return found


def is_space_name(name: object) -> bool:
    """Whether a value may be the name of a shared space, or of an author in one."""
    return isinstance(name, str) and re.fullmatch(r"[a-z0-9][a-z0-9._-]{0,62}", name) is not None


_SPACE_RULE = "must be 1 to 63 of a-z, 0-9, dot, _ and -, beginning with a letter or digit"


class Kind(NamedTuple):
    """How the values of a key are checked, and in a few words what they may be."""

    check: Callable[[Key, Written], object]
    words: str


KINDS: dict[str, Kind] = {
    "flag": Kind(_flag, "true or false"),
    "count": Kind(_count, "whole number"),
    "number": Kind(_number, "number"),
    "text": Kind(_text, "text"),
    "words": Kind(_words, "text of several lines"),
    "size": Kind(_size, "a number of bytes, or a size as 2mb"),
    "model": Kind(_model, "a model, as openai:gpt-4o-mini"),
    "name": Kind(_name, "a name"),
    "names": Kind(_names, "a name or a list of names"),
    "choice": Kind(_choice, ""),
    "choices": Kind(_choices, "list of "),
    "paths": Kind(_paths, "a list of paths"),
    "url": Kind(_url, "an http or https address"),
    "secret": Kind(_secret, "text"),
    "headers": Kind(_headers, "an object of texts"),
    "texts": Kind(_texts, "a list of texts"),
    "duration": Kind(_duration, "a time, as 5m or 1h; a bare number is minutes"),
    "collections": Kind(_collections, "a list of folders, as {path, name, pattern}"),
    "scope": Kind(_scope, "an object with default and rules"),
    "spaces": Kind(_spaces, "a list of names"),
    "publish": Kind(_publish, "an object of lists of patterns"),
}


def allowed_values(key: Key) -> str:
    """What a key may hold, in a few words."""
    words = KINDS[key.kind].words
    if key.choices:
        return words + ", ".join(key.choices)
    if key.kind not in ("count", "number"):
        return words
    if key.high >= 2**31 - 1:
        return f"{words}, {key.low:g} or more"
    return f"{words}, {key.low:,.0f} to {key.high:,.0f}"


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _either(choices: tuple[str, ...]) -> str:
    quoted = [f'"{choice}"' for choice in choices]
    return quoted[0] if len(quoted) == 1 else ", ".join(quoted[:-1]) + " or " + quoted[-1]


def _has_controls(text: str) -> bool:
    return any(
        ord(letter) < 32 or 127 <= ord(letter) < 160 or 0xD800 <= ord(letter) <= 0xDFFF
        for letter in text
    )
