"""Cut sections into texts of many lengths, and keep only readable English."""

import random
import re
from collections.abc import Iterator

from training.gather.values import Section

LONGEST = 350
LONGEST_PARAGRAPH = 150
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z\"'(])")
_COMMON_WORDS = """
the a an of to in is it and or for on with that this as are be was at by from not if can you
i we he she they have has had will would do does what how when my your his her
"""
_COMMON = frozenset(_COMMON_WORDS.split())


def passages(section: Section, rng: random.Random) -> Iterator[str]:
    """Cut a section into sentences, paragraphs and groups of paragraphs, in a random mix."""
    waiting = [piece for each in section.paragraphs for piece in _pieces(each)]
    heading = section.heading if rng.random() < 0.4 else ""
    while waiting:
        size = rng.choices((0, 40, 90, 180, 320), weights=(3, 3, 5, 5, 2))[0]
        if size == 0:
            yield from _one_sentence(waiting.pop(0), rng)
            continue
        taken = [waiting.pop(0)]
        while waiting and _length(taken) + _length(waiting[:1]) <= size:
            taken.append(waiting.pop(0))
        text = ("\n" if rng.random() < 0.5 else " ").join(taken)
        yield shorten(f"{heading}: {text}" if heading else text)
        heading = ""


def sentences(text: str) -> list[str]:
    """Split a paragraph into sentences."""
    return [each.strip() for each in _SENTENCE_END.split(text) if each.strip()]


def shorten(text: str) -> str:
    """Cut a text after its last whole sentence within the longest allowed length."""
    words = text.split(" ")
    if len(words) <= LONGEST:
        return text
    cut = " ".join(words[:LONGEST])
    end = max(cut.rfind(". "), cut.rfind("? "), cut.rfind("! "))
    return cut[: end + 1] if end > len(cut) // 3 else cut


def is_english(text: str) -> bool:
    """Check that a text is words rather than code, numbers or another language."""
    words = re.findall(r"[A-Za-z][A-Za-z'-]*", text)
    letters = sum(len(word) for word in words)
    if len(words) < 2 or letters < 0.6 * len(text.replace(" ", "")):
        return False
    if len(words) < 8:
        return True
    common = sum(word.lower() in _COMMON for word in words)
    return common >= 0.1 * len(words)


def _pieces(paragraph: str) -> Iterator[str]:
    """Split a long paragraph between sentences into pieces of about a hundred words."""
    if paragraph.count(" ") <= LONGEST_PARAGRAPH:
        if paragraph:
            yield paragraph
        return
    piece: list[str] = []
    for sentence in sentences(paragraph):
        piece.append(sentence)
        if _length(piece) >= 100:
            yield " ".join(piece)
            piece = []
    if piece:
        yield " ".join(piece)


def _one_sentence(paragraph: str, rng: random.Random) -> Iterator[str]:
    found = sentences(paragraph)
    if found:
        yield shorten(rng.choice(found))


def _length(paragraphs: list[str]) -> int:
    return sum(each.count(" ") + 1 for each in paragraphs)
