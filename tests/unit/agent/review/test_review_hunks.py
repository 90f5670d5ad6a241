"""Hunks are made from two texts, and applied where their lines stand."""

from __future__ import annotations

import random

import pytest

from clawmark.agent.review.hunks import (
    Applied,
    Because,
    Hunk,
    NoLongerApplies,
    appended_hunk,
    apply_hunks,
    hunk_hash,
    is_applied,
    make_hunks,
)

PAGE = """\
# Memory

## People

- Carla lives in Lisbon
- Tom likes tea

## Projects

- The ferry starts in February
"""


def because(_: str) -> Because:
    return Because("The log says so.", ("memory/2026-11-02.md#L4",))


def hunks_of(new: str, base: str = PAGE) -> tuple[Hunk, ...]:
    return make_hunks("MEMORY.md", base, new, because)


def applied(text: str, *hunks: Hunk) -> str:
    result = apply_hunks(text, hunks)
    assert isinstance(result, Applied), result
    return result.text


def test_hunks_of_a_change_give_the_new_text_back() -> None:
    new = PAGE.replace("February", "March").replace("- Tom likes tea\n", "")
    hunks = hunks_of(new)
    assert len(hunks) == 2
    assert applied(PAGE, *hunks) == new
    assert hunks[0].citations == ("memory/2026-11-02.md#L4",)


def test_a_hunk_is_applied_alone() -> None:
    new = PAGE.replace("February", "March").replace("- Tom likes tea\n", "")
    _, second = hunks_of(new)
    assert applied(PAGE, second) == PAGE.replace("February", "March")


def test_a_hunk_finds_its_lines_after_they_have_moved() -> None:
    (hunk,) = hunks_of(PAGE.replace("February", "March"))
    moved = PAGE.replace("# Memory\n", "# Memory\n\n- New line\n- Another one\n")
    assert applied(moved, hunk) == moved.replace("February", "March")


def test_added_lines_go_to_their_section_after_other_sections_were_added() -> None:
    (hunk,) = hunks_of(PAGE.replace("- Tom likes tea\n", "- Tom likes tea\n- Ada plays chess\n"))
    changed = PAGE + "\n## Places\n\n- Porto\n"
    assert "- Tom likes tea\n- Ada plays chess\n\n## Projects" in applied(changed, hunk)


def test_two_appended_hunks_go_to_the_end_in_the_order_of_acceptance() -> None:
    one, other = (appended_hunk("MEMORY.md", text, "why") for text in ("- one\n", "- two\n"))
    assert applied(applied(PAGE, one), other) == PAGE + "- one\n- two\n"


def test_an_appended_hunk_starts_a_new_file() -> None:
    hunk = appended_hunk("memory/x.md", "- one\n", "why", header="# Day\n\n")
    assert applied("", hunk) == "# Day\n\n- one\n"


def test_a_file_without_a_last_line_end_is_added_to_on_a_new_line() -> None:
    assert applied("- old", appended_hunk("MEMORY.md", "- new", "why")) == "- old\n- new\n"


def test_lines_that_were_changed_no_longer_apply() -> None:
    (hunk,) = hunks_of(PAGE.replace("February", "March"))
    result = apply_hunks(PAGE.replace("February", "April"), [hunk])
    assert result == NoLongerApplies(
        1, "MEMORY.md", "the lines it changes are no longer in the file"
    )


def test_added_text_that_is_there_already_no_longer_applies() -> None:
    hunk = appended_hunk("MEMORY.md", "- Tom likes tea", "why")
    result = apply_hunks(PAGE, [hunk])
    assert isinstance(result, NoLongerApplies)
    assert "already" in result.reason


def test_added_lines_without_their_surroundings_no_longer_apply() -> None:
    (hunk,) = hunks_of(PAGE.replace("- Tom likes tea\n", "- Tom likes tea\n- Ada plays chess\n"))
    assert isinstance(apply_hunks("# Something else\n\n- x\n", [hunk]), NoLongerApplies)


def test_a_repeated_line_is_changed_where_its_neighbours_are() -> None:
    page = "- a\n- todo\n- b\n- c\n- todo\n- d\n"
    (hunk,) = hunks_of("- a\n- todo\n- b\n- c\n- done\n- d\n", page)
    moved = "- new\n- c\n- todo\n- d\n- a\n- todo\n- b\n"
    assert applied(moved, hunk) == moved.replace("- c\n- todo", "- c\n- done")


def test_a_repeated_line_whose_neighbours_are_gone_no_longer_applies() -> None:
    (hunk,) = hunks_of("- a\n- done\n- b\n", "- a\n- todo\n- b\n")
    result = apply_hunks("- x\n- todo\n- y\n- todo\n- z\n", [hunk])
    assert isinstance(result, NoLongerApplies)
    assert "2 times" in result.reason


def test_line_ends_of_windows_are_kept() -> None:
    page = PAGE.replace("\n", "\r\n")
    (hunk,) = hunks_of(PAGE.replace("February", "March"))
    assert applied(page, hunk) == page.replace("February", "March")


def test_added_lines_with_different_reasons_are_different_hunks() -> None:
    new = PAGE.replace("- Tom likes tea\n", "- Tom likes tea\n- Ada plays chess\n- Bo sings\n")
    hunks = make_hunks(
        "MEMORY.md", PAGE, new, lambda line: Because(f"about {line}") if line else None
    )
    assert [hunk.new for hunk in hunks] == ["- Ada plays chess", "- Bo sings"]
    assert applied(PAGE, *hunks) == new
    assert applied(PAGE, hunks[1]) == new.replace("- Ada plays chess\n", "")


def test_a_new_heading_belongs_to_the_lines_below_it() -> None:
    new = PAGE + "\n## Places\n\n- Porto\n"
    (hunk,) = make_hunks(
        "MEMORY.md", PAGE, new, lambda line: Because("seen") if "Porto" in line else None
    )
    assert hunk.new == "\n## Places\n\n- Porto"
    assert hunk.reason == "seen"


def test_the_hash_of_a_hunk_ignores_labels_case_and_place() -> None:
    label = "<!-- clawmark: origin=agent session=agent:main:main -->"
    one = appended_hunk("MEMORY.md", f"- Tom likes tea {label}", "why")
    other = Hunk(path="MEMORY.md", old="", new="* tom likes tea.", reason="x", start_line=7)
    assert hunk_hash(one) == hunk_hash(other)
    assert hunk_hash(one) != hunk_hash(one._replace(path="memory/x.md"))


def test_two_hunks_for_the_same_lines_do_not_apply_together() -> None:
    (one,) = hunks_of(PAGE.replace("February", "March"))
    result = apply_hunks(PAGE, [one, one._replace(new="- The ferry starts in May")])
    assert result == NoLongerApplies(2, "MEMORY.md", "it changes the same lines as hunk 1")


def test_a_line_is_moved_to_another_section() -> None:
    moved = PAGE.replace("- Tom likes tea\n", "") + "- Tom likes tea\n"
    assert applied(PAGE, *hunks_of(moved)) == moved


@pytest.mark.parametrize("seed", range(100))
def test_hunks_of_random_changes_apply_once(seed: int) -> None:
    chance = random.Random(seed)
    lines = [f"- line {number}" if chance.random() < 0.8 else "" for number in range(20)]
    new = [line for line in lines if chance.random() < 0.8]
    for number in range(4):
        new.insert(chance.randrange(len(new) + 1), f"- new {number}")
    before, after = ("\n".join([*some, ""]) for some in (lines, new))
    hunks = hunks_of(after, before)
    assert _content(applied(before, *hunks)) == _content(after)
    for hunk in hunks:
        if hunk.new and not hunk.old:
            assert is_applied(applied(before, hunk), [hunk])
            assert isinstance(apply_hunks(applied(before, hunk), [hunk]), NoLongerApplies)


def _content(text: str) -> list[str]:
    return [line for line in text.split("\n") if line]
