"""Parse the JSON of one message strictly.

Uses the standard library only, because the first message is read before the SDK is loaded."""

from __future__ import annotations

import json

MAX_DIGITS = 300
"""Python refuses to print a number of more than 4,300 digits; ids and counts need far fewer."""


class NotJson(ValueError):
    """Raised when the bytes are not JSON in UTF-8."""


class AmbiguousJson(ValueError):
    """Raised for JSON that parsers disagree about: repeated keys, NaN, very long numbers."""


def parse_json(data: bytes) -> object:
    """Parse one value.

    Half of a surrogate pair is replaced, except in an `id`, which must be returned unchanged.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_reject_constant,
            parse_int=_bounded_int,
        )
        # Valid UTF-8 has no surrogates, so a lone one can only come from an escape.
        return _without_lone_surrogates(value) if b"\\ud" in data.lower() else value
    except (UnicodeDecodeError, json.JSONDecodeError):
        raise NotJson("This is not JSON in UTF-8.") from None
    except RecursionError:
        raise NotJson("This is nested too deeply.") from None


def replace_lone_surrogates(text: str) -> str:
    """Replace each half of a surrogate pair with U+FFFD, as JavaScript's `toWellFormed` does."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def _without_lone_surrogates(value: object) -> object:
    text = json.dumps(value, ensure_ascii=False)
    valid = replace_lone_surrogates(text)
    if valid == text:
        return value
    cleaned: object = json.loads(valid)
    if (
        isinstance(value, dict)
        and isinstance(cleaned, dict)
        and value.get("id") != cleaned.get("id")
    ):
        raise AmbiguousJson("The id holds half of a surrogate pair.")
    return cleaned


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise AmbiguousJson("A key is given twice.")
    return value


def _reject_constant(name: str) -> object:
    raise AmbiguousJson(f"{name} is not a JSON number.")


def _bounded_int(digits: str) -> int:
    if len(digits) > MAX_DIGITS:
        raise AmbiguousJson("A number has too many digits.")
    return int(digits)
