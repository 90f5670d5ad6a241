"""Select the messages of a conversation that are worth a session note.

A note records statements. A turn (messages of the user with the answers to them) is kept if the
user states something in it, or if the assistant does and the conversation is more than one question
and its answer. Sentences of the assistant that only repeat recalled memory are removed, so that the
memory does not feed on itself; messages of the user are never changed."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from clawmark.agent.prompt.recall_rule import small_talk
from clawmark.text.keywords.stopwords import remove_stop_words
from clawmark.text.transcripts.records import TranscriptMessage

REPEATED_SHARE = 0.8
"""A sentence repeats recalled text that contains this share of its meaningful words."""
FEWEST_WORDS = 2
"""Meaningful words of a statement; in a sentence of several words one is enough, as in "Let us take
PostgreSQL".
"""

_CITATION = re.compile(
    r"\(?(?:sources?\s*:\s*)?[\w./-]{1,200}\.(?:md|jsonl)(?:#L[0-9]+(?:-L[0-9]+)?)?\)?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W_]+")
_SENTENCE = re.compile(
    r"[^\n.!?。！？؟]*(?:[.!?](?=\S)[^\n.!?。！？؟]*)*[.!?。！？؟]*[\"')\]*_]*[ \t]*\n*"
)
_ASKS = re.compile(
    r"(?:what|which|who|whom|whose|why)\b"
    r"|(?:when|where|how)\s+(?:do|does|did|is|are|was|were|will|can|could|should|would|has|have"
    r"|many|much|long|often)\b"
    r"|(?:do|does|did|is|are|was|were|can|could|should|would|will|has|have)\s+"
    r"(?:i|you|we|they|he|she|it|the|there|this|that)\b"
    r"|(?:wer|wen|wem|warum|wieso|weshalb|welche[mnrs]?|was|wann|wo|wie)\s"
    r"|(?:qui|que|quoi|quel|quelle|quels|quelles|pourquoi|combien|comment)\s|est-ce\b",
    re.IGNORECASE,
)
_REQUESTS = """
    add analyse analyze answer ask build calculate change check clean commit compare compute
    continue convert correct count create delete describe draft echo edit explain extract find fix
    format generate give help implement improve install list look make merge move open output ping
    print proofread read refactor remove rename repeat reply review rewrite run say search send show
    solve sort summarise summarize tell test translate update write
    erkläre fasse finde fixe gib hilf liste mach schreib schreibe suche teste übersetze zeig zeige
    ajoute corrige crée donne écris explique liste montre résume traduis trouve
"""
_POLITE = re.compile(r"(?:(?:please|kindly|now|then|ok|okay|and|bitte)\b[\s,]*)+", re.IGNORECASE)
_NO_ANSWER = re.compile(
    r"\b(?:do|does|did|could|can|was|were|have|has|is|are)(?: ?n[o'\u2019]t|not)\s+(?:\w+\s+)?"
    r"(?:know|find|found|have|see|recall|remember|sure|able|access|answer|help|tell)\b"
    r"|\bunable to\b|\bwelcome\b|\b(?:happy|glad|here) to help\b|\blet me know\b"
    r"|\bno (?:information|idea|record|mention|memory|memories|notes?|entries|results?|answer)\b"
    r"|\bnothing (?:about|in|was found|found)\b|\bnot (?:find|found|know)\b"
    r"|weiß (?:ich )?(?:\w+ )?nicht|nichts gefunden|keine (?:informationen|angaben|notiz)"
    r"|ne sais pas|rien trouvé|aucune information|no lo sé|no encontr|ninguna información"
    r"|不知道|没有找到|找不到|没有相关|わかりません|分かりません|見つかりません|모르",
    re.IGNORECASE,
)


def note_content(
    messages: Sequence[TranscriptMessage],
    recalled: str = "",
    *,
    used_tools: bool = False,
    needs_answer: bool = False,
) -> list[TranscriptMessage]:
    """Return the messages that a note quotes; empty if the conversation is not worth a note.

    `recalled` is what came from the memory. With `used_tools`, the assistant worked with other
    tools, and even a single request with its answer is more than a question. With `needs_answer`, a
    conversation without an answer has failed, and nothing of it is kept.
    """
    if needs_answer and not any(message.role == "assistant" for message in messages):
        return []
    questions = sum(message.role == "user" for message in messages)
    known = frozenset(_words(recalled))
    kept: list[TranscriptMessage] = []
    for turn in _turns(messages):
        asked = [message for message in turn if message.role == "user"]
        answers = list(filter(None, (_without_known(one, known) for one in turn[len(asked) :])))
        evidence = [*asked, *answers] if questions > 1 or used_tools else asked
        if asked and any(map(_states, evidence)):
            kept += [*asked, *answers]
    return kept


def _turns(messages: Sequence[TranscriptMessage]) -> Iterator[list[TranscriptMessage]]:
    """Yield messages of the user with the answers to them."""
    turn: list[TranscriptMessage] = []
    for message in messages:
        if turn and message.role == "user" and turn[-1].role == "assistant":
            yield turn
            turn = []
        turn.append(message)
    if turn:
        yield turn


def _without_known(message: TranscriptMessage, known: frozenset[str]) -> TranscriptMessage | None:
    """Remove the sentences that only repeat what is known; None if nothing is left."""
    sentences = _SENTENCE.findall(message.text)
    new = [sentence for sentence in sentences if not _repeats(sentence, known)]
    if len(new) == len(sentences):
        return message
    text = "".join(new).strip()
    return message._replace(text=text) if any(map(str.isalnum, text)) else None


def _repeats(sentence: str, known: frozenset[str]) -> bool:
    plain = _CITATION.sub(" ", sentence)
    words = set(_meaningful(plain))
    if not words:
        return bool(known) and plain != sentence  # a citation alone
    return len(words & known) >= REPEATED_SHARE * len(words)


def _states(message: TranscriptMessage) -> bool:
    """Check whether a message states something: not only questions, requests and small talk."""
    sentences = map(str.strip, _SENTENCE.findall(message.text))
    return any(_is_statement(sentence, message.role) for sentence in sentences if sentence)


def _is_statement(sentence: str, role: str) -> bool:
    count = len(_meaningful(sentence))
    if count < (1 if len(_words(sentence)) >= 2 * FEWEST_WORDS else FEWEST_WORDS):
        return False
    if sentence.rstrip("\"')]*_ ").endswith(("?", "？", "؟")):
        return False
    if role == "assistant":
        return _NO_ANSWER.search(sentence) is None
    plain = _POLITE.sub("", sentence, count=1) if _POLITE.match(sentence) else sentence
    first = _WORD.search(plain.casefold())
    return _ASKS.match(plain) is None and (first is None or first[0] not in _REQUESTS.split())


def _meaningful(text: str) -> list[str]:
    return [word for word in remove_stop_words(_words(text)) if word not in small_talk()]


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
