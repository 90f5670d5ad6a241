"""The write gate: whether a text is worth keeping as memory, and if not, why, and what to do about
it.

In: a text, and what the files it could go to hold. Out: a `Refusal`, or None. Kept are short notes
in somebody's own words. Refused are nothing at all, more than fits, what is already there, secrets
and the masks of secrets, text that was recalled and not learned, and what tools print: JSON, stack
traces, logs, diffs, pages, raw conversations. Memories that keep everything end up holding little
else. Nothing here reads or writes; every pattern is linear."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import NamedTuple

from clawmark.model.values import citation
from clawmark.text.secrets.redact import Redactor, has_mask
from clawmark.text.untrusted.invisible_characters import has_hidden
from clawmark.text.untrusted.origin_labels import COMMENT_START, without_comments
from clawmark.text.untrusted.recalled_blocks import has_recalled

LONGEST = 2000
"""Characters of one entry."""
MOST_A_DAY = 50
"""Entries that one session adds to one day's log."""
LONGEST_FILE = 20_000
"""Characters of MEMORY.md: what a session sees of it at once."""


class Refusal(NamedTuple):
    """Why a text is not kept: a word for programs, a sentence, and the next step."""

    reason: str
    message: str
    action: str


class Held(NamedTuple):
    """A file as it is now; an absent one holds nothing."""

    path: str
    text: str


def refuse(
    text: str,
    *,
    target: Held,
    others: tuple[Held, ...] = (),
    entries_today: int = 0,
    redactor: Redactor | None = None,
) -> Refusal | None:
    """Why this text is not added to `target`, or None when it may be; it must not repeat `others`
    either.

    With a `redactor`, a text with a secret is refused. Callers without one replace secrets
    themselves."""
    return (
        _refuse_form(text)
        or _refuse_secret(text, redactor)
        or _refuse_noise(text)
        or _refuse_repetition(text, (target, *others))
        or _refuse_budget(text, target, entries_today)
    )


# --- what it looks like ------------------------------------------------------------------------------------------


def _refuse_form(text: str) -> Refusal | None:
    lines = [line for line in text.split("\n") if line.strip()]
    if not any(map(str.isalnum, text)):
        return Refusal(
            "empty",
            "There is nothing to keep: the text is empty.",
            "Say what should be remembered.",
        )
    if all(re.match(r"\s*#{1,6}\s", line) for line in lines):
        return Refusal(
            "empty",
            "A heading alone says nothing.",
            "Write the fact below it, without the heading.",
        )
    if len(text) > LONGEST:
        said = f"The entry has {len(text):,} characters; {LONGEST:,} are taken."
        return Refusal(
            "too-long", said, "Keep what matters in a few sentences, or make several entries."
        )
    if has_recalled(text):
        said = "The text holds recalled memory, which is already kept."
        return Refusal("recalled", said, "Write only what is new, in your own words.")
    if has_mask(text) or _has_foreign_mask(text):
        said = "The text contains a redaction mask, which would be kept in place of the real value."
        return Refusal(
            "mask", said, "Leave the masked value out; say where it can be found instead."
        )
    if COMMENT_START in text or has_hidden(text):
        said = "The text holds invisible characters, or a label that only the memory itself writes."
        return Refusal("hidden", said, "Write it again in plain text.")
    return None


_EMPHASIS = re.compile(r"\*{3}[^\s*][^*\n]{0,500}\*{3}|^[ \t]*(?:\*[ \t]?){3,200}$", re.MULTILINE)
_MASKS = re.compile(
    r"\*{3,}|\[redacted\]|<redacted>|\[masked\]|\[secret\]|\u2022{3,}|\u25cf{3,}"
    r"|\b(?:sk|ghp|gsk|xox[a-z]|pplx|npm)[-_][\w-]{0,8}(?:\u2026|\.\.\.)[\w-]{2,8}\b",
    re.IGNORECASE,
)


def _has_foreign_mask(text: str) -> bool:
    """Masks that others write: stars (which are also emphasis and rules), dots, and keys with their
    middle cut out.
    """
    return _MASKS.search(_EMPHASIS.sub("", text)) is not None


def _refuse_secret(text: str, redactor: Redactor | None) -> Refusal | None:
    kind = redactor.kind_in(text) if redactor is not None else ""
    if not kind:
        return None
    said = f"The text contains what looks like a secret ({kind}), and memory files are plain text."
    return Refusal("secret", said, "Leave the secret out; say where it can be found instead.")


# --- what a tool printed -----------------------------------------------------------------------------------------


def _lines(pattern: str, at_least: int = 1) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE | re.MULTILINE)

    def is_met(text: str) -> bool:
        found = compiled.finditer(text)
        return all(next(found, None) for _ in range(at_least))

    return is_met


def _is_json(text: str) -> bool:
    """A JSON document, whole or cut off; a link or a task box at the beginning of a note is none."""
    body = re.sub(r"\A```\w{0,10}\n|\n```\Z", "", text.strip()).strip()
    if body[:1] not in ("{", "["):
        return False
    try:
        return isinstance(json.loads(body), dict | list)
    except (ValueError, RecursionError):
        return body.count('":') >= 2 or body.startswith(('{"', '[{"'))


def _is_markup(text: str) -> bool:
    return text.lstrip().startswith("<") and "</" in text


_NOISE: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("JSON", _is_json),
    (
        "a stack trace",
        _lines(
            r'^traceback \(most recent|^\s{1,40}file "[^"\n]{1,300}", line [0-9]|^goroutine [0-9]'
        ),
    ),
    (
        "a stack trace",
        _lines(r"^\s{1,40}at [^\n]{1,200}(?:\(|:)[^\n]{0,200}[0-9]\)?$|^exception in thread", 2),
    ),
    (
        "log lines",
        _lines(
            r"^\[?[0-9]{4}-[0-9]{2}-[0-9]{2}[t "
            r"][0-9]{2}:[0-9]{2}:[0-9]|^\[?(?:debug|info|warn|error)\b",
            2,
        ),
    ),
    ("a diff", _lines(r"^diff --git |^@@ -[0-9]|^index [0-9a-f]{7,}\.\.")),
    ("shell output", _lines(r"^(?:\$|>>>|\w{1,40}@[\w.-]{1,60}:[^\n]{0,80}[$#]) ", 2)),
    (
        "a raw conversation",
        _lines(r"^[-*> ]{0,6}\**(?:user|assistant|human|system|tool)\**\s?:", 2),
    ),
    (
        "a tool call",
        _lines(
            r"</?(?:tool_call|tool_use|tool_result|function_calls?|invoke)\b|\"tool_?call_?id\""
        ),
    ),
    ("a message envelope", _lines(r"\(untrusted metadata\)|^(?:message-id|content-type): ")),
    ("markup", _is_markup),
    ("code", _lines(r"\A\s*(?:```|~~~)")),
    ("data, not words", _lines(r"[!-~]{300}")),
    ("a sign between programs", _lines(r"\A\s*(?:no_reply|heartbeat_ok)\s*\Z")),
)


def _refuse_noise(text: str) -> Refusal | None:
    what = next((what for what, is_met in _NOISE if is_met(text)), "")
    if not what:
        return None
    return Refusal(
        "tool-noise",
        f"This looks like {what}.",
        "Write in a sentence or two what is worth knowing about it.",
    )


# --- what is there already ---------------------------------------------------------------------------------------

_START = re.compile(r"(?:[-*+]|[0-9]{1,4}[.)])\s|#")
_BULLETS = re.compile(r"\A(?:(?:[-*+]|[0-9]{1,4}[.)]|#{1,6})\s+(?:\[[ xX]\]\s+)?)+")
_BLANK = re.compile(r"\n[ \t]*\n")


def _refuse_repetition(text: str, files: tuple[Held, ...]) -> Refusal | None:
    # An entry of several paragraphs stands in a file as several; one without is compared as a
    # whole.
    wanted = [part for part in map(_normal, _BLANK.split(text)) if part]
    for held in files:
        places: dict[str, tuple[int, int]] = {}
        for first, last, entry in _entries(held.text):
            places.setdefault(_normal(entry), (first, last))
        found = [places[part] for part in wanted if part in places]
        if wanted and len(found) == len(wanted):
            where = citation(held.path, min(found)[0], max(found)[1])
            return Refusal(
                "duplicate", f"It is already there: {where}.", "Nothing needs to be done."
            )
    return None


def _entries(text: str) -> Iterator[tuple[int, int, str]]:
    """The items and paragraphs of a file with their first and last line."""
    entry: list[str] = []
    first = 0
    for number, line in enumerate([*without_comments(text).split("\n"), ""], 1):
        if entry and (not line.strip() or _START.match(line)):
            yield first, number - 1, "\n".join(entry)
            entry = []
        if line.strip():
            first = first if entry else number
            entry.append(line)


def _normal(text: str) -> str:
    """A text without what makes no difference: case, width, blanks, bullets, the heading's sign and
    the full stop.
    """
    plain = unicodedata.normalize("NFKC", _BULLETS.sub("", text.strip())).casefold()
    return " ".join(plain.split()).rstrip(".!;,\u3002")


def _refuse_budget(text: str, target: Held, entries_today: int) -> Refusal | None:
    if target.path == "MEMORY.md" and len(target.text) + len(text) > LONGEST_FILE:
        said = (
            f"MEMORY.md would grow beyond {LONGEST_FILE:,} "
            f"characters, more than a session sees of it."
        )
        return Refusal("file-full", said, "Add it to the log, or shorten MEMORY.md first.")
    if entries_today >= MOST_A_DAY:
        said = (
            f"This session has added {entries_today} entries today, and {MOST_A_DAY} is the most."
        )
        return Refusal(
            "session-full", said, "Keep only what matters most; tomorrow there is room again."
        )
    return None
