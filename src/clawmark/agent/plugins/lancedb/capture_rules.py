"""Decide which sentences of a user's message are worth keeping.

These are preferences, decisions, contacts and facts. Rules decide, not a model: they take
milliseconds and send nothing to a service. They are made for English, with the most frequent
phrases in Czech, Chinese, Japanese and Korean; statements in other languages are not captured.
Missing a statement is better than keeping chatter, so what is hedged, asked, requested or only
true today is left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from clawmark.agent.plugins.lancedb.capture_patterns import (
    ASKS,
    BOLD,
    CJK,
    CODE_BLOCK,
    CODE_LINE,
    COPULA,
    DECISION,
    DEPENDENT,
    EMOJI,
    ENTITY,
    FACT,
    HEDGED,
    LEAD_IN,
    LIST_LINE,
    LIST_MARK,
    OTHER,
    OUTPUT,
    POINTS_ELSEWHERE,
    PREFERENCE,
    QUOTED,
    REMEMBER,
    REQUEST,
    RULES,
    SECRET,
    SENTENCE_END,
    TRANSIENT,
)
from clawmark.text.secrets.redact import Redactor, has_mask
from clawmark.text.transcripts.envelopes import is_machine_made, strip_channel, strip_machine
from clawmark.text.untrusted.injection_flags import flags_of
from clawmark.text.untrusted.recalled_blocks import strip_recalled

SHORTEST, SHORTEST_CJK = 10, 4
MOST_A_TURN = 3
MOST_EMOJI = 3

IMPORTANCE = {PREFERENCE: 0.7, DECISION: 0.8, ENTITY: 0.8, FACT: 0.7, OTHER: 0.7}
ASKED_FOR = 0.9
"""The importance of what the user asked to remember."""


class Statement(NamedTuple):
    """A sentence to keep."""

    text: str
    category: str
    importance: float


def statements(
    message: str,
    *,
    redactor: Redactor,
    longest: int = 500,
    triggers: Sequence[str] = (),
) -> list[Statement]:
    """Return what a message of the user states that is worth keeping, in order.

    A message with more than `longest` characters was pasted and is skipped. A sentence with one of
    the `triggers` is always kept, unless it has a secret."""
    text = user_words(message)
    if len(text) > longest or _is_pasted(text):
        return []
    found = []
    # Secrets are masked in the whole message, because a line break may separate one from its name.
    for sentence in sentences(redactor.clean(text)):
        statement = _statement(sentence, triggers)
        if statement is not None:
            found.append(statement)
    return found


def user_words(message: str) -> str:
    """Return a message without recalled memory, what hosts wrap around it, and code blocks."""
    text = strip_channel(strip_recalled(message)).strip()
    if is_machine_made(text):
        return ""
    text = CODE_BLOCK.sub("\n", strip_machine(text))
    return "\n".join(line for line in text.split("\n") if not QUOTED.match(line)).strip()


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; one that starts with a pronoun joins the previous one."""
    last = ""
    for line in text.split("\n"):
        for part in SENTENCE_END.split(LIST_MARK.sub("", line.strip())):
            sentence = " ".join(part.split())
            if not sentence:
                continue
            if last and DEPENDENT.match(sentence) and not _is_question(sentence):
                last = f"{last} {sentence}"
                continue
            if last:
                yield last
            last = sentence
    if last:
        yield last


def _statement(sentence: str, triggers: Sequence[str]) -> Statement | None:
    sentence = _capitalised(LEAD_IN.sub("", sentence, count=1))
    lowered = sentence.casefold()
    is_triggered = any(trigger.casefold() in lowered for trigger in triggers)
    if is_triggered and not _is_unsafe(sentence):
        return Statement(sentence, _category(sentence) or OTHER, ASKED_FOR)
    if _is_too_short(sentence) or _is_unsafe(sentence) or _is_question(sentence):
        return None
    asked = REMEMBER.match(sentence)
    if asked is not None:
        rest = sentence[asked.end() :].strip()
        if _is_too_short(rest) or _is_question(rest):
            return None
        kept = _capitalised(rest)
        return Statement(kept, _category(kept) or _plain_category(kept), ASKED_FOR)
    if HEDGED.search(sentence) or REQUEST.match(sentence):
        return None
    category = _category(sentence)
    if not category or (category in (FACT, PREFERENCE) and TRANSIENT.search(sentence)):
        return None
    return Statement(sentence, category, IMPORTANCE[category])


def _category(sentence: str) -> str:
    """Return the category of the first rule that the sentence meets; empty if there is none."""
    for category, pattern in RULES:
        found = pattern.search(sentence)
        if found and not POINTS_ELSEWHERE.match(sentence, found.end()):
            return category
    return ""


def _plain_category(text: str) -> str:
    """Return the category of what the user asked to remember and no rule recognises."""
    return FACT if COPULA.search(text) else OTHER


def _is_unsafe(sentence: str) -> bool:
    """Check for a secret, also one without a shape, and for text that gives orders to a model."""
    return has_mask(sentence) or bool(SECRET.search(sentence)) or bool(flags_of(sentence))


def _is_pasted(text: str) -> bool:
    """Check for text that the user probably did not write: code, output, markup, summaries."""
    lines = [line for line in text.split("\n") if line.strip()]
    code = sum(bool(CODE_LINE.search(line)) for line in lines)
    return (
        bool(OUTPUT.search(text))
        or (text.startswith("<") and "</" in text)
        or (text[:1] in "{[" and text.rstrip()[-1:] in "}]")
        or bool(BOLD.search(text) and LIST_LINE.search(text))
        or code * 2 > len(lines)
        or len(EMOJI.findall(text)) > MOST_EMOJI
    )


def _capitalised(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _is_too_short(sentence: str) -> bool:
    return len(sentence) < (SHORTEST_CJK if CJK.search(sentence) else SHORTEST)


def _is_question(sentence: str) -> bool:
    return sentence.rstrip("\"')]*_ ").endswith(("?", "？")) or bool(ASKS.match(sentence))
