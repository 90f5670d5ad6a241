"""Chats between a user and an assistant, as turns and as pairs of turns."""

import random
from collections.abc import Iterator

from training.gather.generate.grammar import Grammar
from training.gather.values import Text

SOURCE = "templates"


def assistant(grammar: Grammar, rng: random.Random) -> Iterator[Text]:
    """Give the turns of one session, and questions that the user may ask later."""
    bound = {
        "topic": rng.choice(grammar.sections["topic"]),
        "me": grammar.choose("friend", rng, {}),
        "other": grammar.choose("friend", rng, {}),
    }
    for _ in range(rng.randint(2, 4)):
        question = grammar.choose("user_turn", rng, bound)
        answer = grammar.choose("answer", rng, bound)
        speakers = rng.random() < 0.6
        yield Text(f"user: {question}" if speakers else question, SOURCE, "dialogue")
        yield Text(f"assistant: {answer}" if speakers else answer, SOURCE, "dialogue")
        if rng.random() < 0.2:
            yield Text(f"user: {question}\nassistant: {answer}", SOURCE, "dialogue")
    for _ in range(rng.randint(1, 3)):
        yield Text(grammar.choose("assistant_query", rng, bound), SOURCE, "query")
