from __future__ import annotations

from itertools import pairwise

from clawmark.text.chunking.long_lines import cut_line
from clawmark.text.chunking.tokens import quarter_tokens


def _cut(text: str, limit: int, overlap: int = 0) -> list[str]:
    spans = cut_line(
        text, 0, len(text), limit, overlap, lambda start, end: quarter_tokens(text[start:end])
    )
    return [text[start:end] for start, end in spans]


def test_a_line_that_fits_is_one_piece() -> None:
    assert _cut("short", 32) == ["short"]


def test_cuts_fall_after_sentences() -> None:
    pieces = _cut("One whole sentence here. Another sentence there! A third one? Yes.", 40)
    assert pieces == ["One whole sentence here. ", "Another sentence there! A third one? ", "Yes."]


def test_without_sentences_cuts_fall_between_words() -> None:
    pieces = _cut("word " * 100, 40)
    assert all(piece.strip().replace("word", "").strip() == "" for piece in pieces)


def test_chinese_is_cut_after_its_full_stop() -> None:
    assert _cut("记忆系统很重要。我们讨论过方案。", 40) == ["记忆系统很重要。", "我们讨论过方案。"]


def test_a_letter_is_not_separated_from_its_marks() -> None:
    pieces = _cut("e\u0301" * 100, 33)
    assert all(not piece.startswith("\u0301") for piece in pieces)


def test_a_joined_emoji_is_not_cut() -> None:
    pieces = _cut("👩\u200d💻" * 50, 33)
    assert all(not piece.startswith("\u200d") and not piece.endswith("\u200d") for piece in pieces)


def test_pieces_share_whole_words_with_the_piece_before() -> None:
    text = " ".join(f"w{number:03}" for number in range(200))
    pieces = _cut(text, 100, 30)
    for before, after in pairwise(pieces):
        assert after.split()[0] in before.split()


def test_too_much_overlap_terminates() -> None:
    text = "word " * 1000
    assert len(_cut(text, 40, 4000)) < 1000
