"""What a conversation states, as opposed to what was only asked in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clawmark.text.transcripts.dialogue import (
    LONGEST_EMPTY_REPLY,
    LabelledMessage,
    Statements,
    find_statements,
    is_dialogue,
    is_question,
    is_unanswered,
    labelled_messages,
    statements,
    without_note_header,
    without_note_title,
)

ASKED = (
    "user: Where is the spare key of the boat "
    "house?\nassistant: I don't have that in front of me.\n"
)
ANSWERED = (
    "user: Where is the spare key of the boat house?\nassistant: Under the third flower pot.\n"
)


def labels_and_texts(text: str) -> list[tuple[str, str]]:
    return [(message.label, message.text) for message in labelled_messages(text)]


def test_messages_are_split_at_labels_at_line_starts() -> None:
    text = "user: Hello there.\nI lost my key, where: is it?\nassistant: In the shed."
    assert labels_and_texts(text) == [
        ("user", "Hello there.\nI lost my key, where: is it?"),
        ("assistant", "In the shed."),
    ]


@pytest.mark.parametrize(
    ("line", "label"),
    [
        ("User: hello", "user"),
        ("User (2026-02-24 10:03Z): hello", "user"),
        ("Assistant (10:03): hello", "assistant"),
        ("**User**: hello", "user"),
        ("**User:** hello", "user"),
        ("- Anna: hello", "anna"),
        ("> Anna: hello", "anna"),
        ("* **Anna Maria**: hello", "anna maria"),
        ("  O'Neill Jr.: hello", "o'neill jr."),
        ("Анна: hello", "анна"),
        ("田中: hello", "田中"),
    ],
)
def test_label_is_read_without_markup_and_time(line: str, label: str) -> None:
    assert labels_and_texts(line) == [(label, "hello")]


def test_a_label_may_stand_on_a_line_of_its_own() -> None:
    text = "User (10:03):\n\n> Where is it?\n\nAssistant (10:04):\n\n> In the shed.\n"
    assert labels_and_texts(text) == [("user", "> Where is it?"), ("assistant", "> In the shed.")]


@pytest.mark.parametrize(
    "line",
    [
        "https://example.com/path",
        "10:30 the meeting begins",
        "a::b is a name in C++",
        "This is a sentence that is far too long to be the name of a speaker: it goes on.",
        "no label here",
    ],
)
def test_other_lines_with_a_colon_are_not_labels(line: str) -> None:
    assert labelled_messages(line) == []


def test_a_conversation_has_at_least_two_labels() -> None:
    assert is_dialogue(ASKED)
    assert not is_dialogue("Decision: we use PostgreSQL.\nIt is fast.")
    assert not is_dialogue("")


def test_a_question_without_an_answer_states_nothing() -> None:
    said = find_statements(ASKED)
    assert (said.text, said.share, said.by_user) == ("", 0.0, ())


def test_a_question_with_an_answer_is_kept_with_it() -> None:
    assert find_statements(ANSWERED) == Statements(ANSWERED, 1.0)


def test_only_the_unanswered_pair_is_taken_out() -> None:
    said = find_statements(
        ASKED + "user: The boat house was painted green last summer.\nassistant: Noted.\n"
    )
    assert said.text == "user: The boat house was painted green last summer.\nassistant: Noted."
    assert said.asked == ASKED.strip()
    assert 0.0 < said.share < 1.0
    assert said.by_user == ("The boat house was painted green last summer.",)


def test_every_pair_is_judged_on_its_own() -> None:
    said = find_statements(ASKED + ANSWERED + ASKED)
    assert said.text == ANSWERED.strip()


def test_text_before_the_first_label_is_stated() -> None:
    said = find_statements("The deploy key is in vault 7.\n\n" + ASKED)
    assert said.text == "The deploy key is in vault 7."
    assert said.asked == ASKED.strip()
    assert 0.0 < said.share < 1.0


@given(
    st.lists(
        st.sampled_from(
            ["Anna: hello", "Ben: Where is it?", "Anna: I don't know.", "note KX-4471", ""]
        )
    )
)
def test_every_word_is_either_stated_or_asked(lines: list[str]) -> None:
    text = "\n".join(lines)
    said = find_statements(text)
    assert sorted(f"{said.text}\n{said.asked}".split()) == sorted(text.split())


def test_the_names_of_the_speakers_are_kept() -> None:
    said = find_statements(
        "Caroline: Where is it?\nMelanie: I don't know.\nCaroline: We painted the "
        "fence.\nMelanie: Lovely.\n"
    )
    assert said.text == "Caroline: We painted the fence.\nMelanie: Lovely."
    assert said.asked == "Caroline: Where is it?\nMelanie: I don't know."


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "I don't know.",
        "I don’t know.",
        "Let me check and come back to you.",
        "I could not find anything about that yet.",
        "Not sure. Where did you last see it?",
        "I will look it up.",
        "There is no record of it. Shall I search the archive?",
        "Which boat house?",
        "Sorry, one moment.",
    ],
)
def test_replies_that_do_not_answer(reply: str) -> None:
    assert is_unanswered(
        LabelledMessage("user", "Where is the spare key?"), LabelledMessage("assistant", reply)
    )


@pytest.mark.parametrize(
    "reply",
    [
        "Under the third flower pot.",
        "I don't know for sure. It was under the third flower pot.",
        "Under the pot, but let me know if it is not there.",
        "I don't know. " + "The key was handed from one tenant to the next. " * 8,
    ],
)
def test_replies_that_say_something(reply: str) -> None:
    assert not is_unanswered(
        LabelledMessage("user", "Where is the spare key?"), LabelledMessage("assistant", reply)
    )


def test_a_long_reply_always_counts_as_an_answer() -> None:
    reply = "I don't know " * 30
    assert len(reply) > LONGEST_EMPTY_REPLY
    assert not is_unanswered(
        LabelledMessage("user", "Where is it?"), LabelledMessage("assistant", reply)
    )


def test_keywords_that_got_no_answer_state_nothing() -> None:
    assert is_unanswered(
        LabelledMessage("user", "log retention window storage cost"),
        LabelledMessage("assistant", "I will look it up."),
    )


def test_question_is_not_answered_by_the_same_speaker() -> None:
    assert not is_unanswered(
        LabelledMessage("user", "Where is it?"), LabelledMessage("user", "Not sure.")
    )


@pytest.mark.parametrize(
    ("statement", "reply"),
    [
        ("My dog Rex died yesterday.", "Sorry to hear that!"),
        ("my dog rex died yesterday", "I'm so sorry to hear that."),
        ("The deploy key is in vault 7.", "I'll look into it."),
        ("We moved the launch to May!", "Let me see what that changes."),
        ("Do not deploy on Fridays.", "Sorry, one moment."),
    ],
)
def test_a_statement_is_kept_with_any_reply(statement: str, reply: str) -> None:
    assert statement in find_statements(f"user: {statement}\nassistant: {reply}").text


def test_a_list_of_facts_is_kept_whole() -> None:
    text = (
        "- Owner: Dana\n- Deadline: the last Friday of May.\n- Budget\n- "
        "Price: no information yet\n- Status: not found\n"
    )
    assert find_statements(text) == Statements(text, 1.0)


def test_text_that_is_not_a_conversation_is_returned_as_it_is() -> None:
    text = "# Where is the key?\n\nI don't know.\n"
    assert find_statements(text) == Statements(text, 1.0)


@pytest.mark.parametrize(
    "text",
    [
        "user: Where is the spare key?\n",
        "assistant: The fence is green now.\nuser: Where is the spare key?\n",
        "user: Where is the spare key?\nuser: Hello? Where is it?\nassistant: I don't know.\n",
    ],
    ids=["alone", "last", "asked-twice"],
)
def test_a_question_without_any_reply_states_nothing(text: str) -> None:
    assert "spare key" not in find_statements(text).text


def test_questions_in_other_languages_are_recognised_by_their_mark() -> None:
    for question in ("Wo ist der Schlüssel?", "鍵はどこですか？", "أين المفتاح؟"):
        assert is_question(question)
        assert find_statements(f"user: {question}\nassistant: {question}").text == ""


def test_replies_in_other_languages_count_as_answers() -> None:
    text = "user: Wo ist der Schlüssel?\nassistant: Das weiß ich leider nicht.\n"
    assert find_statements(text).share == 1.0


@pytest.mark.parametrize(
    "text",
    [
        "Where is it?",
        "where is the key",
        "Is it done",
        'He asked "why?"',
        "**Who?**",
        "What's up",
        "Don’t you know",
    ],
)
def test_a_question_has_a_mark_at_its_end_or_a_question_word_at_its_beginning(text: str) -> None:
    assert is_question(text)


@pytest.mark.parametrize(
    "text",
    [
        "It is done.",
        "",
        "   ",
        "Somewhere else",
        "When deploying, use the blue cluster.",
        "Do not deploy on Fridays.",
        "What we decided: PostgreSQL.",
    ],
)
def test_a_statement_is_not_a_question(text: str) -> None:
    assert not is_question(text)


def test_statements_are_the_sentences_that_do_not_ask() -> None:
    text = "I moved to Lisbon in May. Do you know it? Short one. The flat has three rooms"
    assert statements(text) == ["I moved to Lisbon in May.", "The flat has three rooms"]


def test_only_what_the_user_states_is_the_users() -> None:
    said = find_statements(
        "user: I moved to Lisbon in May. Do you know it?\nassistant: Lisbon is a fine city by "
        "the sea.\n"
    )
    assert said.by_user == ("I moved to Lisbon in May.",)
    assert (
        find_statements("Anna: I moved to Lisbon in May.\nBen: Good for you, enjoy it.\n").by_user
        == ()
    )


def test_the_head_of_a_session_note_is_removed() -> None:
    note = (
        "# Session: 2026-02-24 10:03:00 UTC\n\n- **Session Key**: agent:main:chat-3\n- **Session "
        "ID**: 0000a1\n"
        "- **Source**: chat\n\n## Conversation Summary\n\nuser: I moved to Lisbon.\n"
    )
    assert without_note_header(note).split() == ["user:", "I", "moved", "to", "Lisbon."]


def test_the_title_of_a_session_note_says_nothing_about_its_passages() -> None:
    assert without_note_title("Session: 2026-02-24 10:03:00 UTC") == ""
    assert without_note_title("Session: kick-off with Dana") == "Session: kick-off with Dana"


def test_lines_like_a_note_head_stay_in_other_notes() -> None:
    head = "# Session: kick-off with Dana\n\n- **Source**: the customer\n- **Reason**: cost\n"
    text = head + "\n## Conversation Summary\n\nIt went well.\n"
    assert without_note_header(text) == text


@given(
    st.lists(
        st.sampled_from(
            ["user: ", "assistant: ", "Where is it?", "I don't know.", "It is here.", "\n", " "]
        )
    )
)
def test_statements_are_part_of_the_text(parts: list[str]) -> None:
    text = "".join(parts)
    said = find_statements(text)
    assert 0.0 <= said.share <= 1.0
    assert set(said.text.split()) <= set(text.split())
    for sentence in said.by_user:
        assert sentence in text
