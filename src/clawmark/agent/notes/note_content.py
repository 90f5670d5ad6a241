"""What of a conversation goes into its note: the messages, and what the memory gave, in; the
messages worth keeping out.

A note is for what was stated. An exchange (what the user says, with the answers to it) is kept when
the user states something in it, or when the agent does and the conversation is more than one
question and its answer. Sentences of the agent's that only repeat what the memory gave are left
out, or the memory would feed on itself; the user's own words stay as they are. Nothing here reads
or writes."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from clawmark.agent.prompt.recall_rule import small_talk
from clawmark.text.keywords.stopwords import remove_stop_words
from clawmark.text.transcripts.records import Said

REPEATED_SHARE = 0.8
"""From this share of its telling words on, a sentence repeats the recalled text that has them."""
FEWEST_WORDS = 2
"""Telling words of a statement; in a sentence of several words one is enough, as in "Let us take
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
    r"|(?:when|where|how)\s+(?:do|does|did|is|are|was|were|will|can|could|should|would|has|have|many|much|long|often)\b"
    r"|(?:do|does|did|is|are|was|were|can|could|should|would|will|has|have)\s+(?:i|you|we|they|he|she|it|the|there|this|that)\b"
    r"|(?:wer|wen|wem|warum|wieso|weshalb|welche[mnrs]?|was|wann|wo|wie)\s"
    r"|(?:qui|que|quoi|quel|quelle|quels|quelles|pourquoi|combien|comment)\s|est-ce\b",
    re.IGNORECASE,
)
_REQUESTS = """
    add analyse analyze answer ask build calculate change check clean commit compare compute continue convert correct count
    create delete describe draft echo edit explain extract find fix format generate give help implement improve
    install list look make merge move open output ping print proofread read refactor remove rename repeat reply review
    rewrite run say search send show solve sort summarise summarize tell test translate update write
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
    said: Sequence[Said],
    recalled: str = "",
    *,
    used_tools: bool = False,
    needs_answer: bool = False,
) -> list[Said]:
    """The messages that a note quotes, in order; empty when the conversation is not worth a note.

    `recalled` is what the memory provided for it; `used_tools` says whether the agent worked with
    tools other than the memory's, so that even one request with its answer is more than a question.
    With `needs_answer`, a conversation that was not answered has failed, and nothing of it is kept.
    """
    if needs_answer and not any(one.speaker == "assistant" for one in said):
        return []
    questions = sum(one.speaker == "user" for one in said)
    known = frozenset(_words(recalled))
    kept: list[Said] = []
    for exchange in _exchanges(said):
        asked = [one for one in exchange if one.speaker == "user"]
        answers = [
            one for one in (_fresh(one, known) for one in exchange[len(asked) :]) if one is not None
        ]
        counts = answers if questions > 1 or used_tools else []
        if asked and (any(_states(one) for one in asked) or any(_states(one) for one in counts)):
            kept += [*asked, *answers]
    return kept


def _exchanges(said: Sequence[Said]) -> Iterator[list[Said]]:
    """What the user says, with the answers to it."""
    exchange: list[Said] = []
    for one in said:
        if exchange and one.speaker == "user" and exchange[-1].speaker == "assistant":
            yield exchange
            exchange = []
        exchange.append(one)
    if exchange:
        yield exchange


def _fresh(said: Said, known: frozenset[str]) -> Said | None:
    """An answer without the sentences that only repeat what is known; None when nothing is left."""
    sentences = _SENTENCE.findall(said.text)
    fresh = [sentence for sentence in sentences if not _repeats(sentence, known)]
    if len(fresh) == len(sentences):
        return said
    text = "".join(fresh).strip()
    return said._replace(text=text) if any(map(str.isalnum, text)) else None


def _repeats(sentence: str, known: frozenset[str]) -> bool:
    plain = _CITATION.sub(" ", sentence)
    words = set(_telling(plain))
    if not words:
        return bool(known) and plain != sentence  # a citation alone
    return len(words & known) >= REPEATED_SHARE * len(words)


def _states(said: Said) -> bool:
    """Whether a message states something: a sentence that asks nothing, requests nothing, and is
    more than small talk.
    """
    sentences = map(str.strip, _SENTENCE.findall(said.text))
    return any(_is_statement(sentence, said.speaker) for sentence in sentences if sentence)


def _is_statement(sentence: str, speaker: str) -> bool:
    telling = len(_telling(sentence))
    if telling < (1 if len(_words(sentence)) >= 2 * FEWEST_WORDS else FEWEST_WORDS):
        return False
    if sentence.rstrip("\"')]*_ ").endswith(("?", "？", "؟")):
        return False
    if speaker == "assistant":
        return _NO_ANSWER.search(sentence) is None
    plain = _POLITE.sub("", sentence, count=1) if _POLITE.match(sentence) else sentence
    first = _WORD.search(plain.casefold())
    return _ASKS.match(plain) is None and (first is None or first[0] not in _REQUESTS.split())


def _telling(text: str) -> list[str]:
    return [word for word in remove_stop_words(_words(text)) if word not in small_talk()]


def _words(text: str) -> list[str]:
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())
