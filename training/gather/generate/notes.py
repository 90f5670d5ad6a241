"""Notes of people and teams: decisions, incidents, logs, how-tos, reminders, and queries."""

import random
from collections.abc import Iterator

from training.gather.generate.grammar import Grammar
from training.gather.values import Text

SOURCE = "templates"


def notes(grammar: Grammar, rng: random.Random) -> Iterator[Text]:
    """Give some single notes, a page of several notes, and queries for them."""
    bound = {"me": grammar.choose("friend", rng, {})}
    written = [grammar.choose("note", rng, bound) for _ in range(rng.randint(3, 6))]
    for note in written[: rng.randint(2, 4)]:
        yield Text(note, SOURCE, "note")
    heading = grammar.choose("note_heading", rng, bound)
    yield Text(f"{heading}\n\n" + "\n\n".join(written[:3]), SOURCE, "note")
    for _ in range(2):
        yield Text(grammar.choose("note_query", rng, bound), SOURCE, "query")
