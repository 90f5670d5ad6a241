"""What is recalled without being asked for has to be about the message; most messages are about
nothing that is written.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark import Memory
from clawmark.agent.prompt.recall import parse_block
from clawmark.agent.prompt.recall_rule import BAR, confidence, says_something, worth_recalling
from clawmark.hooks.recall import recall_for

KEY = "agent:main:main"


def recalled(root: Path, message: str, *notes: str) -> list[str]:
    """The notes that a message recalls, by the library and by the hook, which must agree."""
    workspace, state = root / "workspace", root / "state"
    for number, note in enumerate(notes):
        path = workspace / (f"memory/note-{number}.md" if number else "MEMORY.md")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(note, encoding="utf-8")

    def opened(provider: str | None) -> Memory:
        return Memory.open(
            workspace, state_dir=state, provider=provider or "static", background=False
        )

    with opened("static") as memory:
        memory.sync()
        block = memory.recall(message, KEY)
    by_hook = recall_for(opened, message, None)
    items = parse_block(block) if block else []
    assert items == (parse_block(by_hook) if by_hook else [])
    return [item.text for item in items]


@pytest.mark.parametrize(
    ("message", "note"),
    [
        ("which database did we choose for billing?", "We chose PostgreSQL for billing"),
        ("what db does billing use", "- We chose PostgreSQL for billing.\n"),
        ("when do we deploy?", "# Facts\n\n- Deploys go out on Tuesdays from the main branch.\n"),
        ("what is kestrel?", "Kestrel is the internal name of the search rewrite. Owner: Jun.\n"),
        (
            "I get E4012 again, what was that?",
            "Error E4012 means that the licence server is unreachable; restart lmgrd.\n",
        ),
        (
            "welche Datenbank nutzt die Abrechnung?",
            "Die Datenbank für die Abrechnung ist PostgreSQL.\n",
        ),
        ("计费系统用什么数据库？", "计费系统使用 PostgreSQL 数据库。\n"),
        (
            "implement the retry logic for webhooks",
            "Retry failed webhooks at most 5 times with exponential backoff.\n",
        ),
    ],
)
def test_one_note_answers_a_question_about_it(tmp_path: Path, message: str, note: str) -> None:
    assert [text.strip() for text in recalled(tmp_path, message, note)] == [note.strip()]


@pytest.mark.parametrize(
    "message",
    [
        "ok thanks",
        "looks good to me",
        "thanks, that works",
        "yes, go on",
        "do it",
        "danke, weiter",
        "好的，谢谢",
        "👍",
        "",
        "/compact",
        "run the linter and fix whatever it complains about",
        "rename the variable foo to bar everywhere",
        "the button is misaligned on mobile",
        "please refactor this function to use async",
        "what does this do?\n\ndef total(items):\n    return sum(item.price for item in items)\n",
        "TypeError: Cannot read properties of undefined (reading 'map')\n    at UserList "
        "(src/UserList.tsx:24:18)",
    ],
)
def test_message_about_no_note_recalls_nothing(tmp_path: Path, message: str) -> None:
    notes = (
        "# Memory\n\n- We chose PostgreSQL for billing.\n- Ann prefers green tea. Thanks to Bob, "
        "it works.\n",
    )
    assert (
        recalled(
            tmp_path,
            message,
            *notes,
            "Deploys go out on Tuesdays.\n",
            "The wifi password is on the fridge.\n",
        )
        == []
    )


def test_of_several_notes_only_the_one_that_is_asked_about_is_recalled(tmp_path: Path) -> None:
    notes = (
        "Running 5k on Saturdays, knee hurts after hills.\n",
        "Passport expires 2027-02.\n",
        "Sofa colour: moss green, ordered from Bolia.\n",
        "Reading list: Piranesi, The Dispossessed.\n",
    )
    assert recalled(tmp_path, "when does my passport expire?", *notes) == [
        "Passport expires 2027-02."
    ]


def test_common_words_say_less_in_a_memory_that_is_full_of_them(tmp_path: Path) -> None:
    note = "The function test of the parser failed, so the code was changed.\n"
    many = [
        f"Day {number}: changed the code, ran the test, the function of module {number} works.\n"
        for number in range(60)
    ]
    assert recalled(tmp_path / "many", "change the function and run the test", note, *many) == []
    kept = recalled(
        tmp_path / "rare",
        "who feeds the axolotl in Falkenstein?",
        "Jun feeds the axolotl in Falkenstein.\n",
        *many,
    )
    assert [text.strip() for text in kept] == ["Jun feeds the axolotl in Falkenstein."]


def test_a_minimum_score_takes_the_place_of_the_bar(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("Thanks to Bob, the heating works.\n", encoding="utf-8")
    with Memory.open(tmp_path, state_dir=tmp_path / "state", provider="static") as memory:
        assert memory.recall("thanks, that works", KEY) == ""
        assert "heating" in memory.recall("thanks, that works", KEY, min_score=0.0)


def test_words_alone_are_enough_where_there_are_no_vectors(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("We chose PostgreSQL for billing.\n", encoding="utf-8")
    with Memory.open(tmp_path, state_dir=tmp_path / "state", provider="none") as memory:
        assert "PostgreSQL" in memory.recall("is billing on postgresql?", KEY)
        assert memory.recall("add a dark mode toggle for billing", KEY) == ""


def test_a_search_without_an_explanation_recalls_nothing(tmp_path: Path) -> None:
    (tmp_path / "MEMORY.md").write_text("We chose PostgreSQL for billing.\n", encoding="utf-8")
    with Memory.open(tmp_path, state_dir=tmp_path / "state", provider="static") as memory:
        assert worth_recalling(memory.search("postgresql billing")) == []


def test_a_larger_memory_makes_it_less_sure_and_rare_words_more() -> None:
    assert confidence(0.9, 0.0, 1) > BAR > confidence(0.9, 0.0, 1000)
    assert confidence(0.9, 12.0, 100) > confidence(0.9, 12.0, 1000) > confidence(0.9, 12.0, 10_000)
    assert confidence(0.9, 12.0, 1000) > confidence(0.9, 6.0, 1000) > confidence(0.9, 0.0, 1000)
    assert confidence(0.9, 4000.0, 1000) == confidence(0.9, 400.0, 1000), (
        "a pasted page is not surer for its length"
    )


def test_two_rare_words_are_enough_in_a_very_large_memory() -> None:
    assert confidence(0.97, 40.0, 200_000) > BAR > confidence(0.97, 10.0, 200_000)


@pytest.mark.parametrize("score", [0.0, 1.0])
def test_scores_at_the_ends_of_the_scale_have_a_confidence(score: float) -> None:
    assert 0.0 < confidence(score, 0.0, 0) < 1.0


def test_an_answer_in_other_words_is_recalled_below_the_threshold_of_a_search(
    tmp_path: Path,
) -> None:
    note = "Never touch the eu-west-1 region of AWS; everything lives in eu-north-1."
    assert (
        recalled(
            tmp_path,
            "which aws region can we use?",
            note,
            "Tests are written with vitest, not jest.\n",
        )[0]
        == note
    )


def test_path_at_the_start_is_not_a_command() -> None:
    assert says_something("/etc/hosts has a wrong line") and not says_something("/clear")
