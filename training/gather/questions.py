"""Make short queries from headings and first sentences, by rules."""

import random
import re
from collections.abc import Iterator

from training.gather.passages import sentences
from training.gather.values import Section

_ABOUT = (
    "what is {}?",
    "What is {}?",
    "How does {} work?",
    "how do I use {}",
    "What do I need to know about {}?",
    "when should I use {}?",
    "{}",
    "explain {}",
    "where is {} described?",
    "Why would I need {}?",
    "{} example",
    "what did we say about {}?",
    "notes on {}",
)
_TASK = (
    "How do I {}?",
    "how to {}",
    "How can I {}?",
    "what is the way to {}?",
    "Can I {}?",
    "{}",
    "is there something to {}?",
    "need to {}",
)
_VERB_WORDS = """
return get set create add remove delete update list read write compute calculate find check
convert make build run start stop open close load save send parse print show draw plot fit
apply generate test describe change modify replace search sort merge join split copy move
register initialize retrieve specify enable disable configure validate wait disassociate
associate attach detach tag upload download install decode encode raise evaluate determine
estimate transform map filter select insert drop handle
"""
_VERBS = frozenset(_VERB_WORDS.split())


def questions(section: Section, rng: random.Random) -> Iterator[str]:
    """Give no more than two queries that the section answers."""
    heading = section.heading.strip(" :.")
    if 2 <= len(heading.split()) <= 10 and rng.random() < 0.5:
        yield heading if heading.endswith("?") else _fill(rng.choice(_ABOUT), heading)
    first = sentences(section.paragraphs[0])[:1] if section.paragraphs else []
    if first and rng.random() < 0.5:
        yield from _from_sentence(first[0].rstrip(" ."), rng)


def _from_sentence(sentence: str, rng: random.Random) -> Iterator[str]:
    words = sentence.split()
    if not 4 <= len(words) <= 18:
        return
    verb = _imperative(words[0].lower())
    if verb:
        yield _fill(rng.choice(_TASK), " ".join([verb, *words[1:]]))
        return
    match = re.match(r"(?i)(an? |the )?([\w\- ]{3,40}?) (is|are|was|were) (.+)", sentence)
    if match and len(match[2].split()) <= 5:
        article = (match[1] or "").lower()
        form = rng.choice(("What {v} {a}{n}?", "what {v} {n}", "define {n}", "which {n} {v} that?"))
        yield form.format(v=match[3].lower(), a=article, n=match[2])
    elif rng.random() < 0.3:
        yield _keywords(words, rng)


def _imperative(word: str) -> str:
    for candidate in (word, word.removesuffix("s"), word.removesuffix("es")):
        if candidate in _VERBS:
            return candidate
    return ""


def _keywords(words: list[str], rng: random.Random) -> str:
    long = [word.strip(",.;:()\"'").lower() for word in words if len(word) > 4]
    count = min(len(long), rng.randint(2, 6))
    kept = sorted(rng.sample(range(len(long)), count))
    return " ".join(long[index] for index in kept)


def _fill(form: str, subject: str) -> str:
    return form.format(subject)
