"""Ranking over real files: echoes, heads of session notes, the published weighted sum, and weights
of 0.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.agent.notes.session_note import render_note
from clawmark.agent.session.session import SessionEntry
from clawmark.model.values import Found
from clawmark.text.transcripts.records import TranscriptMessage

QUESTION = "Where did we put the spare key of the boat house?"
ANSWER = "The key for the boat is under the third flower pot."
FACTS = (
    "The billing service moved to PostgreSQL in March.",
    "Grandmother's apple cake needs six eggs and an hour in the oven.",
    "The heron returns to the north end of the lake every April.",
    "Melanie painted a sunrise over the harbour for her sister.",
    "Backups run every night at three and are kept for ninety days.",
    "The train to Lisbon takes eleven hours.",
    "The landlord agreed to repair the radiator before the first frost.",
    "Doctor Varga advised less coffee and a short walk after lunch.",
    "Tomatoes and basil grow well together on the south balcony.",
    "The new laptop has a loud fan and a cracked hinge.",
)
REPLIES = (
    "I don't have that in front of me.",
    "Let me check and come back to you.",
    "Not sure. Where did you last see it?",
)
HEAD = (
    "# Session: 2026-10-{0:02} 08:00:00 UTC\n\n- **Session Key**: "
    "agent:main:chat-{0}\n- **Session ID**: 0000{0:04}\n"
)


class Place:
    """A workspace with notes and transcripts."""

    def __init__(self, folder: Path) -> None:
        self.workspace, self.state = folder / "agent", folder / "state"
        self.sessions = self.state / "agents" / "main" / "sessions"
        self.sessions.mkdir(parents=True)
        (self.workspace / "memory").mkdir(parents=True)
        for number, fact in enumerate(FACTS):
            self.note(f"fact-{number}", f"{fact}\n")

    def note(self, name: str, text: str) -> None:
        (self.workspace / "memory" / f"{name}.md").write_text(text, encoding="utf-8")

    def transcript(self, name: str, *texts: str) -> None:
        with (self.sessions / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for number, text in enumerate(texts):
                role = "assistant" if number % 2 else "user"
                message = {"role": role, "content": [{"type": "text", "text": text}]}
                line = {
                    "type": "message",
                    "timestamp": f"2026-02-24T10:{number:02}:00.000Z",
                    "message": message,
                }
                file.write(json.dumps(line) + "\n")

    def search(
        self, text: str, overrides: Mapping[str, object] | None = None, **options: float
    ) -> Found:
        settings = {"memorySearch.sources": ["memory", "sessions"], **(overrides or {})}
        with Memory.open(
            self.workspace,
            state_dir=self.state,
            provider="static",
            overrides=settings,
            background=False,
        ) as memory:
            memory.sync()
            return memory.search(text, explain=True, **options)  # type: ignore[arg-type]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def hybrid(**settings: object) -> dict[str, object]:
    return {f"memorySearch.query.hybrid.{name}": value for name, value in settings.items()}


# --- echoes ---------------------------------------------------------------------------------------


def test_session_notes_that_repeat_the_question_do_not_outrank_the_answer(place: Place) -> None:
    place.note("house", f"{ANSWER}\n")
    for number, reply in enumerate(REPLIES, 1):
        asked = f"\n## Conversation Summary\n\nuser: {QUESTION}\nassistant: {reply}\n"
        place.note(f"2026-10-{number:02}-chat", HEAD.format(number) + asked)
    found = place.search(QUESTION)
    assert found.hits[0].path == "memory/house.md"
    assert not any("chat" in hit.path for hit in found.hits)


def test_our_own_session_notes_that_repeat_the_question_do_not_outrank_the_answer(
    place: Place,
) -> None:
    place.note("house", f"{ANSWER}\n")
    moment = datetime(2026, 10, 1, 8, 0, tzinfo=UTC)
    for number, reply in enumerate(REPLIES, 1):
        said = [
            TranscriptMessage(role="user", text=QUESTION, time="2026-10-01T08:00:00Z", line=1),
            TranscriptMessage(role="assistant", text=reply, time="2026-10-01T08:01:00Z", line=2),
        ]
        place.note(
            f"2026-10-{number:02}-chat",
            render_note(
                said, SessionEntry("main", f"s{number}"), moment, reason="reset", source="chat"
            ),
        )
    found = place.search(QUESTION)
    assert found.hits[0].path == "memory/house.md"
    assert not any("chat" in hit.path for hit in found.hits)


def test_transcripts_that_repeat_the_question_do_not_outrank_the_answer(place: Place) -> None:
    place.transcript(
        "told", "Please remember something for me.", "Sure.", ANSWER, "I will remember it."
    )
    for number, reply in enumerate(REPLIES):
        place.transcript(f"asked-{number}", QUESTION, reply)
    found = place.search(QUESTION)
    assert found.hits[0].path == "sessions/told.jsonl"
    assert not any("asked" in hit.path for hit in found.hits)


def test_a_question_that_got_an_answer_is_found_with_it(place: Place) -> None:
    place.transcript("answered", QUESTION, "Under the third flower pot.")
    (hit, *_) = place.search(QUESTION).hits
    assert hit.path == "sessions/answered.jsonl"
    assert "third flower pot" in hit.snippet


def test_a_short_statement_of_the_user_is_found_among_long_replies(place: Place) -> None:
    long = "Here is a long reply with many general remarks about travel, luggage and weather. " * 12
    place.transcript(
        "trip",
        "What should I pack for a week by the sea?",
        long,
        "By the way, I am allergic to peanuts.",
        long,
    )
    place.transcript(
        "other", "Tell me something about gardening.", long.replace("travel", "gardens")
    )
    found = place.search("what food am I allergic to")
    assert found.hits[0].path == "sessions/trip.jsonl"
    assert "allergic to peanuts" in found.hits[0].snippet


# --- heads of session notes -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "query", ["Session Key agent main", "Session ID 00000003", "Conversation Summary", "chat-3"]
)
def test_the_head_of_a_session_note_is_not_found(place: Place, query: str) -> None:
    for number in range(200):  # in a memory of a few notes, everything that is near is shown
        place.note(
            f"more-{number}", f"Shelf {number} of the cellar holds {number + 2} jars of plum jam.\n"
        )
    for number in range(1, 4):
        said = f"\n## Conversation Summary\n\nuser: {FACTS[number]}\nassistant: Noted.\n"
        place.note(f"2026-10-{number:02}-talk", HEAD.format(number) + said)
    found = place.search(query)
    assert not any("talk" in hit.path for hit in found.hits)


def test_what_is_said_in_a_session_note_is_found(place: Place) -> None:
    place.note(
        "2026-10-01-talk",
        HEAD.format(1) + f"\n## Conversation Summary\n\nuser: {ANSWER}\nassistant: Noted.\n",
    )
    assert place.search("key under the flower pot").hits[0].path == "memory/2026-10-01-talk.md"


# --- weights --------------------------------------------------------------------------------------


def test_the_weighted_form_is_the_published_sum(place: Place) -> None:
    found = place.search("apple cake with six eggs", hybrid(fusion="weighted"), min_score=0.0)
    assert found.explanation is not None
    assert len(found.explanation.candidates) == len(FACTS)
    for story in found.explanation.candidates:
        assert story.score == pytest.approx(0.7 * story.vector + 0.3 * story.text)
    assert found.hits[0].path == "memory/fact-1.md"
    assert max(story.text for story in found.explanation.candidates) == pytest.approx(1.0)


def test_the_weighted_form_uses_the_configured_weights(place: Place) -> None:
    settings = hybrid(fusion="weighted", vectorWeight=0.2, textWeight=0.6)
    found = place.search("apple cake with six eggs", settings, min_score=0.0)
    assert found.explanation is not None
    for story in found.explanation.candidates:
        assert story.score == pytest.approx(0.25 * story.vector + 0.75 * story.text)


@pytest.mark.parametrize("fusion", ["calibrated", "weighted"])
def test_a_vector_weight_of_0_leaves_the_ranking_to_the_words(place: Place, fusion: str) -> None:
    settings = hybrid(fusion=fusion, vectorWeight=0, textWeight=1)
    found = place.search("rail journey to Portugal with a loud laptop", settings, min_score=0.2)
    assert [hit.path for hit in found.hits] == ["memory/fact-9.md"]
    assert found.explanation is not None
    scores = {story.score for story in found.explanation.candidates if not story.text}
    assert len(scores) == 1, "what has none of the words has one score, however near it is"


@pytest.mark.parametrize("fusion", ["calibrated", "weighted"])
def test_a_text_weight_of_0_leaves_the_ranking_to_the_meaning(place: Place, fusion: str) -> None:
    place.note("words", "rail Portugal")
    with_words = place.search(
        "train ride laptop", hybrid(fusion=fusion, vectorWeight=1, textWeight=0), min_score=0.0
    )
    assert with_words.explanation is not None
    by_meaning = [story.vector for story in with_words.explanation.candidates]
    assert by_meaning == sorted(by_meaning, reverse=True)
    assert any(story.text for story in with_words.explanation.candidates)
