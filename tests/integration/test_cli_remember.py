"""`clawmark remember` uses the same write gate as agents, and --force overrides it."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Place, new_place, says_one_clear_thing

from clawmark.text.entry_times import without_times

KEY = "sk-proj-Ab3dEf6hIj9kLm2nOp5qRs8tUv1wXy4z"

REFUSED = [
    ("We chose PostgreSQL for billing because MySQL was slow", "duplicate"),
    (f"The key of the billing account is {KEY}", "secret"),
    ("api_key: 9f8e7d6c5b4a39281706", "secret"),
    ("# Notes", "empty"),
    ('{"results": [1, 2]}', "tool-noise"),
    ("The password is ***", "mask"),
    ("long words " * 300, "too-long"),
]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def logs(place: Place) -> dict[str, str]:
    return {file.name: file.read_text() for file in (place.workspace / "memory").iterdir()}


@pytest.mark.parametrize(
    ("text", "reason"), REFUSED, ids=[f"{number}-{why}" for number, (_, why) in enumerate(REFUSED)]
)
def test_refused_note_changes_nothing_and_force_keeps_it(
    place: Place, text: str, reason: str
) -> None:
    before = logs(place)
    refused = place.run("remember", text)
    assert refused.code == 4 and refused.out == ""
    assert (
        says_one_clear_thing(refused)
        and "Not remembered" in refused.err
        and "--force" in refused.err
    )
    assert KEY not in refused.err
    told = place.run("remember", "--json", text)
    assert told.code == 4 and told.err == ""
    assert told.json()["ok"] is False and told.json()["error"]["reason"] == reason
    assert "--force" in told.json()["error"]["hint"]
    assert logs(place) == before

    forced = place.run("remember", "--force", "--json", text)
    assert forced.code == 0
    written = forced.json()
    kept = (place.workspace / written["path"]).read_text().splitlines()[written["startLine"] - 1]
    assert without_times(kept) == f"- {text.strip()}"


def test_duplicate_names_the_place_where_the_note_is(place: Place) -> None:
    refused = place.run("remember", "--to", "memory/2026-11-15.md", "Tea with Ann at the harbour")
    assert refused.code == 4 and "memory/2026-11-15.md#L3" in refused.err
    first = place.run("remember", "The ferry leaves at seven", "--json").json()["citation"]
    assert first in place.run("remember", "the ferry leaves at seven.").err


def test_note_in_todays_log_may_be_promoted_to_long_term_memory(place: Place) -> None:
    assert place.run("remember", "The ferry leaves at seven").code == 0
    assert place.run("remember", "--to", "MEMORY.md", "The ferry leaves at seven").code == 0
    assert place.run("remember", "--to", "MEMORY.md", "The ferry leaves at seven").code == 4


def test_configured_key_of_any_shape_is_refused(place: Place) -> None:
    text = "Billing uses correct-horse-battery"
    refused = place.run("remember", text, env={"ANTHROPIC_API_KEY": "correct-horse-battery"})
    assert refused.code == 4 and "secret" in refused.err and "correct-horse" not in refused.err
    assert place.run("remember", text).code == 0


def test_redaction_mask_is_refused_even_with_force(place: Place) -> None:
    refused = place.run("remember", "The key is [redacted:key]")
    assert refused.code == 4 and "--force" not in refused.err
    assert place.run("remember", "--force", "The key is [redacted:key]").code != 0
    assert "redacted" not in "".join(logs(place).values())


def test_empty_text_is_a_usage_error_also_with_force(place: Place) -> None:
    assert place.run("remember", " ").code == 2
    assert place.run("remember", "--force", " ").code == 2


def test_note_is_remembered_when_long_term_memory_cannot_be_compared(place: Place) -> None:
    (place.workspace / "MEMORY.md").write_bytes(b"\xff\xfe\x00\xd8 not text \x00")
    assert place.run("remember", "The ferry leaves at seven").code == 0
