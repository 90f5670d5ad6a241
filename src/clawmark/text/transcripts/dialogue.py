"""Separate what a dialogue states from what is only asked in it.

An unanswered question says nothing about its subject, even if it contains every word of a query;
neither does the reply that promises to look. Text that is not a dialogue is returned unchanged.

Known limit: replies without an answer are recognised in English only. In other languages every
question counts as answered, unless the reply is itself a question."""

import re
from typing import NamedTuple

USERS = frozenset(("user", "human"))
"""Labels of the user."""
LONGEST_EMPTY_REPLY = 240
"""Characters. A longer reply is never treated as an empty one."""

# Patterns are compiled on first use: every cold search imports this module.
_LABEL = (
    r"^[ \t]*(?:[-*>][ \t]+)?(?:\*\*)?([^\W\d_][\w.' -]{0,30}?)(?:\*\*)?(?: "
    r"\([^()\n]{1,40}\))?:(?:\*\*)?(?:[ \t]+|$)"
)
_SENTENCE_END = r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？؟])|\n+"
_QUESTION_ENDS = ("?", "？", "؟")
_STATEMENT_ENDS = (".", "!", "。", "！")
_QUESTION_STARTS = (
    " am any are aren't can can't could couldn't did didn't do does doesn't don't had has have "
    "how is isn't "
    "should shouldn't was wasn't were weren't what what's when where which who who's whom whose "
    "why will would "
    "wouldn't "
)
_NO_ANSWER = (
    r"\b(?:do not|don't|did not|didn't|does not|doesn't|can not|cannot|can't|could "
    r"not|couldn't|have not|haven't|am not|"
    r"i'm not|unable to|not able to)\b"
    r".{0,30}\b(?:know|have|find|found|see|remember|recall|sure|access|locate|answer|tell"
    r"|certain)\b"
    r"|\bnot (?:sure|certain|found)\b|\bnothing (?:about|on|found)\b"
    r"|\bno (?:idea|clue|record|mention|memory|information|trace|answer)\b"
    r"|\blet me (?:check|look|see|find|search|get back|think)\b"
    r"|\b(?:i will|i'll|we will|we'll|going to|need to|have to) (?:check|look|find out|get "
    r"back|come back|search|see|ask)\b"
    r"|\b(?:one moment|hang on|hold on|sorry(?! (?:to|about|for|that)))\b"
)
_NOTE_HEADER = (
    r"^(?:# Session: \d{4}-\d\d-\d\d [^\n]*|- \*\*(?:Session Key|Session "
    r"ID|Source|Reason|Transcript)\*\*:[^\n]*"
    r"|## (?:Conversation Summary|Last messages)[ \t]*)$"
)


class LabelledMessage(NamedTuple):
    """One message of a dialogue written as `Label: text`."""

    label: str
    """In lower case."""
    text: str
    source: str = ""
    """The message as it stands in the text, with its label."""


class Statements(NamedTuple):
    """The part of a passage that states something."""

    text: str
    share: float
    """Size relative to the passage, from 0 to 1."""
    by_user: tuple[str, ...] = ()
    """Sentences in which the user states something."""
    asked: str = ""
    """Unanswered questions and the replies to them."""


def is_dialogue(text: str) -> bool:
    """Check whether at least two lines start with a label, or the first line with a user's label.

    Text without a question or a user is never a dialogue.
    """
    if "?" not in text:
        asks = not text.isascii() and any(mark in text for mark in _QUESTION_ENDS)
        if not asks:
            lowered = text.lower()
            if "user" not in lowered and "human" not in lowered:
                return False
    labels = re.finditer(_LABEL, text, re.MULTILINE)
    first = next(labels, None)
    if first is None:
        return False
    begins_with_user = first[1].lower() in USERS and not text[: first.start()].strip()
    return begins_with_user or next(labels, None) is not None


def labelled_messages(text: str) -> list[LabelledMessage]:
    """Return the messages of a dialogue in order; text before the first label is ignored."""
    labels = list(re.finditer(_LABEL, text, re.MULTILINE))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    return [
        LabelledMessage(
            label=label[1].lower(),
            text=text[label.end() : end].strip(),
            source=text[label.start() : end].strip(),
        )
        for label, end in zip(labels, ends, strict=False)
    ]


def find_statements(text: str) -> Statements:
    """Return what a passage states: all of it, or a dialogue without its unanswered questions."""
    if not is_dialogue(text):
        return Statements(text, 1.0)
    messages = labelled_messages(text)
    # A passage cut out of a dialogue may begin with the end of a message.
    first = re.search(_LABEL, text, re.MULTILINE)
    before = text[: first.start()].strip() if first else ""
    kept, asked = [before] if before else [], list[str]()
    by_user: list[str] = []
    length = stated_length = len(before)
    number = 0
    while number < len(messages):
        message = messages[number]
        reply = messages[number + 1] if number + 1 < len(messages) else None
        length += len(message.text)
        number += 1
        if reply is not None and is_unanswered(message, reply):
            asked += [message.source, reply.source]
            length += len(reply.text)
            number += 1
            continue
        has_reply = reply is not None and reply.label != message.label
        if message.label in USERS and not has_reply and only_asks(message.text):
            asked.append(message.source)
            continue
        kept.append(message.source)
        stated_length += len(message.text)
        if message.label in USERS:
            by_user += statements(message.text)
    return Statements(
        text="\n".join(kept) if asked else text,
        share=stated_length / length if length else 1.0,
        by_user=tuple(by_user),
        asked="\n".join(asked),
    )


def is_unanswered(message: LabelledMessage, reply: LabelledMessage) -> bool:
    """Check whether a message asks something that the reply does not answer.

    A fragment by the user ("log retention cost") counts as a question if the reply only promises to
    look."""
    if reply.label == message.label or len(reply.text) > LONGEST_EMPTY_REPLY:
        return False
    sentences = [sentence for sentence in re.split(_SENTENCE_END, reply.text) if sentence.strip()]
    defers = [
        re.search(_NO_ANSWER, sentence.replace("’", "'"), re.IGNORECASE) is not None
        for sentence in sentences
    ]
    is_empty = all(
        late or is_question(sentence) for late, sentence in zip(defers, sentences, strict=True)
    )
    is_fragment = message.label in USERS and not message.text.endswith(_STATEMENT_ENDS)
    return is_empty and (is_question(message.text) or (is_fragment and any(defers)))


def is_question(text: str) -> bool:
    """Check whether a text ends with a question mark, or starts with a question word and does not
    end like a statement.
    """
    text = text.strip(" \n\"')*_")
    first = text.split(maxsplit=1)[0].lower().replace("’", "'") if text else ""
    return text.endswith(_QUESTION_ENDS) or (
        f" {first} " in _QUESTION_STARTS and not text.endswith(_STATEMENT_ENDS)
    )


def only_asks(text: str) -> bool:
    """Check whether every sentence of a text is a question."""
    sentences = [sentence for sentence in re.split(_SENTENCE_END, text) if sentence.strip()]
    return bool(sentences) and all(is_question(sentence) for sentence in sentences)


def statements(text: str) -> list[str]:
    """Return the sentences of a text that are not questions and longer than a few letters."""
    sentences = [sentence.strip() for sentence in re.split(_SENTENCE_END, text)]
    return [
        sentence
        for sentence in sentences
        if len(sentence) > 15 and not sentence.endswith(_QUESTION_ENDS)
    ]


def without_note_header(text: str) -> str:
    """Remove the header lines of a session note; other text is returned unchanged."""
    if "Session" not in text:
        return text
    if "- **Session " in text or "# Session: 2" in text:
        return re.sub(_NOTE_HEADER, "", text, flags=re.MULTILINE)
    return text


def without_note_title(heading: str) -> str:
    """Return the headings above a passage; empty for the title that every session note has."""
    if heading.startswith("Session: ") and re.match(r"Session: \d{4}-\d\d-\d\d ", heading):
        return ""
    return heading
