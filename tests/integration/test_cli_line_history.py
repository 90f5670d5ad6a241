"""`clawmark history PATH#L4`: the texts that one line had."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Place, new_place


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return new_place(tmp_path)


def test_the_history_of_a_line_has_each_text_it_had(place: Place) -> None:
    place.write("MEMORY.md", "# Facts\n\n- The launch is in February\n- Ann likes tea\n")
    place.run("index")
    place.write("MEMORY.md", "# Facts\n\nNew.\n- The launch moved to March\n- Ann likes tea\n")
    shown = place.run("history", "MEMORY.md#L4")
    assert shown.code == 0, shown.err
    lines = [line for line in shown.out.split("\n") if line[:1] in "+-"]
    assert [line for line in lines if line] == [
        "-- The launch is in February",
        "+- The launch moved to March",
        "+- The launch is in February",
    ]
    found = place.run("history", "--json", "MEMORY.md#L4").json()
    assert [one["text"] for one in found["texts"]] == [
        "- The launch moved to March",
        "- The launch is in February",
    ]
    missing = place.run("history", "MEMORY.md#L99")
    assert (missing.code, missing.out) == (0, "")
    assert "has no line 99 of MEMORY.md" in missing.err
