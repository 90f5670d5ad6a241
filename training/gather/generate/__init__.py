"""Write texts from grammars of our own: chats, notes, logs, decisions and questions."""

import random
from collections.abc import Callable, Iterator, Mapping

from training.gather.generate.assistant import assistant
from training.gather.generate.chat import chat
from training.gather.generate.facts import facts
from training.gather.generate.grammar import Grammar, read_sections
from training.gather.generate.notes import notes
from training.gather.values import Text

_WRITERS: tuple[tuple[float, Callable[[Grammar, random.Random], Iterator[Text]]], ...] = (
    (0.32, chat),
    (0.28, assistant),
    (0.26, notes),
    (0.14, facts),
)


def generate(
    count: int, seed: int, words: Mapping[str, tuple[str, ...]] | None = None
) -> list[Text]:
    """Return this many texts of all kinds, each one once.

    `words` replaces sections of the grammar, so that it uses more words than its files have.
    """
    grammar = Grammar({**read_sections(), **(words or {})})
    found: dict[str, Text] = {}
    wanted = 0
    for share, write in _WRITERS:
        rng = random.Random(f"{seed} {write.__name__}")
        wanted += round(count * share)
        while len(found) < wanted:
            for text in write(grammar, rng):
                found.setdefault(text.text, text)
    return list(found.values())[:count]
