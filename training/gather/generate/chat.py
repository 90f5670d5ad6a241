"""Chats between two friends, as single turns, pairs of turns and whole sessions."""

import random
from collections.abc import Iterator

from training.gather.generate.grammar import Grammar
from training.gather.values import Text

SOURCE = "templates"


def chat(grammar: Grammar, rng: random.Random) -> Iterator[Text]:
    """Give the texts of one session: its turns, some windows of it, and questions about it."""
    topics = rng.sample(grammar.sections["topic"], 2)
    me, you, other = rng.sample(grammar.sections["friend"], 3)
    turns = _turns(grammar, rng, topics, (me, you), other)
    for turn in turns:
        if rng.random() < 0.6:
            yield Text(turn if rng.random() < 0.7 else turn.partition(": ")[2], SOURCE, "dialogue")
    yield Text(_window(grammar, rng, turns), SOURCE, "dialogue")
    for _ in range(rng.randint(1, 3)):
        bound = {"topic": rng.choice(topics), "me": me, "you": you, "other": other}
        yield Text(grammar.choose("fact_query", rng, bound), SOURCE, "query")


def _turns(
    grammar: Grammar, rng: random.Random, topics: list[str], names: tuple[str, str], other: str
) -> list[str]:
    count = rng.randint(4, 9)
    turns = []
    for index in range(count):
        me, you = names if index % 2 == 0 else (names[1], names[0])
        topic = topics[index * len(topics) // count]
        bound = {"topic": topic, "me": me, "you": you, "other": other}
        section = "first" if index < 2 else "last" if index == count - 1 else "turn"
        turns.append(f"{me}: {grammar.choose(section, rng, bound)}")
    return turns


def _window(grammar: Grammar, rng: random.Random, turns: list[str]) -> str:
    size = rng.randint(2, len(turns))
    start = rng.randint(0, len(turns) - size)
    session = "\n".join(turns[start : start + size])
    date = grammar.choose("date", rng, {})
    return f"{date}\n{session}" if rng.random() < 0.5 else session
