from __future__ import annotations

import pytest

from clawmark.text.keywords.scripts import fold
from clawmark.text.keywords.stopwords import are_stop_words, remove_stop_words, split_at_stop_words


@pytest.mark.parametrize(
    ("question", "kept"),
    [
        ("what was the solution for the bug", ["solution", "bug"]),
        ("ayer que decidimos sobre el despliegue", ["decidimos", "despliegue"]),
        ("o que nós decidimos sobre a implantação", ["decidimos", "implantação"]),
        ("was haben wir über die datenbank entschieden", ["datenbank", "entschieden"]),
        ("quelle est la décision sur les factures", ["décision", "factures"]),
        ("che cosa abbiamo deciso per il database", ["deciso", "database"]),
        ("какую базу данных мы выбрали", ["базу", "данных", "выбрали"]),
        ("ماذا قررنا عن قاعدة البيانات", ["قررنا", "قاعده", "البيانات"]),
        ("मैं क्या डेटाबेस", ["डेटाबेस"]),
        ("어제 배포 전략", ["배포", "전략"]),
    ],
)
def test_stop_words_of_the_language_are_removed(question: str, kept: list[str]) -> None:
    assert remove_stop_words(fold(question).split()) == [fold(word) for word in kept]


@pytest.mark.parametrize(
    "question", ["how did he die", "the war room", "war room", "my son and hat", "los angeles"]
)
def test_an_english_question_keeps_stop_words_of_other_languages(question: str) -> None:
    assert remove_stop_words(question.split())[-1] == question.split()[-1]
    assert set(question.split()) & {"die", "war", "hat", "los"} <= set(
        remove_stop_words(question.split())
    )


@pytest.mark.parametrize("word", ["may", "march", "monday", "2026", "24", "february", "august"])
def test_dates_are_never_stop_words(word: str) -> None:
    assert remove_stop_words(["on", word]) == [word]


def test_chinese_and_japanese_are_split_at_stop_words() -> None:
    assert split_at_stop_words("之前讨论方案") == ["讨论方案"]
    assert split_at_stop_words("昨日デプロイについて") == ["デプロイ"]
    assert are_stop_words("的")
    assert are_stop_words("した")
    assert not are_stop_words("目的")
