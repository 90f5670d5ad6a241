"""The write gate: decide whether a text is worth keeping as memory.

Short notes in plain words are kept. Refused are empty and overlong texts, duplicates, secrets and
redaction masks, recalled memory, and the output of tools: JSON, stack traces, logs, diffs, web
pages, raw conversations. All patterns run in linear time."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

from clawmark.text.secrets.redact import Redactor
from clawmark.text.untrusted.invisible_characters import has_hidden
from clawmark.text.untrusted.origin_labels import COMMENT_START
from clawmark.text.untrusted.recalled_blocks import has_recalled
from clawmark.text.write_check import FileText, check_write

LONGEST = 2000
"""Characters of one entry."""
MOST_A_DAY = 50
"""Entries that one session may add to the log of one day."""
LONGEST_FILE = 20_000
"""Characters of MEMORY.md: the part of it that a session is shown."""


class Refusal(NamedTuple):
    """Why a text is not kept: a code for programs, a sentence, and the next step."""

    reason: str
    message: str
    action: str


FORGOTTEN = Refusal(
    "forgotten",
    "The user had this forgotten.",
    "Leave it out. The user can write it again: clawmark remember TEXT.",
)
"""For a text that an agent, an import or a program would bring back."""


def refuse(
    text: str,
    *,
    target: FileText,
    others: tuple[FileText, ...] = (),
    entries_today: int = 0,
    redactor: Redactor | None = None,
) -> Refusal | None:
    """Return why this text must not be added to `target`, or None.

    It must not repeat `target` or `others`. With a `redactor`, a text with a secret is refused;
    callers without one remove secrets themselves."""
    return (
        _refuse_form(text)
        or _refuse_mask_or_duplicate(text, (target, *others))
        or _refuse_hidden(text)
        or _refuse_secret(text, redactor)
        or _refuse_noise(text)
        or _refuse_budget(text, target, entries_today)
    )


def _refuse_form(text: str) -> Refusal | None:
    lines = [line for line in text.split("\n") if line.strip()]
    if not any(map(str.isalnum, text)):
        message = "There is nothing to keep: the text is empty."
        return Refusal("empty", message, "Say what should be remembered.")
    if all(re.match(r"\s*#{1,6}\s", line) for line in lines):
        action = "Write the fact below it, without the heading."
        return Refusal("empty", "A heading alone says nothing.", action)
    if len(text) > LONGEST:
        message = f"The entry has {len(text):,} characters; {LONGEST:,} are taken."
        action = "Keep what matters in a few sentences, or make several entries."
        return Refusal("too-long", message, action)
    if has_recalled(text):
        message = "The text holds recalled memory, which is already kept."
        return Refusal("recalled", message, "Write only what is new, in your own words.")
    return None


def _refuse_mask_or_duplicate(text: str, files: tuple[FileText, ...]) -> Refusal | None:
    problem = check_write(text, files=files, foreign_masks=True)
    return None if problem is None else Refusal(problem.reason, problem.message, problem.hint)


def _refuse_hidden(text: str) -> Refusal | None:
    if COMMENT_START not in text and not has_hidden(text):
        return None
    message = "The text holds invisible characters, or a label that only the memory itself writes."
    return Refusal("hidden", message, "Write it again in plain text.")


def _refuse_secret(text: str, redactor: Redactor | None) -> Refusal | None:
    kind = redactor.kind_in(text) if redactor is not None else ""
    if not kind:
        return None
    message = (
        f"The text contains what looks like a secret ({kind}), and memory files are plain text."
    )
    return Refusal("secret", message, "Leave the secret out; say where it can be found instead.")


def _refuse_budget(text: str, target: FileText, entries_today: int) -> Refusal | None:
    if target.path == "MEMORY.md" and len(target.text) + len(text) > LONGEST_FILE:
        message = (
            f"MEMORY.md would grow beyond {LONGEST_FILE:,} "
            f"characters, more than a session sees of it."
        )
        return Refusal("file-full", message, "Add it to the log, or shorten MEMORY.md first.")
    if entries_today >= MOST_A_DAY:
        message = (
            f"This session has added {entries_today} entries today, and {MOST_A_DAY} is the most."
        )
        action = "Keep only what matters most; tomorrow there is room again."
        return Refusal("session-full", message, action)
    return None


# --- Output of tools ---


def _lines(pattern: str, at_least: int = 1) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.IGNORECASE | re.MULTILINE)

    def is_met(text: str) -> bool:
        found = compiled.finditer(text)
        return all(next(found, None) for _ in range(at_least))

    return is_met


def _is_json(text: str) -> bool:
    """Check for a JSON document, complete or truncated; not a link or a task box."""
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
