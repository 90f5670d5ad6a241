"""What was forgotten is recognized by hashes that say nothing about it."""

from __future__ import annotations

from pathlib import Path

import pytest

from clawmark.history.tombstones import Tombstones
from clawmark.model.errors import ClawmarkError
from clawmark.text.forgetting import units_of

FACT = "- 14:05 The safe opens with seven two nine. Nobody else knows that."


def forget(tombstones: Tombstones, text: str, phrase: str = "") -> None:
    hashes = [
        one for unit in units_of(text) for one in tombstones.hashes_of(unit.content, unit.text)
    ]
    found = tombstones.hash_phrase(phrase) if phrase else None
    tombstones.add([*hashes, *([found[0]] if found else [])], [found[1]] if found else [])


@pytest.fixture
def tombstones(tmp_path: Path) -> Tombstones:
    made = Tombstones(str(tmp_path / "agents" / "main" / "tombstones.json"))
    forget(made, FACT)
    return made


@pytest.mark.parametrize(
    "text",
    [
        FACT,
        "the SAFE opens\nwith seven two nine. nobody else knows that",
        "# Talk\n\n> The safe opens with seven two nine. Nobody else knows that.",
        "- Noted today. The safe opens with seven two nine. It rained.",
    ],
)
def test_a_forgotten_text_is_recognized_in_another_form(tombstones: Tombstones, text: str) -> None:
    assert tombstones.is_forgotten(text)


@pytest.mark.parametrize("text", ["", "The safe is green.", "seven two nine", "Nobody else"])
def test_other_texts_are_not_forgotten(tombstones: Tombstones, text: str) -> None:
    assert not tombstones.is_forgotten(text)


def test_a_phrase_is_recognized_inside_other_words(tombstones: Tombstones) -> None:
    forget(tombstones, "", phrase="opens with seven two")
    assert tombstones.is_forgotten("I heard that it\n  opens with (seven two) or so.")
    assert not tombstones.is_forgotten("It opens with eight two.")
    assert tombstones.hash_phrase("the safe") is None, "two words are too common"
    assert tombstones.hash_phrase("hunter2password") is not None


def test_the_file_holds_no_text_and_no_hash_that_can_be_looked_up(
    tombstones: Tombstones, tmp_path: Path
) -> None:
    stored = Path(tombstones.path).read_text("utf-8")
    assert "safe" not in stored and Path(tombstones.path).stat().st_mode & 0o777 == 0o600
    other = Tombstones(str(tmp_path / "other.json"))
    forget(other, FACT)
    mine, theirs = (set(one.hashes_of("a b c d", "a b c d")) for one in (tombstones, other))
    assert not mine & theirs


def test_a_text_that_the_user_writes_again_is_no_longer_forgotten(tombstones: Tombstones) -> None:
    forget(tombstones, "Another thing that is forgotten")
    tombstones.lift(FACT)
    assert not tombstones.is_forgotten(FACT)
    assert tombstones.is_forgotten("Another thing that is forgotten")


def test_another_process_sees_what_was_forgotten(tombstones: Tombstones) -> None:
    reader = Tombstones(tombstones.path)
    assert not reader.is_forgotten("The heron nests by the pier")
    forget(tombstones, "The heron nests by the pier")
    assert reader.is_forgotten("The heron nests by the pier")


def test_a_damaged_file_is_reported(tombstones: Tombstones) -> None:
    Path(tombstones.path).write_text("[]")
    with pytest.raises(ClawmarkError, match="cannot be read"):
        tombstones.is_forgotten(FACT)


def test_nothing_is_forgotten_without_a_file(tmp_path: Path) -> None:
    empty = Tombstones(str(tmp_path / "none.json"))
    assert not empty.is_forgotten(FACT) and not empty.has_name("session", "x")
    empty.lift(FACT)
    assert not (tmp_path / "none.json").exists()


def test_a_damaged_file_does_not_keep_the_user_from_writing(
    tombstones: Tombstones, caplog: pytest.LogCaptureFixture
) -> None:
    Path(tombstones.path).write_text("[]")
    tombstones.lift(FACT)
    assert "cannot be read" in caplog.text
