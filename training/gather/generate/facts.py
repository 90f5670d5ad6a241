"""Invented articles in the style of an encyclopedia, and questions of that kind."""

import random
from collections.abc import Iterator

from training.gather.generate.grammar import Grammar
from training.gather.values import Text

SOURCE = "templates"


def facts(grammar: Grammar, rng: random.Random) -> Iterator[Text]:
    """Give one article and one question. They need not belong together."""
    yield Text(grammar.choose("article", rng, {}), SOURCE, "passage")
    yield Text(grammar.choose("fact_question", rng, {}), SOURCE, "query")
