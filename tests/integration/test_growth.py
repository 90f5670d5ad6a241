"""The work of searches and syncs grows with the number of files as it is meant to.

Work is counted, not timed, at two sizes. An exponent of 1 means work in proportion to the number of
files, 0 that their number does not matter. Each operation has a limit, a little above what it has
now: if a change makes work grow faster, the test names the operation."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest
from work_counter import Work, counting

from clawmark import Memory
from clawmark.engine.sync.plan import GRAIN_NS

SMALL, LARGE = 150, 600
LETTERS, VOWELS = "bcdfgklmnprstvz", "aeiou"
WORDS = 3000
RANKS = ((1, 40), (3, 900), (2500, 12, 77), (2, 5, 8, 300))
"""The ranks of the words that are asked for; the word of rank 1 is in nearly every note."""

LIMITS = {
    "search": {"sql_steps": 0.74, "texts_embedded": 0.1},
    "sync of nothing": {"sql_steps": 1.0},
    "sync of one edit": {"sql_steps": 0.95},
    "first index": {"sql_steps": 0.95, "files_opened": 1.0, "texts_embedded": 1.0},
}
"""The exponent that each kind of work may have at most, by operation; 0 for those not named."""


def words_by_rank() -> list[str]:
    """Return made-up words, the most frequent first."""
    words = ["".join(letters) for letters in product(LETTERS, VOWELS, LETTERS, VOWELS)][:WORDS]
    random.Random(1).shuffle(words)
    return words


def write_files(folder: Path, count: int) -> None:
    """Write notes of 40 lines with words of Zipf's distribution; the first note is always the
    same."""
    chance, words = random.Random(7), words_by_rank()
    weights = [1 / rank for rank in range(1, WORDS + 1)]
    (folder / "memory").mkdir(parents=True)
    (folder / "memory" / "first.md").write_text("# Harbour\n\nThe harbour opens in May.\n")
    for number in range(count):
        text = "\n".join(" ".join(chance.choices(words, weights, k=12)) for _ in range(40))
        (folder / "memory" / f"note-{number:05}.md").write_text(f"# Note {number}\n\n{text}\n")


def works(folder: Path, count: int) -> dict[str, Work]:
    """Return what each operation does with this many files."""
    workspace = folder / f"workspace-{count}"
    write_files(workspace, count)
    with (
        counting() as counter,
        Memory.open(
            workspace,
            state_dir=folder / f"state-{count}",
            overrides={"memorySearch.provider": "static", "memory.history.enabled": False},
            background=False,
        ) as memory,
    ):
        counter.follow(memory)
        done = {}
        memory.sync()
        done["first index"] = counter.take()
        memory.sync()
        counter.take()
        memory.sync()
        done["sync of nothing"] = counter.take()
        words = words_by_rank()
        questions = [" ".join(words[rank - 1] for rank in ranks) for ranks in RANKS]
        memory.search(questions[0])  # looks at the disk and loads the codes
        counter.take()
        for question in questions:
            assert memory.search(question, freshen=False).hits
        done["search"] = counter.take()
        (workspace / "memory" / "first.md").write_text("# Harbour\n\nThe harbour opens in June.\n")
        counter.take()
        memory.sync()
        done["sync of one edit"] = counter.take()
    return done


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[dict[str, Work], ...]]:
    folder = tmp_path_factory.mktemp("growth")
    now = time.time_ns
    with pytest.MonkeyPatch.context() as patch:
        # A file that changed two seconds ago or less is read again by a later sync.
        patch.setattr(time, "time_ns", lambda: now() + 10 * GRAIN_NS)
        yield works(folder, SMALL), works(folder, LARGE)


def exponent(small: int, large: int) -> float:
    """Return how fast work grows: 1 if it is four times as much for four times the files."""
    return math.log(max(large, 1) / max(small, 1)) / math.log(LARGE / SMALL)


@pytest.mark.parametrize("operation", LIMITS)
def test_work_grows_no_faster_than_its_limit(
    operation: str, both: tuple[dict[str, Work], ...]
) -> None:
    small, large = both[0][operation], both[1][operation]
    for name in Work._fields:
        grown = exponent(getattr(small, name), getattr(large, name))
        limit = LIMITS[operation].get(name, 0.0)
        assert grown <= limit + 0.005, f"{name} of {operation} grows with exponent {grown:.2f}"


def test_a_search_opens_no_file_and_a_sync_opens_only_what_changed(
    both: tuple[dict[str, Work], ...],
) -> None:
    for done in both:
        assert done["search"].files_opened == 0
        assert done["sync of nothing"].files_opened == 0
        assert done["sync of one edit"].files_opened == 1
        assert done["sync of one edit"].texts_embedded == 1


def test_work_in_proportion_to_the_files_is_seen_as_such(
    both: tuple[dict[str, Work], ...],
) -> None:
    small, large = both[0]["first index"], both[1]["first index"]
    assert exponent(small.files_opened, large.files_opened) > 0.95
    assert exponent(small.texts_embedded, large.texts_embedded) > 0.95
    small, large = both[0]["sync of nothing"], both[1]["sync of nothing"]
    assert exponent(small.sql_steps, large.sql_steps) > 0.9
