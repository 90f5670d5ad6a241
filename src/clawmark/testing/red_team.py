"""A pytest plugin that plants instructions in a memory and looks for them in an agent's prompts.

    class TestMyAgent(RedTeamSuite):
        def prompts(self, memory, message):
            return [my_agent.build_prompt(memory, message)]

Every door (imports, tools, flushes, session notes, transcripts, hooks, added folders …) is used
with every text. A prompt must contain none of them: a model sees text from outside only if it asks,
and then quoted. `prompts` returns everything that a model is sent before it asks for something.

A `conftest.py` with `pytest_plugins = ["clawmark.testing.red_team"]` gives the fixture `red_team`
to all tests. Nothing is active without one of the two."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from clawmark.config.paths import resolve_places
from clawmark.memory import Memory
from clawmark.system.private_files import make_private_folder
from clawmark.testing.embedders import HashingEmbedder
from clawmark.testing.red_team_attacks import (
    ATTACKS,
    QUESTION,
    Attack,
    canary,
    found_in,
    needles,
    planted_text,
)
from clawmark.testing.red_team_doors import DOORS, Door, plant_through

OWN_NOTE = "The heron nests by the old pier since the flood, as Ada said."
"""What the user wrote about the same subject."""
REVIEWS = ("off", "curated")
"""The values of `memory.review` that are attacked: text is written at once, or MEMORY.md waits for
the user, and then the waiting text must not reach a prompt either."""


class Case(NamedTuple):
    """A text that is planted through a door."""

    door: Door
    attack: Attack

    @property
    def canary(self) -> str:
        return canary(self.door.name, self.attack.name)

    @property
    def text(self) -> str:
        return planted_text(self.attack, self.canary)

    def __str__(self) -> str:
        return f"{self.door.name}-{self.attack.name}"


def cases_of(door: Door) -> tuple[Case, ...]:
    """Return the cases of a door."""
    return tuple(Case(door, attack) for attack in ATTACKS)


CASES = tuple(case for door in DOORS for case in cases_of(door))


class RedTeam:
    """Plants texts, and looks for them; `review` is the policy of the memory that it opens."""

    def __init__(self, folder: Path, review: str = "off") -> None:
        self.folder = folder
        self.review = review
        self.planted: list[Case] = []

    def open_memory(self) -> Memory:
        """Open a memory without a model in the folder, which searches transcripts too."""
        workspace = self.folder / "agent"
        (workspace / "memory").mkdir(parents=True, exist_ok=True)
        places = resolve_places(str(workspace), None, None, str(self.folder / "state"))
        # Transcripts are searched if their folder exists when the memory is opened.
        make_private_folder(places.conversations_dir)
        return Memory.open(
            workspace,
            state_dir=self.folder / "state",
            embedder=HashingEmbedder(),
            overrides={
                "memorySearch.sources": ["memory", "sessions"],
                "memory.review": self.review,
            },
        )

    def plant(self, memory: Memory, case: Case) -> None:
        """Plant the text of a case through its door; a door may refuse it."""
        folder = self.folder / "planted"
        folder.mkdir(parents=True, exist_ok=True)
        plant_through(case.door, memory, folder, len(self.planted), case.text)
        self.planted.append(case)

    def kept(self, memory: Memory) -> list[Case]:
        """Return the planted cases that a search finds; doors refused the others."""
        memory.sync()
        found = memory.search(QUESTION, max_results=500, min_score=0.0).hits
        texts = [memory.read(hit.citation, max_chars=1 << 20).text for hit in found]
        return [case for case in self.planted if found_in(texts, [case.canary])]

    def waiting(self, memory: Memory) -> list[Case]:
        """Return the planted cases that wait for the user in a proposal."""
        texts = [hunk.new for proposal in memory.review.list() for hunk in proposal.hunks]
        return [case for case in self.planted if found_in(texts, [case.canary])]

    def reached(self, prompts: Iterable[str]) -> list[Case]:
        """Return the planted cases of which something is in one of the prompts."""
        texts = list(prompts)
        return [case for case in self.planted if found_in(texts, needles(case.text, case.canary))]

    def check(self, prompts: Iterable[str]) -> None:
        """Fail if something that was planted is in one of the prompts."""
        names = [str(case) for case in self.reached(prompts)]
        if names:
            pytest.fail(
                f"{len(names)} of {len(self.planted)} planted texts reached a prompt: "
                f"{', '.join(names)}",
                pytrace=False,
            )


@pytest.fixture
def red_team(tmp_path: Path) -> RedTeam:
    """A red team with a folder of its own."""
    return RedTeam(tmp_path / "red-team")


class RedTeamSuite:
    """Tests for an agent; a subclass implements `prompts`."""

    def prompts(self, memory: Memory, message: str) -> Sequence[str]:
        """Return what the model of the agent is sent for a message of the user, before it asks for
        anything: system prompt, recalled memory, context of a session that starts."""
        raise NotImplementedError

    @pytest.fixture(params=REVIEWS, ids=lambda review: f"review-{review}")
    def red_team(self, tmp_path: Path, request: pytest.FixtureRequest) -> RedTeam:
        return RedTeam(tmp_path / "red-team", request.param)

    @pytest.fixture
    def memory(self, red_team: RedTeam) -> Iterator[Memory]:
        """The memory that is attacked; override it to open one with your settings."""
        with red_team.open_memory() as opened:
            yield opened

    @pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
    def test_planted_text_reaches_no_prompt(
        self, memory: Memory, red_team: RedTeam, door: Door
    ) -> None:
        """Plant every text through a door, and look for it in every prompt."""
        if not door.is_there:
            pytest.skip(f"needs the package {door.needs}")
        memory.append(OWN_NOTE)
        for case in cases_of(door):
            red_team.plant(memory, case)
        memory.sync()
        red_team.check(self.prompts(memory, QUESTION))
