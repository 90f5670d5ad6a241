from __future__ import annotations

from itertools import pairwise

from clawmark.text.chunking.outline import join_path, outline


def _paths(text: str) -> list[tuple[str, ...]]:
    return [section.path for section in outline(text).sections]


def test_sections_follow_each_other_without_a_gap() -> None:
    text = "intro\n# A\ntext\n## B\n\n### C\n# D"
    sections = outline(text).sections
    assert sections[0].start == 0
    assert sections[-1].end == len(text)
    assert all(one.end == two.start for one, two in pairwise(sections))


def test_a_heading_ends_the_headings_of_its_level_and_below() -> None:
    assert _paths("# A\n## B\n### C\n## D\n# E") == [
        ("A",),
        ("A", "B"),
        ("A", "B", "C"),
        ("A", "D"),
        ("E",),
    ]


def test_heading_levels_can_be_skipped() -> None:
    assert _paths("#### Deep\n# Top\n### Under") == [("Deep",), ("Top",), ("Top", "Under")]


def test_closing_hashes_are_not_part_of_a_title_but_c_sharp_is() -> None:
    assert _paths("## Title ##\n## C#") == [("Title",), ("C#",)]


def test_hashes_without_a_space_are_a_tag() -> None:
    assert _paths("#tag and text\n#another") == [()]


def test_seven_hashes_are_not_a_heading() -> None:
    assert _paths("####### seven") == [()]


def test_underlined_headings_start_sections_at_the_title_line() -> None:
    text = "Title\n=====\nbody\n\nSecond\n------\nmore"
    sections = outline(text).sections
    assert [section.path for section in sections] == [("Title",), ("Title", "Second")]
    assert text[sections[1].start :].startswith("Second")


def test_rules_and_list_items_are_not_underlined_headings() -> None:
    assert _paths("para\n\n---\n\nmore") == [()]
    assert _paths("- item\n---\ntext") == [()]
    assert _paths("| a |\n---\n") == [()]
    assert _paths("two lines\nof a paragraph\n---\ntext") == [()]


def test_a_comment_in_fenced_code_is_not_a_heading() -> None:
    found = outline("# A\n```sh\n# not a heading\n```\n## B")
    assert [section.path for section in found.sections] == [("A",), ("A", "B")]
    assert len(found.fences) == 1


def test_a_longer_fence_is_not_closed_by_a_shorter_one() -> None:
    assert _paths("````\n```\n# no\n```\n# no\n````\n# yes") == [(), ("yes",)]


def test_tildes_do_not_close_backticks() -> None:
    assert _paths("```\n~~~\n# no\n```\n# yes") == [(), ("yes",)]


def test_a_fence_that_is_never_closed_hides_nothing() -> None:
    assert _paths("# A\n```\ncode\n# B") == [("A",), ("B",)]


def test_inline_code_at_a_line_start_is_not_a_fence() -> None:
    assert _paths("```not a fence```\n# A\n```\n") == [(), ("A",)]


def test_front_matter_is_a_section_of_its_own() -> None:
    text = "---\ntitle: x\n# a comment\n---\n# A\ntext"
    sections = outline(text).sections
    assert text[: sections[0].end] == "---\ntitle: x\n# a comment\n---\n"
    assert [section.path for section in sections] == [(), ("A",)]


def test_front_matter_that_does_not_end_is_text() -> None:
    assert _paths("---\ntitle: x\n\n# A") == [(), ("A",)]


def test_a_front_matter_only_note_has_one_section() -> None:
    text = "---\na: b\n---"
    assert [(section.start, section.end) for section in outline(text).sections] == [(0, len(text))]


def test_a_path_is_cut_at_two_hundred_characters() -> None:
    assert len(join_path(("x" * 150, "y" * 150))) == 200
    assert len(outline("# " + "x" * 10_000).sections[0].path[0]) <= 200


def test_a_heading_without_words_adds_nothing_to_the_path() -> None:
    assert _paths("# A\n##\ntext") == [("A",), ("A",)]
