"""A workspace with a history: thirty made-up days in which facts change and files come and go.

Each evening is recorded as a version."""

from __future__ import annotations

import random
import shutil
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import NamedTuple

from clawmark import Memory
from clawmark.composition import history_folder
from clawmark.embed.base import Embedder
from clawmark.history.history import History
from clawmark.history.repository import Version

FIRST = date(2026, 2, 1)
DAYS = 30
PROJECTS = (
    *("heron", "lantern", "quarry", "marble", "orchard", "thistle"),
    *("copper", "willow", "saffron", "glacier", "harbour", "compass"),
)
FACTS = {
    "database": ("PostgreSQL 16", "SQLite", "MariaDB", "DuckDB"),
    "owner": ("Ines", "Tomas", "Yuki", "Farid", "Greta"),
    "launch month": ("March", "April", "May", "June", "September"),
    "budget": ("12,000 euros", "20,000 euros", "7,500 euros"),
    "meeting room": ("the attic", "the blue room", "the garden house"),
}
EVENTS = (
    "{owner} fixed the slow report of {name}; an index on the invoice table was missing.",
    "The {name} team tried a new build server and went back to the old one.",
    "A customer of {name} was charged twice because a delivery was taken for a new payment.",
    "{owner} is allergic to cashews, so the {name} lunch moves to another place.",
    "The certificate of {name} expired at night; renewals are automatic now.",
    "We agreed that {name} gets a weekly summary by mail every Friday.",
)


class Scene:
    """A memory with a clock of its own, and the history of its workspace."""

    def __init__(
        self, folder: Path, embedder: Embedder | None = None, provider: str | None = None
    ) -> None:
        self.folder = folder
        self.embedder = embedder
        self.workspace = folder / "workspace"
        (self.workspace / "memory").mkdir(parents=True, exist_ok=True)
        self.now = datetime(FIRST.year, FIRST.month, FIRST.day, 20, tzinfo=UTC)
        self.memory = Memory.open(
            self.workspace,
            state_dir=folder / "state",
            embedder=embedder,
            provider=provider,
            clock=lambda: self.now,
            background=False,
        )
        self.history = History(
            history_folder(self.memory.places), clock=lambda: self.now.timestamp()
        )
        self.as_of_folder = Path(history_folder(self.memory.places)).with_name("as-of")

    def write(self, path: str, text: str) -> None:
        file = self.workspace / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")

    def record(self) -> Version | None:
        """Record the workspace as a version."""
        return self.history.record(
            self.memory.workspace.scan().files, self._read, "sync", wait=True
        )

    def close(self) -> None:
        self.memory.close()

    def _read(self, path: str) -> bytes | None:
        try:
            return (self.workspace / path).read_bytes()
        except FileNotFoundError:
            return None


class Day(NamedTuple):
    """An evening of the month."""

    day: str
    copy: Path
    """A copy of the workspace as it was then."""


def live_a_month(scene: Scene, days: int = DAYS) -> Iterator[Day]:
    """Write, record and copy one day after the other; every third day, a sync follows."""
    chance = random.Random(15)
    facts = {
        name: {fact: chance.choice(values) for fact, values in FACTS.items()} for name in PROJECTS
    }
    for number in range(days):
        today = FIRST + timedelta(days=number)
        scene.now = datetime(today.year, today.month, today.day, 20, tzinfo=UTC)
        lines = [f"# {today}", ""]
        for name in chance.sample(PROJECTS, 4):
            fact = chance.choice(list(FACTS))
            facts[name][fact] = chance.choice(FACTS[fact])
            lines.append(f"- The {fact} of {name} is now {facts[name][fact]}.")
            event = chance.choice(EVENTS)
            lines.append("- " + event.format(name=name, owner=facts[name]["owner"]))
        scene.write(f"memory/{today}.md", "\n".join(lines) + "\n")
        scene.write("MEMORY.md", _memory_file(facts))
        _change_a_note(scene, chance, facts, number)
        scene.record()
        if number % 3 == 2:
            scene.memory.sync()
        copy = scene.folder / "days" / str(today)
        shutil.copytree(scene.workspace, copy)
        yield Day(str(today), copy)


def open_copy(day: Day, state: Path, provider: str | None) -> Memory:
    """Open a memory of the files of one evening, in which it is still that evening."""
    evening = datetime.fromisoformat(f"{day.day}T20:00:00+00:00")
    return Memory.open(
        day.copy, state_dir=state, provider=provider, clock=lambda: evening, background=False
    )


def questions(count: int) -> list[str]:
    """Return different questions about the projects."""
    asked = [
        *(f"Which {fact} does {name} have?" for name in PROJECTS for fact in FACTS),
        *(f"What happened with {name} last week?" for name in PROJECTS),
        *(f"Who works on {name} and where do they meet?" for name in PROJECTS),
        *(f"Was a customer of {name} charged twice?" for name in PROJECTS),
        *(f"{name} {fact}" for name in PROJECTS for fact in FACTS),
        *(f"Who is the owner of {name}, {owner}?" for name in PROJECTS for owner in FACTS["owner"]),
    ]
    assert len(set(asked)) >= count
    return random.Random(7).sample(asked, count)


def answers(memory: Memory, question: str, as_of: str | None = None) -> list[tuple[object, ...]]:
    """Return what an answer consists of: where, which lines, how good, and the text."""
    found = memory.search(question, as_of=as_of, min_score=0.0)
    return [
        (hit.path, hit.start_line, hit.end_line, hit.score, hit.vector_score, hit.snippet)
        for hit in found.hits
    ]


def _memory_file(facts: dict[str, dict[str, str]]) -> str:
    parts = ["# Memory"]
    for name, known in facts.items():
        parts.append(f"## {name.capitalize()}")
        parts.append(
            "\n".join(f"- The {fact} of {name} is {value}." for fact, value in known.items())
        )
    return "\n\n".join(parts) + "\n"


def _change_a_note(
    scene: Scene, chance: random.Random, facts: dict[str, dict[str, str]], number: int
) -> None:
    """Write the note of a project, or remove one."""
    name = chance.choice(PROJECTS)
    note = scene.workspace / "memory" / "projects" / f"{name}.md"
    if note.exists() and number % 2:
        note.unlink()
        return
    known = facts[name]
    scene.write(
        f"memory/projects/{name}.md",
        f"# {name.capitalize()}\n\n{known['owner']} leads {name}. It meets in "
        f"{known['meeting room']} and stores its data in {known['database']}.\n",
    )
