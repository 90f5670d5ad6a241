from __future__ import annotations

from clawmark.text.chunking.lines import chunk_lines, weighted_length


def test_a_cjk_character_weighs_four_also_when_it_takes_two_units() -> None:
    assert weighted_length("a记b") == 6
    assert weighted_length("𠀀") == 4
    assert weighted_length("😀") == 2


def test_latin_text_is_cut_the_same_with_and_without_cjk_weights() -> None:
    text = "\n".join(f"line {number} " + "word " * 40 for number in range(50))
    assert chunk_lines(text, 100, 20, weigh_cjk=True) == chunk_lines(text, 100, 20, weigh_cjk=False)


def test_overlapping_lines_are_repeated_at_the_start_of_the_next_chunk() -> None:
    text = "\n".join(f"{number:03}" + "x" * 97 for number in range(1, 31))
    first, second = chunk_lines(text, 400, 80)[:2]
    assert first.end_line >= second.start_line
    assert second.text.split("\n")[0] == text.split("\n")[second.start_line - 1]


def test_without_overlap_no_line_is_repeated() -> None:
    text = "\n".join("x" * 100 for _ in range(40))
    chunks = chunk_lines(text, 100, 0)
    assert [chunk.start_line for chunk in chunks[1:]] == [
        chunk.end_line + 1 for chunk in chunks[:-1]
    ]


def test_a_cut_inside_a_pair_leaves_replacement_characters() -> None:
    chunks = chunk_lines("a" + "😀" * 40, 10, 0)
    assert chunks[0].text.endswith("\ufffd")
    assert chunks[1].text.startswith("\ufffd")


def test_pieces_of_cjk_text_do_not_divide_surrogate_pairs() -> None:
    chunks = chunk_lines("a" + "𠀀" * 100, 10, 0)
    assert all("\ufffd" not in chunk.text for chunk in chunks[:1])
    assert "".join(chunk.text for chunk in chunks).count("𠀀") >= 95
