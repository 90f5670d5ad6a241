"""When two statements say the same: precise rather than eager."""

from __future__ import annotations

import pytest

from clawmark.agent.consolidation.wording import covers, says_the_same, sentences


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Grace wants a call on Tuesday.", "- 09:30 Grace wants calls on Tuesdays"),
        ("Never schedule anything before 9:30.", "never schedule anything before 9:30"),
        ("The front desk closes at 18:00.", "The front desk also closes at 18:00!"),
        ("Anna mag keinen Kaffee am Abend.", "Anna mag am Abend keinen Kaffee"),
        ("Die Kita schließt um 16 Uhr.", "- Die Kita schließt um 16 Uhr"),
    ],
)
def test_inflection_order_and_fillers_make_no_difference(one: str, other: str) -> None:
    assert says_the_same(one, other)
    assert covers(one, other)
    assert covers(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("The price is 29 euros a month.", "The price is 39 euros a month."),
        ("Grace wants calls on Tuesdays.", "Tomasz wants calls on Tuesdays."),
        ("Grace wants calls on Tuesdays.", "Grace wants no calls on Tuesdays."),
        ("Grace wants calls on Tuesdays.", "Grace doesn't want calls on Tuesdays."),
        ("Nothing is deployed on Fridays.", "Nothing is deployed on Fridays after 16:00."),
        ("Deploys are allowed in the morning.", "Deploys are forbidden in the morning."),
        ("Grace wants calls on Tuesdays.", "Grace's sister wants calls on Tuesdays."),
        ("Grace wants calls on Tuesdays.", "Priya thinks Grace wants calls on Tuesdays."),
        ("Grace wants calls on Tuesdays.", "Grace wants calls on Tuesdays in the holidays."),
        ("The office is open until Friday.", "The office is open from Friday."),
        ("Anna wohnt in Köln.", "Anna wohnt nicht in Köln."),
        ("Call Lucia.", "Call Lucia."),
        ("Ravi reports to Ines at noon.", "Ines reports to Ravi at noon."),
        ("Move the pump from 3 to 5.", "Move the pump from 5 to 3."),
        ("Anna hilft dem Ben beim Umzug.", "Ben hilft dem Anna beim Umzug."),
    ],
)
def test_a_word_that_changes_the_meaning_makes_them_different(one: str, other: str) -> None:
    assert not says_the_same(one, other)
    assert not covers(one, other)
    assert not covers(other, one)


@pytest.mark.parametrize(
    ("longer", "shorter"),
    [
        (
            "Likes short answers first, reasons after. No bullet points.",
            "Likes short answers first",
        ),
        ("Ines lives in Bergen. Her dog eats carrots daily.", "Her dog eats carrots daily."),
        (
            "Rule since the outage of May: nothing is deployed after 16:00.",
            "Nothing is deployed after 16:00",
        ),
        (
            "Grace wants calls on Tuesdays because mornings are quiet.",
            "Grace wants calls on Tuesdays.",
        ),
    ],
)
def test_a_longer_statement_covers_its_sentences_and_first_clauses(
    longer: str, shorter: str
) -> None:
    assert covers(longer, shorter)
    assert not covers(shorter, longer)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("- 14:05 Dr. Moen called. All good.", ["Dr. Moen called.", "All good."]),
        ("- Am 3. März kommt Anna. Sie bleibt.", ["Am 3. März kommt Anna.", "Sie bleibt."]),
        ("- [ ] 14:05 Pay at 16:40. Then go!", ["Pay at 16:40.", "Then go!"]),
        ("- Version 2.3 is out", ["Version 2.3 is out"]),
    ],
)
def test_sentences_are_split_without_bullet_box_and_time(text: str, expected: list[str]) -> None:
    assert sentences(text) == expected
