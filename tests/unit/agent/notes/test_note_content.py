"""A note keeps what was stated in a conversation, and never what the memory itself gave."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.agent.notes.note_content import note_content
from clawmark.text.transcripts.records import TranscriptMessage

MEMORY = (
    "# Facts\n\n- We chose PostgreSQL for billing because MySQL was "
    "slow.\n- Carla Mendes is the dentist, Rua Augusta 12.\n"
)

Spoken = list[tuple[str, str]]


def said(spoken: Spoken) -> list[TranscriptMessage]:
    return [
        TranscriptMessage(
            role="user" if who == "u" else "assistant", text=text, time="", line=number
        )
        for number, (who, text) in enumerate(spoken)
    ]


def kept(
    spoken: Spoken, recalled: str = "", *, used_tools: bool = False, needs_answer: bool = False
) -> Spoken:
    content = note_content(said(spoken), recalled, used_tools=used_tools, needs_answer=needs_answer)
    return [("u" if one.role == "user" else "a", one.text) for one in content]


NOT_NOTED: list[tuple[str, Spoken]] = [
    ("nobody spoke", []),
    ("only the agent spoke", [("a", "Hello! I am your agent and I live in this folder.")]),
    ("failed chat", [("u", "hello")]),
    ("failed chat with a question", [("u", "Which database did we pick for billing?")]),
    (
        "failed chat that was repeated",
        [("u", "Fix the login bug"), ("u", "Fix the login bug please"), ("u", "hello?")],
    ),
    ("greeting", [("u", "hi there"), ("a", "Hello! How can I help you today?")]),
    (
        "question without an answer",
        [("u", "What is Carla's phone number?"), ("a", "I don't know.")],
    ),
    (
        "questions without an answer",
        [
            ("u", "What is Carla's phone number?"),
            ("a", "I could not find anything about Carla's phone number in my memory."),
            ("u", "And her address?"),
            ("a", "There is no mention of her address in the notes either."),
        ],
    ),
    (
        "question without a question mark",
        [("u", "what did we decide about billing"), ("a", "I don't have that information.")],
    ),
    (
        "scripted question",
        [("u", "What is the capital of France?"), ("a", "The capital of France is Paris.")],
    ),
    (
        "scripted request",
        [("u", "Translate to German: good morning"), ("a", "Guten Morgen, lieber Herr Nachbar")],
    ),
    (
        "scripted polite request",
        [("u", "Please summarise the log of today."), ("a", "It was a quiet day at the office.")],
    ),
    ("scripted test", [("u", "Say OK"), ("a", "OK")]),
    (
        "thanks",
        [
            ("u", "ok thanks, looks good"),
            ("a", "Great, sounds perfect!"),
            ("u", "perfect"),
            ("a", "You are welcome!"),
        ],
    ),
    ("German question", [("u", "Wie heißt die Zahnärztin?"), ("a", "Das weiß ich leider nicht.")]),
    (
        "French question",
        [("u", "Quelle base de données ?"), ("a", "Je ne sais pas, aucune information.")],
    ),
    ("Chinese question", [("u", "计费系统用什么数据库？"), ("a", "我不知道。")]),
    ("Japanese question", [("u", "会議はいつですか？"), ("a", "わかりません。")]),
]

NOTED: list[tuple[str, Spoken]] = [
    (
        "decision",
        [("u", "We chose PostgreSQL for billing because MySQL was slow."), ("a", "Understood.")],
    ),
    ("preference", [("u", "I prefer tea in the morning."), ("a", "Noted.")]),
    ("request to remember", [("u", "Please remember: Carla is the dentist."), ("a", "I will.")]),
    (
        "statement behind a question",
        [("u", "Did you know? The launch moved to March 12."), ("a", "No, thanks for telling me.")],
    ),
    (
        "condition",
        [("u", "When the licence server is down, restart lmgrd."), ("a", "Good to know.")],
    ),
    ("German", [("u", "Die Datenbank für die Abrechnung ist PostgreSQL."), ("a", "Verstanden.")]),
    ("Chinese", [("u", "计费系统使用 PostgreSQL 数据库。"), ("a", "好的。")]),
    (
        "questions that were answered",
        [
            ("u", "How do I restart the licence server?"),
            ("a", "Run `systemctl restart lmgrd` on the host licence-2."),
            ("u", "And where are its logs?"),
            ("a", "The logs are in /var/log/lmgrd."),
        ],
    ),
]


@pytest.mark.parametrize(
    "spoken", [spoken for _, spoken in NOT_NOTED], ids=[name for name, _ in NOT_NOTED]
)
def test_conversation_without_a_statement_has_no_content(spoken: Spoken) -> None:
    assert kept(spoken) == []


@pytest.mark.parametrize("spoken", [spoken for _, spoken in NOTED], ids=[name for name, _ in NOTED])
def test_conversation_with_a_statement_is_kept_word_for_word(spoken: Spoken) -> None:
    assert kept(spoken) == spoken


def test_one_request_is_noted_when_the_agent_worked_with_tools() -> None:
    spoken = [
        ("u", "Fix the login bug"),
        ("a", "The session cookie had no path; I set it in auth.py and added a test."),
    ]
    assert kept(spoken) == []
    assert kept(spoken, used_tools=True) == spoken


def test_unanswered_statement_is_kept_unless_an_answer_is_required() -> None:
    spoken = [("u", "We chose PostgreSQL for billing.")]
    assert kept(spoken) == spoken
    assert kept(spoken, needs_answer=True) == []
    assert kept([*spoken, ("a", "Understood.")], needs_answer=True) == [
        *spoken,
        ("a", "Understood."),
    ]


@given(st.text(max_size=300))
def test_sentences_of_an_answer_add_up_to_the_answer(answer: str) -> None:
    spoken = [("u", "The nightly export needs a script."), ("a", answer)]
    assert kept(spoken) == spoken


REPEATED = [
    "We chose PostgreSQL for billing because MySQL was slow.",
    "You chose PostgreSQL for billing, because MySQL was slow. Source: MEMORY.md#L3",
    "PostgreSQL (MEMORY.md#L3).",
    "- PostgreSQL for billing\n- MySQL was slow",
    "> We chose PostgreSQL for billing because MySQL was slow.\n\n(memory/2026-11-15.md#L3-L4)",
]


@pytest.mark.parametrize("answer", REPEATED)
def test_answer_that_only_repeats_what_was_recalled_is_not_noted(answer: str) -> None:
    spoken = [
        ("u", "Which database did we pick?"),
        ("a", answer),
        ("u", "Are you sure about that?"),
        ("a", answer),
    ]
    assert kept(spoken, MEMORY) == []
    assert kept(spoken) != []


def test_recalled_sentences_are_removed_from_an_answer_and_new_ones_kept() -> None:
    new = "I moved the export job to 03:00 because the backup runs at two."
    spoken = [
        ("u", "Which database did we pick?"),
        ("a", "You chose PostgreSQL for billing because MySQL was slow."),
        ("u", "The export job collides with the backup."),
        ("a", f"You chose PostgreSQL for billing because MySQL was slow. {new}"),
    ]
    assert kept(spoken, MEMORY) == [spoken[2], ("a", new)]


def test_user_messages_are_kept_even_if_the_memory_contains_them() -> None:
    spoken = [
        ("u", "We chose PostgreSQL for billing because MySQL was slow."),
        ("a", "Yes, MySQL was slow."),
    ]
    assert kept(spoken, MEMORY) == [spoken[0]]


def test_answer_with_recalled_words_and_new_facts_is_kept() -> None:
    spoken = [
        ("u", "What should we do about billing?"),
        ("a", "Move billing from PostgreSQL to a hosted cluster before the March audit in Lisbon."),
        ("u", "Why?"),
        ("a", "The disk of the old machine reports errors since Tuesday."),
    ]
    assert kept(spoken, MEMORY) == spoken


def test_question_answered_from_memory_is_not_kept() -> None:
    spoken = [
        ("u", "Who is the dentist?"),
        ("a", "Carla Mendes, Rua Augusta 12."),
        ("u", "Her number is now 555 0199."),
        ("a", "I changed it."),
    ]
    assert kept(spoken, MEMORY) == spoken[2:]


def test_code_and_layout_of_an_answer_survive() -> None:
    answer = (
        "Use this script for the nightly export:\n\n```sh\npg_dump billing > "
        "dump.sql\n```\n\n1. Run it.\n2. Check the size."
    )
    spoken = [("u", "The nightly export needs a script."), ("a", answer)]
    assert kept(spoken) == spoken
