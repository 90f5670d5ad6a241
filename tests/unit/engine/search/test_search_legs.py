"""The keyword leg on a real index: only what a passage states is evidence."""

from __future__ import annotations

import pytest

from clawmark.engine.search.legs import keyword_leg, text_leg_matches
from clawmark.engine.search.scoring import TextMatch
from clawmark.engine.sync.text import words_of
from clawmark.model.values import Query
from clawmark.store.base import IndexStore
from clawmark.testing.vectors import file_of

QUESTION = "Where is the spare key of the boat house?"
ASKED = f"user: {QUESTION}\nassistant: I don't know.\n"
OTHERS = [f"Note number {number} is about the garden." for number in range(20)]


@pytest.fixture(params=["sqlite", "postgres"], name="index")
def any_index(request: pytest.FixtureRequest) -> IndexStore:
    """An index of either store."""
    name = {"sqlite": "index", "postgres": "postgres_index"}[request.param]
    opened: IndexStore = request.getfixturevalue(name)
    return opened


def matches(index: IndexStore, query: str, *texts: str) -> list[TextMatch | None]:
    """The text evidence for each of some passages, which are indexed with others."""
    row, chunks, _ = file_of("memory/notes.md", *texts, *OTHERS)
    with index.transaction() as writer:
        keys = writer.put_file(row, chunks, words_of("memory/notes.md", chunks))
    with index.snapshot() as reader:
        words = keyword_leg(Query(query), reader)
        found = text_leg_matches(words, reader, keys)
    return [found.get(key) for key in keys[: len(texts)]]


def test_words_that_are_only_asked_are_not_evidence_when_they_are_stated_elsewhere(
    index: IndexStore,
) -> None:
    answer, echo = matches(
        index, QUESTION, "The spare key of the boat house is under the pot.", ASKED
    )
    assert answer is not None and answer.text > 0.5
    assert echo is None


def test_words_that_are_only_asked_are_not_evidence_in_a_passage_that_states_something_else(
    index: IndexStore,
) -> None:
    more = "user: We painted the fence green in May, all of it.\nassistant: That is good to know.\n"
    answer = "The spare key of the boat house is under the pot, and the fence is green."
    _, about_key, about_fence = matches(
        index, "spare key, green fence", answer, ASKED, ASKED + more
    )
    assert about_key is None
    assert about_fence is not None
    assert about_fence.mask == 0b1100


def test_words_that_are_only_asked_are_found(index: IndexStore) -> None:
    stated, echo = matches(index, "boat key", "The key is under the pot.", ASKED)
    assert stated is not None and stated.mask == 0b10
    assert echo is not None and echo.mask == 0b01


def test_a_question_with_its_answer_is_evidence(index: IndexStore) -> None:
    (answered,) = matches(
        index, QUESTION, f"user: {QUESTION}\nassistant: Under the third flower pot.\n"
    )
    assert answered is not None and answered.text > 0.5
