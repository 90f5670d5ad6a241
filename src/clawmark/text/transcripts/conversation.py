"""What a passage states, as opposed to what was only asked in it.

Takes the text of a passage; gives the part of it that states something. In a conversation, a
question that got no answer says nothing about its subject, however many of a query's words it has;
neither does the reply that promises to look. Text that is not a conversation is returned as it is.

Known limit: replies without an answer are recognised in English only. In other languages every
question counts as answered, unless the reply is a question itself."""

from __future__ import annotations

import re
from typing import NamedTuple

USERS = frozenset(("user", "human"))
"""The labels of the person whose memory this is."""
LONGEST_EMPTY_REPLY = 240
"""Characters; a longer reply has something to say."""

_LABEL = re.compile(
    r"^[ \t]*(?:[-*>][ \t]+)?(?:\*\*)?([^\W\d_][\w.' -]{0,30}?)(?:\*\*)?(?: "
    r"\([^()\n]{1,40}\))?:(?:\*\*)?(?:[ \t]+|$)",
    re.MULTILINE,
)
_SENTENCE_END = re.compile(r"(?<=[.!?…])[\"')\]]*\s+|(?<=[。！？؟])|\n+")
_QUESTION_ENDS = ("?", "？", "؟")
_STATEMENT_ENDS = (".", "!", "。", "！")
_QUESTION_STARTS = (
    " am any are aren't can can't could couldn't did didn't do does doesn't don't had has have "
    "how is isn't "
    "should shouldn't was wasn't were weren't what what's when where which who who's whom whose "
    "why will would "
    "wouldn't "
)
_NO_ANSWER = re.compile(
    r"\b(?:do not|don't|did not|didn't|does not|doesn't|can not|cannot|can't|could "
    r"not|couldn't|have not|haven't|am not|"
    r"i'm not|unable to|not able to)\b"
    r".{0,30}\b(?:know|have|find|found|see|remember|recall|sure|access|locate|answer|tell|certain)\b"
    r"|\bnot (?:sure|certain|found)\b|\bnothing (?:about|on|found)\b"
    r"|\bno (?:idea|clue|record|mention|memory|information|trace|answer)\b"
    r"|\blet me (?:check|look|see|find|search|get back|think)\b"
    r"|\b(?:i will|i'll|we will|we'll|going to|need to|have to) (?:check|look|find out|get "
    r"back|come back|search|see|ask)\b"
    r"|\b(?:one moment|hang on|hold on|sorry(?! (?:to|about|for|that)))\b",
    re.IGNORECASE,
)
_NOTE_HEADER = re.compile(
    r"^(?:# Session: \d{4}-\d\d-\d\d [^\n]*|- \*\*(?:Session Key|Session "
    r"ID|Source|Reason|Transcript)\*\*:[^\n]*"
    r"|## (?:Conversation Summary|Last messages)[ \t]*)$",
    re.MULTILINE,
)


class Turn(NamedTuple):
    """What one speaker says before the next one speaks; `speaker` is in lower case."""

    speaker: str
    text: str


class Stated(NamedTuple):
    """The part of a passage that states something."""

    text: str
    share: float
    """How much of the passage that is, from 0 to 1."""
    by_user: tuple[str, ...] = ()
    """The sentences in which the user states something, in a conversation with an assistant."""
    asked: str = ""
    """Questions that got no answer, and the replies to them."""


def is_conversation(text: str) -> bool:
    """Whether at least two lines begin with a speaker's label, or the first one with a user's.

    A text without a question or a user is not looked at.
    """
    if "?" not in text:
        lowered = text.lower()
        asks = not text.isascii() and any(mark in text for mark in _QUESTION_ENDS)
        if not asks and not any(name in lowered for name in USERS):
            return False
    first = _LABEL.search(text)
    if first is None:
        return False
    return (first[1].lower() in USERS and not text[: first.start()].strip()) or _LABEL.search(
        text, first.end()
    ) is not None


def turns_of(text: str) -> list[Turn]:
    """The turns of a conversation, in order; what comes before the first label is left out."""
    return [turn for turn, _ in _labelled_turns(text)]


def _labelled_turns(text: str) -> list[tuple[Turn, str]]:
    """The turns of a conversation, each with its part of the text, label included."""
    labels = list(_LABEL.finditer(text))
    ends = [label.start() for label in labels[1:]] + [len(text)]
    return [
        (Turn(label[1].lower(), text[label.end() : end].strip()), text[label.start() : end].strip())
        for label, end in zip(labels, ends, strict=False)
    ]


def stated(text: str) -> Stated:
    """What a passage states: all of it, or a conversation without the questions that got no answer."""
    if not is_conversation(text):
        return Stated(text, 1.0)
    turns = _labelled_turns(text)
    # A passage that is cut out of a conversation begins with the end of a turn.
    first = _LABEL.search(text)
    before = text[: first.start()].strip() if first else ""
    kept, asked = [before] if before else [], list[str]()
    by_user: list[str] = []
    length = stated_length = len(before)
    number = 0
    while number < len(turns):
        turn, whole = turns[number]
        reply, whole_reply = turns[number + 1] if number + 1 < len(turns) else (None, "")
        length += len(turn.text)
        number += 1
        if reply is not None and is_unanswered(turn, reply):
            asked += [whole, whole_reply]
            length += len(reply.text)
            number += 1
            continue
        if (
            turn.speaker in USERS
            and (reply is None or reply.speaker == turn.speaker)
            and only_asks(turn.text)
        ):
            asked.append(whole)
            continue
        kept.append(whole)
        stated_length += len(turn.text)
        if turn.speaker in USERS:
            by_user += statements(turn.text)
    return Stated(
        text="\n".join(kept) if asked else text,
        share=stated_length / length if length else 1.0,
        by_user=tuple(by_user),
        asked="\n".join(asked),
    )


def is_unanswered(turn: Turn, reply: Turn) -> bool:
    """Whether a turn asks something and the reply to it does not say it.

    What a user writes without ending it as a sentence ("log retention cost") asks when the reply
    only promises to look."""
    if reply.speaker == turn.speaker or len(reply.text) > LONGEST_EMPTY_REPLY:
        return False
    sentences = [sentence for sentence in _SENTENCE_END.split(reply.text) if sentence.strip()]
    defers = [_NO_ANSWER.search(sentence.replace("’", "'")) is not None for sentence in sentences]
    is_empty = all(
        late or is_question(sentence) for late, sentence in zip(defers, sentences, strict=True)
    )
    is_fragment = turn.speaker in USERS and not turn.text.endswith(_STATEMENT_ENDS)
    return is_empty and (is_question(turn.text) or (is_fragment and any(defers)))


def is_question(text: str) -> bool:
    """Whether a text asks: it ends with a question mark, or begins with a question word and does
    not end as a statement.
    """
    text = text.strip(" \n\"')*_")
    first = text.split(maxsplit=1)[0].lower().replace("’", "'") if text else ""
    return text.endswith(_QUESTION_ENDS) or (
        f" {first} " in _QUESTION_STARTS and not text.endswith(_STATEMENT_ENDS)
    )


def only_asks(text: str) -> bool:
    """Whether every sentence of a text is a question."""
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()]
    return bool(sentences) and all(is_question(sentence) for sentence in sentences)


def statements(text: str) -> list[str]:
    """The sentences of a text that are not questions and have more than a few letters."""
    sentences = [sentence.strip() for sentence in _SENTENCE_END.split(text)]
    return [
        sentence
        for sentence in sentences
        if len(sentence) > 15 and not sentence.endswith(_QUESTION_ENDS)
    ]


def without_note_header(text: str) -> str:
    """A session note without the lines that say where it comes from; other text is returned as it
    is.
    """
    return _NOTE_HEADER.sub("", text) if "- **Session " in text or "# Session: 2" in text else text


def without_note_title(heading: str) -> str:
    """The headings above a passage, nothing in the place of those that every session note has."""
    return "" if re.match(r"Session: \d{4}-\d\d-\d\d ", heading) else heading
