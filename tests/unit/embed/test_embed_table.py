"""The packed file, made from a small source of the same form as the real one."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from clawmark.embed.local.static import PATH
from clawmark.embed.local.static_table import (
    NO_PIECE,
    SHA256,
    Table,
    is_packed,
    is_reachable,
    pack,
    packed,
)

DIMS = 4
PIECES = ["▁the", "The", "er", "▁", "t", "a.b", "é", "foo_", "▁▁"]


def source() -> tuple[bytes, bytes, dict[str, list[float]]]:
    """Weights as a safetensors file, a tokenizer, and the numbers by piece."""
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *PIECES]
    rows = {
        name: [(number % 7) - 3.5, number / 100, -8.0 / (1 + number), 0.0]
        for number, name in enumerate(names)
    }
    data = b"".join(struct.pack(f"<{DIMS}e", *row) for row in rows.values())
    header = json.dumps(
        {
            "embedding.weight": {
                "dtype": "F16",
                "shape": [len(names), DIMS],
                "data_offsets": [0, len(data)],
            }
        }
    ).encode()
    tokenizer = json.dumps(
        {"model": {"vocab": {name: number for number, name in enumerate(names)}}}
    ).encode()
    return struct.pack("<Q", len(header)) + header + data, tokenizer, rows


def test_numbers_survive_packing_within_half_a_step() -> None:
    weights, tokenizer, rows = source()
    table = Table(packed(weights, tokenizer))
    kept = [
        row for name, row in rows.items() if name.startswith("<0x") or table.find(name) != NO_PIECE
    ]
    unit = max(abs(number) for row in kept for number in row) / 255 / 127
    for piece in ("▁the", "er", "é", "foo_"):
        row = table.find(piece)
        factor = table.factor(row)
        numbers = [(byte - 128) * factor * unit for byte in table.row(row)]
        assert numbers == pytest.approx(rows[piece], abs=factor * unit * 0.51 + 0.004)


def test_only_pieces_that_lower_case_words_can_contain_are_kept() -> None:
    weights, tokenizer, _ = source()
    table = Table(packed(weights, tokenizer))
    assert [piece for piece in PIECES if table.find(piece) != NO_PIECE] == [
        "▁the",
        "er",
        "▁",
        "t",
        "é",
        "foo_",
    ]
    assert not is_reachable("The")
    assert is_reachable("▁größe")


def test_both_ways_to_look_a_piece_up_agree() -> None:
    weights, tokenizer, _ = source()
    slow, fast = Table(packed(weights, tokenizer)), Table(packed(weights, tokenizer))
    fast.prepare()
    for piece in [*PIECES, "", "absent", "th", "▁th", "e\n", "é\ner"]:
        assert slow.find(piece) == fast.find(piece)


def test_packing_is_deterministic() -> None:
    weights, tokenizer, _ = source()
    assert packed(weights, tokenizer) == packed(weights, tokenizer)


def test_the_order_of_pieces_is_the_order_of_their_ids() -> None:
    weights, tokenizer, _ = source()
    table = Table(packed(weights, tokenizer))
    assert table.find("▁the") < table.find("er") < table.find("foo_")


def test_the_installed_table_is_the_pinned_one(tmp_path: Path) -> None:
    assert is_packed(PATH)
    assert not is_packed(str(tmp_path / "absent.bin"))


def test_sources_of_another_version_are_refused(tmp_path: Path) -> None:
    weights, tokenizer, _ = source()
    (tmp_path / "w").write_bytes(weights)
    (tmp_path / "t").write_bytes(tokenizer)
    with pytest.raises(ValueError, match="not the file of wordllama"):
        pack(str(tmp_path / "w"), str(tmp_path / "t"), str(tmp_path / "out.bin"))
    assert not (tmp_path / "out.bin").exists()


def test_the_pinned_hash_is_a_sha256() -> None:
    assert len(bytes.fromhex(SHA256)) == 32
