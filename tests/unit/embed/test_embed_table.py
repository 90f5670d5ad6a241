"""The file of the static table, made small by the code that makes the real one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from training.files import table_file

from clawmark.embed.local.static import PATH, split_pieces
from clawmark.embed.local.static_table import BYTES, MIDDLE, NO_PIECE, SHA256, Table, sha256

DIMS = 4
PIECES = ["▁the", "er", "▁", "t", "é", "foo_", "▁them", "mem"]


def steps() -> np.ndarray[tuple[int, int], np.dtype[np.int8]]:
    rows = np.arange((BYTES + len(PIECES)) * DIMS).reshape(-1, DIMS) % 16 - 8
    return rows.astype(np.int8)


@pytest.fixture
def made() -> bytes:
    factors = np.arange(BYTES + len(PIECES)) % 255 + 1
    return table_file(steps(), factors.astype(np.uint8), PIECES)


def test_numbers_and_factors_are_read_as_they_were_written(made: bytes) -> None:
    table = Table(made)
    for piece in PIECES:
        row = table.find(piece)
        assert [byte - MIDDLE for byte in table.row(row)] == steps()[row].tolist()
        assert table.factor(row) == row % 255 + 1


def test_both_ways_to_look_a_piece_up_agree(made: bytes) -> None:
    slow, fast = Table(made), Table(made)
    fast.prepare()
    for piece in [*PIECES, "", "absent", "th", "▁th", "e\n", "é\ner"]:
        assert slow.find(piece) == fast.find(piece)


def test_rows_follow_the_order_of_the_pieces(made: bytes) -> None:
    table = Table(made)
    assert [table.find(piece) for piece in PIECES] == list(range(BYTES, BYTES + len(PIECES)))
    assert table.find("absent") == NO_PIECE


def test_a_word_is_cut_into_its_longest_pieces_from_the_left(made: bytes) -> None:
    table = Table(made)

    def cut(word: str) -> list[str]:
        rows = split_pieces(table.find, word)
        return [f"<{row:02x}>" if row < BYTES else PIECES[row - BYTES] for row in rows]

    assert cut("▁them") == ["▁them"]
    assert cut("▁theer") == ["▁the", "er"]
    assert cut("▁mémem") == ["▁", "<6d>", "é", "mem"]
    assert cut("▁ö") == ["▁", "<c3>", "<b6>"]


def test_making_the_file_is_deterministic(made: bytes) -> None:
    factors = (np.arange(BYTES + len(PIECES)) % 255 + 1).astype(np.uint8)
    assert table_file(steps(), factors, PIECES) == made


def test_the_installed_table_is_the_pinned_one() -> None:
    assert sha256(Path(PATH).read_bytes()) == SHA256
