"""Classify an error response: is it worth another attempt, smaller requests, or a user's action?

The status decides. The message only separates what shares a status: "too many inputs" comes as 400,
413, 422, 429 and 500, an exhausted quota as 402, 403 and 429."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from enum import Enum

from clawmark.net.client import Response

MAX_MESSAGE = 200
"""Characters."""
LONGEST_WAIT = 86_400.0
"""Seconds. A longer wait is not worth a retry."""

_READ_BYTES = 8192
"""How much of the body is searched; the message stands at its beginning."""


class Verdict(Enum):
    """What follows from a response."""

    FINE = "fine"
    BUSY = "busy"
    """Worth another attempt."""
    QUOTA = "quota"
    """The account's quota is used up: another attempt only costs time."""
    KEY = "key"
    TOO_LARGE = "too large"
    """Worth another attempt with fewer or shorter texts."""
    REDIRECT = "redirect"
    REFUSED = "refused"


_BUSY = (408, 409, 425, 429)

_QUOTA = (
    r"insufficient[ _](?:quota|balance|credits?|funds)|exceeded your current "
    r"quota|billing|(?:out of|no) credits?"
    r"|credit balance|per[ _-]?day|daily (?:limit|quota|budget)|monthly (?:limit|quota)|payment "
    r"required"
)
_SHORT_LIMIT = r"per[ _-]?(?:min|sec)|\b[rt]pm\b|retryDelay"
_PER_DAY = r"per[ _-]?day"
_BAD_KEY = (
    r"api[ _-]?key (?:is )?(?:not valid|invalid|expired|not found)|api_key_invalid"
    r"|(?:invalid|incorrect) (?:api[ _-]?key|token)"
)

# Every provider words "too many or too long inputs" differently, and the words change. All of them
# name a thing and a limit, so both are searched for anywhere in the message. A wrong guess costs a
# few smaller requests, a missed one the whole batch.
_TOO_MUCH = (
    r"\btoo (?:many|long|large|big|much)\b|\bexceed|\bmax|\bat most\b|\bup "
    r"to\b|\blimit|\breduce|\bsplit|\babove\b|\bover\b"
    r"|\b(?:larger|longer|greater|bigger|higher|more|fewer|less|smaller|shorter) "
    r"than\b|超过|最大|过长|过大|最多"
)
_THING = (
    r"(?<![a-z])(?:batch|inputs?|texts?|items?|tokens?|arrays?|lists?|lengths?|sizes?|elements?"
    r"|entries|documents?|strings?|payload|body|characters|chars|context|contents?|sequences?"
    r"|prompts?|entity)(?![a-z])|输入|数组|长度|批"
)
_RATE = r"\brate[ _-]?limit|too many requests|per[ _-]?(?:min|sec|hour|day)|\bquota\b|concurren"
_PLAINLY_TOO_LARGE = (
    r"request too large|context (?:length|window|size)|input (?:length|is too "
    r"(?:large|long))|maximum input"
    r"|too many (?:inputs|tokens) in|batch size"
)


def classify(response: Response) -> Verdict:
    """Return what follows from a response; a response that is FINE may still lack vectors."""
    status = response.status
    if 200 <= status < 300:
        return Verdict.FINE
    if 300 <= status < 400:
        return Verdict.REDIRECT
    text = _text(response)
    if status == 413 or _is_too_large(status, _message(text)):
        return Verdict.TOO_LARGE
    if status == 402 or (status in (400, 403, 429) and _is_quota(text)):
        return Verdict.QUOTA
    if status in (401, 403) or (status == 400 and _has(_BAD_KEY, text)):
        return Verdict.KEY
    if status in _BUSY or 500 <= status < 600:
        return Verdict.BUSY
    return Verdict.REFUSED


def _is_too_large(status: int, message: str) -> bool:
    if _is_page(message):  # a gateway's page, whose markup is full of such words
        return False
    if status in (400, 422):
        return _has(_TOO_MUCH, message) and _has(_THING, message) and not _has(_RATE, message)
    # Some servers use the status of an overload; there only unmistakable words count.
    if status == 429:
        return "request too large" in message.lower()
    return status == 500 and _has(_PLAINLY_TOO_LARGE, message)


def _is_quota(text: str) -> bool:
    """Return whether the account's quota is used up. A rate limit is not: on free tiers its message
    mentions quotas and billing, too."""
    if not _has(_QUOTA, text):
        return False
    return _has(_PER_DAY, text) or not _has(_SHORT_LIMIT, text)


def server_message(response: Response, redact: Callable[[str], str]) -> str:
    """Return what the server says, redacted, on one line and at most 200 characters long."""
    text = _text(response)
    if _is_page(text):
        return "an HTML page"
    # Redacted before it is cut: half a key is a leak too.
    clean = " ".join(redact(_message(text)).split())
    clean = "".join(char if char.isprintable() else "?" for char in clean)
    return clean if len(clean) <= MAX_MESSAGE else clean[: MAX_MESSAGE - 1].rstrip() + "…"


def _is_page(text: str) -> bool:
    return text[:200].lstrip().lower().startswith(("<!doctype", "<html", "<?xml", "<head"))


def _has(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.IGNORECASE) is not None


def _text(response: Response) -> str:
    return response.body[:_READ_BYTES].decode("utf-8", "replace")


def _message(text: str) -> str:
    """Return the message inside the JSON that most providers wrap it in."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return text
    if not value:
        return ""
    for _ in range(4):
        if isinstance(value, list) and value:
            value = value[0]
        if isinstance(value, dict):
            found = next(
                (value[name] for name in ("error", "message", "detail", "msg") if value.get(name)),
                None,
            )
            if found is None:
                return text
            value = found
        if isinstance(value, str):
            return value
    return text


def retry_after(response: Response, now: float) -> float:
    """Return the seconds that the server asks to wait; 0 if it does not. `now` is Unix time."""
    headers = response.headers
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST_WAIT)
    said = headers.get("retry-after", "").strip()
    seconds = _number(said)
    if seconds is None and said:
        seconds = _until(said, headers, now)
    if seconds is None:
        # Google puts it into the body: {"@type": "…RetryInfo", "retryDelay": "34s"}
        delay = re.search(
            r'"retryDelay"\s{0,9}:\s{0,9}"([0-9]{1,9}(?:\.[0-9]{1,9})?)s"', _text(response)
        )
        seconds = float(delay[1]) if delay else 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _number(text: str) -> float | None:
    found = re.fullmatch(r"[0-9]{1,30}(?:\.[0-9]{0,30})?", text.strip())
    return float(found[0]) if found else None


def _until(text: str, headers: Mapping[str, str], now: float) -> float | None:
    """Return the seconds until an HTTP date, by the server's clock when it sends a date."""
    moment = _moment(text)
    if moment is None:
        return None
    theirs = _moment(headers.get("date", ""))
    return max(0.0, moment - (now if theirs is None else theirs))


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None
