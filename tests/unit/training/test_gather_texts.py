"""Cutting sections into texts, making queries, and choosing among them."""

import random

from training.gather.collect import sample, texts_of
from training.gather.passages import LONGEST, is_english, passages, sentences, shorten
from training.gather.questions import questions
from training.gather.sources import Source
from training.gather.values import Section, Text

PARAGRAPH = "The server keeps a copy of every file. It deletes old copies after a week. " * 3


def source(limit: int = 100) -> Source:
    return Source(
        name="manual",
        registry="pypi",
        package="manual",
        version="1",
        licence="MIT",
        evidence="LICENSE",
        attribution="",
        reader="markdown",
        files=("*.md",),
        limit=limit,
    )


def test_passages_have_many_lengths_and_none_is_too_long() -> None:
    section = Section("Copies", (PARAGRAPH,) * 300)
    lengths = [len(text.split()) for text in passages(section, random.Random(1))]
    assert min(lengths) < 15
    assert max(lengths) > 200
    assert max(lengths) <= LONGEST


def test_a_very_long_paragraph_is_split_between_sentences() -> None:
    found = list(passages(Section("", (PARAGRAPH * 20,)), random.Random(1)))
    assert len(found) > 3
    assert all(text.endswith(".") for text in found)


def test_long_text_is_cut_after_a_whole_sentence() -> None:
    cut = shorten(PARAGRAPH * 20)
    assert len(cut.split()) <= LONGEST
    assert cut.endswith(".")


def test_sentences_end_at_punctuation_before_a_capital() -> None:
    assert sentences("Use e.g. this one. Then stop! Why?") == [
        "Use e.g. this one.",
        "Then stop!",
        "Why?",
    ]


def test_code_numbers_and_other_languages_are_not_english() -> None:
    assert is_english("The cache is deleted when the index is closed.")
    assert is_english("list index")
    assert not is_english("a = {0: 1, 2: 3}; b[0] += 12 * (3 - 4)")
    assert not is_english("Der Server löscht jede Kopie nach einer Woche wieder von selbst")
    assert not is_english("12 34 56")


def test_imperative_sentences_become_task_queries() -> None:
    section = Section("", ("Return the number of open files in the folder.",))
    found = {query for seed in range(40) for query in questions(section, random.Random(seed))}
    assert "how to return the number of open files in the folder" in found


def test_headings_become_queries_and_questions_stay_as_they_are() -> None:
    section = Section("Write-ahead logging", ("Text.",))
    found = {query for seed in range(90) for query in questions(section, random.Random(seed))}
    assert "what is Write-ahead logging?" in found
    asked = Section("How do I stop it?", ("Text.",))
    found = {query for seed in range(20) for query in questions(asked, random.Random(seed))}
    assert found == {"How do I stop it?"}


def test_texts_of_a_source_are_the_same_for_the_same_seed() -> None:
    files = [("a.md", f"# Copies\n\n{PARAGRAPH}\n\n## Old ones\n\n{PARAGRAPH}".encode())]
    first = texts_of(source(), files, 1)
    assert first == texts_of(source(), files, 1)
    assert len({text.text for text in first}) == len(first) > 1


def test_a_sample_is_limited_and_at_most_a_quarter_are_queries() -> None:
    texts = [Text(f"passage {n}", "manual", "passage") for n in range(50)]
    texts += [Text(f"query {n}", "manual", "query") for n in range(50)]
    chosen = sample(texts, 20, 1)
    assert len(chosen) == 20
    assert sum(text.kind == "query" for text in chosen) == 5
