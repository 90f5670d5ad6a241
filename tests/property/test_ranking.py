"""What holds for every ranking of a real index: evidence adds up, room is room, and rare exact
terms are found.

The scores compared here are those of the explanation, which are not rounded.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clawmark import Memory
from clawmark.engine.search import scoring
from clawmark.engine.search.statements import BATCH
from clawmark.engine.sync.vectors import FEWEST_VECTORS, NOISE_GROWTH
from clawmark.model.explanation import CandidateStory
from clawmark.model.values import Query

NOTES = (
    "The billing service moved from MySQL to PostgreSQL in March because of the row locks.",
    "Grandmother's apple cake needs six eggs, two cups of flour and an hour in the oven.",
    "The heron nests at the north end of the lake and returns every April.",
    "Melanie painted a sunrise over the harbour for her sister's birthday.",
    "Backups run every night at three and are kept for ninety days in the cold archive.",
    "The train to Lisbon leaves from platform nine and takes eleven hours.",
    "Our landlord agreed to repair the broken radiator before the first frost.",
    "The marathon training plan has three long runs and one rest day each week.",
    "Doctor Varga advised less coffee and a short walk after lunch.",
    "The quarterly budget was cut by ten percent, travel is frozen until autumn.",
    "Tomatoes and basil grow well together on the south balcony.",
    "The new laptop has a loud fan and a cracked hinge, the warranty ends in June.",
    "Children's swimming lessons start on Tuesday in the old indoor pool.",
    "The board approved the merger after a long debate about severance pay.",
)
QUESTIONS = (
    "which database does the invoice system use",
    "recipe for baking a dessert with eggs",
    "bird at the lake in spring",
    "how long are backups kept",
    "rail journey to Portugal",
    "heating at home is broken",
    "running schedule per week",
    "medical advice about caffeine",
    "travel budget freeze",
    "kids learn to swim",
    "company merger decision",
)
WORDS = sorted({word.strip(".,'").lower() for text in NOTES + QUESTIONS for word in text.split()})
TEXTS = st.lists(st.sampled_from(WORDS), min_size=1, max_size=30).map(" ".join)
EXAMPLES = settings(
    max_examples=25,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
)


MOST = 50
"""Results asked for: more than there are notes."""


def write(root: Path, name: str, text: str) -> None:
    (root / "memory").mkdir(parents=True, exist_ok=True)
    (root / "memory" / f"{name}.md").write_text(text + "\n", encoding="utf-8")


@contextmanager
def workspace(notes: tuple[str, ...] = NOTES) -> Iterator[tuple[Path, Memory]]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder, "agent")
        for number, text in enumerate(notes):
            write(root, f"note-{number:03}", text)
        with Memory.open(
            root, state_dir=Path(folder, "state"), provider="static", background=False
        ) as memory:
            memory.sync()
            yield root, memory


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("ranking")
    for number, text in enumerate(NOTES):
        write(made / "agent", f"note-{number:03}", text)
    return made


@pytest.fixture(scope="module")
def legs(folder: Path) -> Iterator[dict[str, Memory]]:
    """The same index as hybrid, by words alone and by meaning alone."""
    weights = {"hybrid": (0.7, 0.3), "words": (0.0, 1.0), "meaning": (1.0, 0.0)}
    opened = {}
    for name, (vector, text) in weights.items():
        key = "memorySearch.query.hybrid."
        overrides = {key + "vectorWeight": vector, key + "textWeight": text}
        opened[name] = Memory.open(
            folder / "agent",
            state_dir=folder / "state",
            provider="static",
            overrides=overrides,
            background=False,
        )
    opened["hybrid"].sync()
    yield opened
    for memory in opened.values():
        memory.close()


def stories(memory: Memory, query: str) -> dict[str, CandidateStory]:
    """Every candidate by its path; each note is one passage."""
    found = memory.search(query, max_results=MOST, min_score=0.0, explain=True)
    assert found.explanation is not None
    return {
        story.citation.partition("#")[0].partition(":")[0]: story
        for story in found.explanation.candidates
    }


# --- evidence adds up -----------------------------------------------------------------------------


@EXAMPLES
@given(query=st.one_of(st.sampled_from(QUESTIONS), TEXTS))
def test_a_passage_that_is_at_least_as_good_by_words_and_by_meaning_is_never_overtaken(
    legs: dict[str, Memory], query: str
) -> None:
    assert len(NOTES) <= BATCH * MOST, "every line of every note is judged"
    hybrid, words, meaning = (stories(legs[name], query) for name in ("hybrid", "words", "meaning"))
    compared = 0
    for one, other in permutations(hybrid, 2):
        is_better = (
            words[one].score > words[other].score + 1e-12
            and meaning[one].score >= meaning[other].score
        )
        is_nearer = (
            words[one].score >= words[other].score
            and meaning[one].score > meaning[other].score + 1e-12
        )
        if is_better or is_nearer:
            compared += 1
            assert hybrid[one].score >= hybrid[other].score
    assert compared


@EXAMPLES
@given(number=st.integers(0, len(NOTES) - 1), noise=st.lists(st.sampled_from(WORDS), max_size=3))
def test_the_first_by_words_and_by_meaning_is_the_first(
    legs: dict[str, Memory], number: int, noise: list[str]
) -> None:
    query = " ".join([NOTES[number].lower(), *noise])
    path = f"memory/note-{number:03}.md"
    for name in ("words", "meaning", "hybrid"):
        assert legs[name].search(query).hits[0].path == path


@EXAMPLES
@given(query=st.one_of(st.sampled_from(QUESTIONS), TEXTS))
def test_neither_leg_lowers_what_the_other_one_finds(legs: dict[str, Memory], query: str) -> None:
    """A passage with words is worth at least what its meaning alone is worth, and the other way
    round.
    """
    for story in stories(legs["hybrid"], query).values():
        without_words = _score(story._replace(text=0.0, name=0.0))
        without_meaning = _score(story._replace(vector=0.0, line=0.0, user=0.0))
        assert story.score == pytest.approx(_score(story))
        assert story.score >= max(without_words, without_meaning) - 1e-12


def _score(story: CandidateStory) -> float:
    """The confidence that the factors of an explanation add up to, as the documentation
    states it."""
    words = scoring.TEXT * story.text + scoring.NAME * story.name
    meaning = (
        scoring.INSTANT_MEANING * story.vector
        + scoring.LINE * story.line
        + scoring.USER * story.user
    )
    few = scoring.bias_of(len(NOTES)) - scoring.BIAS
    return 1.0 / (1.0 + math.exp(-(scoring.BIAS + story.stated * few + words + meaning)))


# --- files that are added -------------------------------------------------------------------------


RARITY_MOVES = 0.06
"""How far a score may fall when a file with words of the query is added to an index of 14 passages.
"""
LENGTH_MOVES = 0.01
"""The same for a file without any of them: the number and the mean length of the passages change.
"""
ADDED = st.one_of(
    TEXTS,
    st.sampled_from(QUESTIONS).flatmap(
        lambda query: st.lists(st.sampled_from(query.split()), min_size=1).map(" ".join)
    ),
)


@settings(EXAMPLES, max_examples=12)
@given(text=ADDED)
def test_an_added_file_changes_no_score_of_meaning_and_removes_no_hit(text: str) -> None:
    """Scores by meaning alone are equal to the bit. Those with words move with the rarity of the
    words, by little.

    Only a hit that is closer to the threshold than that can be lost. The space must not grow so
    much that its noise is measured again."""
    assert len(NOTES) >= FEWEST_VECTORS
    assert len(NOTES) + 1 < NOISE_GROWTH * len(NOTES)
    with workspace() as (root, memory):
        before = {query: stories(memory, query) for query in QUESTIONS}
        write(root, "added", text)
        memory.sync()
        by_meaning = certain = 0
        for query in QUESTIONS:
            after = stories(memory, query)
            hits = {hit.path for hit in memory.search(query, max_results=50).hits}
            added = after.get("memory/added.md")  # not a candidate if it is not worth embedding
            moves = RARITY_MOVES if added is not None and added.text else LENGTH_MOVES
            for path, story in before[query].items():
                if not story.text:
                    by_meaning += 1
                    assert after[path].score == story.score
                assert after[path].score > story.score - moves
                if story.score >= Query("").min_score + moves:
                    certain += 1
                    assert path in hits
        assert by_meaning > 50
        assert certain > 5


@EXAMPLES
@given(texts=st.lists(TEXTS, min_size=1, max_size=3), question=st.sampled_from(QUESTIONS))
def test_the_order_of_passages_found_by_meaning_does_not_depend_on_added_files(
    texts: list[str], question: str
) -> None:
    with workspace() as (root, memory):
        before = [path for path, story in stories(memory, question).items() if not story.text]
        for number, text in enumerate(texts):
            write(root, f"added-{number}", text)
        memory.sync()
        assert [path for path in stories(memory, question) if path in before] == before


def test_a_hit_by_meaning_survives_a_crowd_of_files_with_a_word_of_the_query() -> None:
    """The weighted sum lost it to one such file."""
    question = "rail journey to Portugal"
    with workspace() as (root, memory):
        before = stories(memory, question)["memory/note-005.md"]
        assert before.text == 0.0
        for number in range(4):
            write(root, f"added-{number}", f"Portugal, number {number}.")
        memory.sync()
        after = stories(memory, question)["memory/note-005.md"]
        assert after.score == before.score


# --- rare exact terms -----------------------------------------------------------------------------

MARKERS: dict[str, Callable[[int], str]] = {
    "code": lambda n: f"ZX-{n:04}",
    "identifier": lambda n: f"max_wobble_{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}",
    "file": lambda n: f"{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}wobble.conf",
    "name": lambda n: f"Quo{'abcdefghij'[n % 10]}{'klmnopqrst'[n // 10 % 10]}nar",
}


@EXAMPLES
@given(
    kind=st.sampled_from(sorted(MARKERS)),
    number=st.integers(0, 99),
    others=st.sampled_from(QUESTIONS),
    repeats=st.integers(1, 3),
    place=st.integers(0, 3),
)
def test_a_unique_term_is_among_the_first_three_in_any_query(
    crowded: tuple[Path, Memory], kind: str, number: int, others: str, repeats: int, place: int
) -> None:
    """Look-alikes of the marker and many notes about the rest of the query do not crowd it out."""
    _, memory = crowded
    marker = MARKERS[kind](number)
    words = ("please " + others).split() * repeats
    query = " ".join([*words[: place + 1], marker, *words[place + 1 :]])
    paths = [hit.path for hit in memory.search(query).hits[:3]]
    assert f"memory/{kind}-{number:03}.md" in paths


@pytest.fixture(scope="module")
def crowded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Memory]]:
    """A hundred markers of each kind, and each ordinary note a few times in other words."""
    made = tmp_path_factory.mktemp("crowded")
    for kind, marker in MARKERS.items():
        for number in range(100):
            write(
                made / "agent", f"{kind}-{number:03}", f"Ticket about {marker(number)} was closed."
            )
    for number, text in enumerate(NOTES):
        for copy in range(4):
            write(
                made / "agent",
                f"note-{number:03}-{copy}",
                f"{text} {QUESTIONS[number % len(QUESTIONS)]}, part {copy}.",
            )
    with Memory.open(
        made / "agent", state_dir=made / "state", provider="static", background=False
    ) as memory:
        memory.sync()
        yield made / "agent", memory
