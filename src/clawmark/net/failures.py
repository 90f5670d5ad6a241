"""What a provider means by an answer that is no vectors: a status, headers and some words in, a
verdict out.

Pure: nothing waits and nothing is raised here. Statuses decide; words only tell apart what shares a
status, because "too many inputs" comes as 400, 413, 422, 429 and 500, and a quota as 402, 403 and
429. How long to try is `retry`'s part."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from email.utils import parsedate_to_datetime
from enum import Enum

from clawmark.net.client import Response

MOST_WORDS = 200
LONGEST_WAIT = 86_400.0
"""Seconds. A server that asks for more than a day is not asking for a pause."""

_LOOKED_AT = 8192
"""Bytes of a refusal that are read for its words; they stand at its beginning."""


class Verdict(Enum):
    """What follows from an answer."""

    FINE = "fine"
    BUSY = "busy"
    """Worth another try."""
    QUOTA = "quota"
    """The account is used up: another try only costs time."""
    KEY = "key"
    TOO_LARGE = "too large"
    """Worth another try in smaller pieces."""
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

# Every provider has its own words for "too many or too long inputs", and new ones come every month.
# They all name what there is too much of and some limit; asking for both, anywhere in the message,
# finds the wordings nobody has met yet. A wrong guess costs a few halvings, a missed one the whole
# batch.
_TOO_MUCH = (
    r"\btoo (?:many|long|large|big|much)\b|\bexceed|\bmax|\bat most\b|\bup "
    r"to\b|\blimit|\breduce|\bsplit|\babove\b|\bover\b"
    r"|\b(?:larger|longer|greater|bigger|higher|more|fewer|less|smaller|shorter) "
    r"than\b|超过|最大|过长|过大|最多"
)
_THING = (
    r"(?<![a-z])(?:batch|inputs?|texts?|items?|tokens?|arrays?|lists?|lengths?|sizes?|elements?|entries|documents?|strings?"
    r"|payload|body|characters|chars|context|contents?|sequences?|prompts?|entity)(?![a-z])|输入|数组|长度|批"
)
_RATE = r"\brate[ _-]?limit|too many requests|per[ _-]?(?:min|sec|hour|day)|\bquota\b|concurren"
_PLAINLY_TOO_LARGE = (
    r"request too large|context (?:length|window|size)|input (?:length|is too "
    r"(?:large|long))|maximum input"
    r"|too many (?:inputs|tokens) in|batch size"
)


def judge(response: Response) -> Verdict:
    """What follows from an answer, before anybody looks for vectors in it."""
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
    if _is_page(message):  # of some gateway in between, whose markup is full of such words
        return False
    if status in (400, 422):
        return _has(_TOO_MUCH, message) and _has(_THING, message) and not _has(_RATE, message)
    # Some servers say it with the status of an overload; only plain words count there, for most
    # overloads pass.
    if status == 429:
        return "request too large" in message.lower()
    return status == 500 and _has(_PLAINLY_TOO_LARGE, message)


def _is_quota(text: str) -> bool:
    """Whether it is the account and not the minute: on free tiers both speak of quotas and billing."""
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
    return clean if len(clean) <= MOST_WORDS else clean[: MOST_WORDS - 1].rstrip() + "…"


def _is_page(text: str) -> bool:
    return text[:200].lstrip().lower().startswith(("<!doctype", "<html", "<?xml", "<head"))


def _has(pattern: str, text: str) -> bool:
    """Patterns are text and compiled when they are first needed: an answer that is fine needs none."""
    return re.search(pattern, text, re.IGNORECASE) is not None


def _text(response: Response) -> str:
    return response.body[:_LOOKED_AT].decode("utf-8", "replace")


def _message(text: str) -> str:
    """The sentence inside the JSON that most providers wrap it in."""
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
            # {"error": {"message": …}} and {"error": "…"}: one step further in either way.
            value = found
        if isinstance(value, str):
            return value
    return text


def wait_asked_for(response: Response, now: float) -> float:
    """How many seconds the server asks to be left alone; 0 when it does not say, or says nonsense.

    `now` is Unix time.
    """
    headers = response.headers
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return min(milliseconds / 1000, LONGEST_WAIT)
    said = headers.get("retry-after", "").strip()
    seconds = _number(said)
    if seconds is None and said:
        seconds = _until(said, headers, now)
    if seconds is None:
        # Google says it in the body: {"@type": "…RetryInfo", "retryDelay": "34s"}
        delay = re.search(
            r'"retryDelay"\s{0,9}:\s{0,9}"([0-9]{1,9}(?:\.[0-9]{1,9})?)s"', _text(response)
        )
        seconds = float(delay[1]) if delay else 0.0
    return min(max(seconds, 0.0), LONGEST_WAIT)


def _number(text: str) -> float | None:
    found = re.fullmatch(r"[0-9]{1,30}(?:\.[0-9]{0,30})?", text.strip())
    return float(found[0]) if found else None


def _until(text: str, headers: Mapping[str, str], now: float) -> float | None:
    """The seconds until an HTTP date, by the server's own clock when it shows it."""
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
