"""Long texts are compared line by line without quadratic time."""

from __future__ import annotations

import difflib
import random

import pytest

from clawmark.text.line_diff import MOST_COMPARED, line_changes, unified_lines


class Line(str):
    """A line that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Line.compared += 1
        return str.__eq__(self, other)


def patched(old: list[str], new: list[str]) -> list[str]:
    """Apply the changes to the old lines."""
    lines = list[str]()
    at = new_at = 0
    for change in line_changes(old, new):
        assert (change.old_start, change.new_start) == (at, new_at)
        equal = change.kind == "equal"
        lines += (
            old[change.old_start : change.old_end]
            if equal
            else new[change.new_start : change.new_end]
        )
        at, new_at = change.old_end, change.new_end
    assert (at, new_at) == (len(old), len(new))
    return lines


@pytest.mark.parametrize("length", [0, 5, MOST_COMPARED, 3 * MOST_COMPARED])
def test_the_changes_lead_from_one_text_to_the_other(length: int) -> None:
    chance = random.Random(length)
    for kinds in (2, 50, 100_000):
        old = [f"line {chance.randrange(kinds)}" for _ in range(length)]
        new = [line for line in old if chance.random() > 0.1]
        for _ in range(20):
            new.insert(chance.randrange(len(new) + 1), f"new {chance.randrange(5)}")
        assert patched(old, new) == new
        assert patched(new, old) == old


def test_a_changed_line_of_a_long_text_is_the_only_change() -> None:
    old = [f"- entry {number}" if number % 2 else "" for number in range(20_000)]
    new = [*old]
    new[9_001] = "- changed"
    changes = [one for one in line_changes(old, new) if one.kind != "equal"]
    assert [tuple(one) for one in changes] == [("replace", 9_001, 9_002, 9_001, 9_002)]


@pytest.mark.parametrize("kind", ["blank lines", "every second line", "no common line"])
def test_comparisons_grow_with_the_length(kind: str) -> None:
    def lines(length: int, version: str) -> list[str]:
        texts = {
            "blank lines": lambda at: Line(version if at in (1, length - 1) else "-" * (at % 2)),
            "every second line": lambda at: Line(f"{version if at % 2 else ''} {at}"),
            "no common line": lambda at: Line(f"{version} {at % 7}"),
        }
        return [texts[kind](at) for at in range(length)]

    counts = list[int]()
    for length in (2_000, 8_000):
        old, new = lines(length, "old"), lines(length, "new")
        Line.compared = 0
        line_changes(old, new)
        counts.append(Line.compared)
    assert counts[1] < 6 * counts[0] + 1000


def test_a_unified_diff_is_that_of_difflib() -> None:
    chance = random.Random(7)
    for _ in range(300):
        old = [f"{chance.randrange(40)}\n" for _ in range(chance.randrange(40))]
        new = [line for line in old if chance.random() > 0.1]
        if chance.random() > 0.3:
            new.insert(chance.randrange(len(new) + 1), "new\n")
        ours = list(unified_lines(old, new, old_name="a", new_name="b"))
        assert ours == list(difflib.unified_diff(old, new, "a", "b"))
