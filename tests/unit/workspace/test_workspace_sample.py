"""The sample workspace: dated back from today, readable, and answering questions that share no word
with it.
"""

from __future__ import annotations

import re
from datetime import date
from pathlib import Path

import pytest

from clawmark.workspace import Workspace
from clawmark.workspace.sample import QUESTIONS, Question, write_sample

TODAY = date(2026, 3, 2)
FUNCTION_WORDS = frozenset(("an", "are", "did", "due", "to", "we", "were", "which", "why"))


@pytest.fixture
def sample(tmp_path: Path) -> Workspace:
    write_sample(str(tmp_path), TODAY)
    return Workspace(str(tmp_path))


def content_words(text: str) -> set[str]:
    return {word for word in re.findall(r"[a-z]+", text.lower()) if word not in FUNCTION_WORDS}


def test_it_is_a_few_weeks_of_logs_and_a_memory(sample: Workspace) -> None:
    found = sample.scan()
    days = [state.path for state in found.files if state.path != "MEMORY.md"]
    assert (found.skipped, found.failures) == ((), ())
    assert 20 <= len(days) <= 25
    assert days[-1] == "memory/2026-03-01.md"
    assert days[0] == "memory/2026-01-28.md"
    assert 25_000 <= sum(state.size for state in found.files) <= 40_000


def test_every_date_is_filled_in(sample: Workspace) -> None:
    for state in sample.scan().files:
        text = sample.read_document(state).text
        assert not re.search(r"\{[^}]*\}", text), state.path
        if state.path != "MEMORY.md":
            assert text.startswith(f"# {state.path[7:17]}\n")


def test_an_existing_file_is_not_changed(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("mine\n")
    assert "MEMORY.md" not in write_sample(str(tmp_path), TODAY)
    assert (tmp_path / "MEMORY.md").read_text() == "mine\n"


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_a_question_has_its_answer_in_the_log_it_names(
    sample: Workspace, question: Question
) -> None:
    text = sample.read_lines(question.path(TODAY)).text
    assert question.marker in " ".join(text.split())


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda question: question.text)
def test_no_content_word_of_a_question_occurs_anywhere_in_the_sample(
    sample: Workspace, question: Question
) -> None:
    words = {
        word
        for state in sample.scan().files
        for word in content_words(sample.read_document(state).text)
    }
    stems = tuple(word[: max(4, len(word) - 2)] for word in content_words(question.text))
    assert len(stems) >= 2
    assert sorted(word for word in words if word.startswith(stems)) == []
