"""Parse the arguments that a model passes to a tool; `ToolInputError` names the wrong argument.

Lenient: camelCase or snake_case, numbers as strings, fractions for whole numbers, null or a blank
string for "not given", unknown keys. Strict: numbers must be finite and within range, and a key
given twice is refused, because the value that is checked must be the value that is used."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence

from clawmark.model.errors import ToolInputError

LONGEST_JSON = 4_000_000
"""Characters of a JSON string that are parsed at most."""

LARGEST_WHOLE = 1_000_000_000
"""Larger whole numbers are reduced to this."""

# ASCII digits only: float() also accepts "١٢", "1_0", "nan" and "infinity".
_NUMBER = re.compile(r"[+-]?([0-9]{1,40}\.?[0-9]{0,40}|\.[0-9]{1,40})([eE][+-]?[0-9]{1,3})?")


def read_arguments(given: object) -> Mapping[str, object]:
    """Return the arguments as a mapping; None is an empty one."""
    if given is None:
        return {}
    if isinstance(given, str):
        given = _parse(given)
    if not isinstance(given, Mapping):
        raise _wrong("arguments", f"the arguments must be a JSON object, not {_kind(given)}.")
    return given


def text_argument(
    arguments: Mapping[str, object],
    name: str,
    *,
    trim: bool,
    longest: int,
    may_be_blank: bool = False,
) -> str:
    """Return a required text; `trim` removes blanks around it."""
    value = _pick(arguments, name)
    if value is None:
        raise _wrong(name, f"{name} is required.")
    if not isinstance(value, str):
        raise _wrong(name, f"{name} must be text, not {_kind(value)}.")
    if not value.strip() and not may_be_blank:
        raise _wrong(name, f"{name} is required; it was blank.")
    if len(value) > longest:
        raise _wrong(
            name, f"{name} is {len(value):,} characters long; at most {longest:,} are taken."
        )
    return value.strip() if trim else value


def optional_text(arguments: Mapping[str, object], name: str, *, longest: int) -> str:
    """Return a text without the blanks around it; empty if it was not given."""
    if _pick(arguments, name) is None:
        return ""
    return text_argument(arguments, name, trim=True, longest=longest, may_be_blank=True)


def whole_argument(
    arguments: Mapping[str, object],
    name: str,
    *,
    most: int = LARGEST_WHOLE,
    zero_is_absent: bool = False,
) -> int | None:
    """Return a whole number from 1 to `most`, or None if it was not given.

    Fractions are truncated and larger numbers reduced. Smaller numbers are refused, except that
    zero may mean "not given"."""
    number = _number(arguments, name)
    if number is None:
        return None
    # Compare before int(): a float like 1e308 has 308 digits.
    whole = most if number >= most else int(number)
    if whole == 0 and zero_is_absent:
        return None
    if whole < 1:
        raise _wrong(name, f"{name} must be 1 or more, not {_shown(number)}.")
    return whole


def share_argument(arguments: Mapping[str, object], name: str) -> float | None:
    """Return a number from 0 to 1, or None if it was not given; other numbers are refused."""
    number = _number(arguments, name)
    if number is None:
        return None
    if not 0 <= number <= 1:
        raise _wrong(name, f"{name} must be a number from 0 to 1, not {_shown(number)}.")
    return abs(float(number))  # -0.0 is 0.0


def choice_argument(
    arguments: Mapping[str, object], name: str, choices: Sequence[str], *, default: str
) -> str:
    """Return one of the choices, matched in any case; `default` if it was not given."""
    value = _pick(arguments, name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return default
    if isinstance(value, str):
        for choice in choices:
            if value.strip().lower() == choice.lower():
                return choice
    raise _wrong(
        name,
        f"{name} must be {', '.join(choices[:-1])} or {choices[-1]}, not {_kind_or_text(value)}.",
    )


def flag_argument(arguments: Mapping[str, object], name: str) -> bool:
    """Return a switch, which is off if it was not given; models also write it as a word."""
    value = _pick(arguments, name)
    word = value.strip().lower() if isinstance(value, str) else value
    if word in (None, "", False, "false"):
        return False
    if word is True or word == "true":
        return True
    raise _wrong(name, f"{name} must be true or false, not {_kind_or_text(value)}.")


def refuse_argument(arguments: Mapping[str, object], name: str, because: str) -> None:
    """Refuse an argument that would ask for something the caller may not have."""
    for key in (name, _snake(name)):
        if key in arguments:
            raise _wrong(key, f"{key} cannot be given: {because}.")


def _parse(text: str) -> object:
    if len(text) > LONGEST_JSON:
        raise _wrong(
            "arguments",
            f"the arguments are {len(text):,} characters long; at most {LONGEST_JSON:,} are taken.",
        )
    try:
        return json.loads(text, object_pairs_hook=_once, parse_constant=_no_constant)
    except RecursionError:
        raise _wrong("arguments", "the arguments are nested too deeply.") from None
    except json.JSONDecodeError as error:
        raise _wrong(
            "arguments",
            f"the arguments are not valid JSON: {error.msg} at character {error.pos + 1}.",
        ) from None
    except ValueError:  # an integer of more than 4,300 digits
        raise _wrong("arguments", "the arguments hold a number with too many digits.") from None


def _once(pairs: list[tuple[str, object]]) -> dict[str, object]:
    seen = dict(pairs)
    if len(seen) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _wrong(twice, f"{twice[:80]} is given twice.")
    return seen


def _no_constant(name: str) -> object:
    raise _wrong("arguments", f"the arguments are not valid JSON: {name} is not a JSON number.")


def _pick(arguments: Mapping[str, object], name: str) -> object:
    """Return the value under the camelCase or snake_case name; refuse two different ones."""
    snake = _snake(name)
    value = arguments.get(name)
    if snake == name or snake not in arguments:
        return value
    other = arguments[snake]
    if name in arguments and other != value:
        raise _wrong(name, f"{name} and {snake} are both given and differ.")
    return other


def _number(arguments: Mapping[str, object], name: str) -> int | float | None:
    value = _pick(arguments, name)
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    if isinstance(value, str):
        written = value.strip()
        if len(written) > 80 or not _NUMBER.fullmatch(written):
            raise _wrong(name, f"{name} must be a number, not {json.dumps(written[:40])}.")
        value = float(written)
    # bool is a subclass of int.
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise _wrong(name, f"{name} must be a number, not {_kind(value)}.")
    if isinstance(value, float) and not math.isfinite(value):
        raise _wrong(name, f"{name} must be a finite number.")
    return value


def _snake(name: str) -> str:
    return "".join("_" + char.lower() if char.isupper() else char for char in name)


def _kind(value: object) -> str:
    """Return what JSON calls the type of a value."""
    match value:
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "text"
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case None:
            return "null"
        case _:
            return type(value).__name__


def _kind_or_text(value: object) -> str:
    return json.dumps(value[:40]) if isinstance(value, str) else _kind(value)


def _shown(number: int | float) -> str:
    # str() of a huge integer is slow, and refused by Python past 4,300 digits.
    return f"{number:g}" if abs(number) < 1e15 else "a very large number"


def _wrong(argument: str, sentence: str) -> ToolInputError:
    return ToolInputError(
        sentence[0].upper() + sentence[1:] if argument == "arguments" else sentence,
        argument=argument,
    )
