"""`lines` mode makes the chunks, ids and pieces that OpenClaw makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from clawmark.text.chunking.chunks import chunk_text
from clawmark.text.chunking.lines import chunk_lines
from clawmark.text.chunking.tokens import utf16_length

RECORDED: dict[str, Any] = json.loads(
    (Path(__file__).parent / "data" / "openclaw_chunks.json").read_text(encoding="utf-8")
)

INPUTS = {
    "empty": "",
    "one_line": "hello",
    "trailing_newline": "a\nb\n",
    "lines30x100": "\n".join(f"L{number} {'x' * 100}"[:100] for number in range(1, 31)),
    "lines10x700": "\n".join(f"L{number} {'y' * 700}"[:700] for number in range(1, 11)),
    "longline5000": "a" * 5000,
    "short_then_long": "intro\n" + "b" * 3500 + "\nend",
    "cjk2000": "你" * 2000,
    "cjk_lines": "\n".join(["记忆系统" * 25] * 20),
    "emoji1700": "😀" * 1700,
    "blanklines": "\n" * 10,
    "surrogate_cut": "a" + "😀" * 1700,
}


def _cases() -> list[Any]:
    return [
        pytest.param(
            case, weigh_cjk, id=f"{case['input']}-{case['tokens']}-{case['overlap']}-{weigh_cjk}"
        )
        for case in RECORDED["chunks"]
        for weigh_cjk in case["weigh_cjk"]
    ]


@pytest.mark.parametrize(("case", "weigh_cjk"), _cases())
def test_chunks_are_those_that_openclaw_made(case: dict[str, Any], weigh_cjk: bool) -> None:
    chunks = chunk_lines(INPUTS[case["input"]], case["tokens"], case["overlap"], weigh_cjk)
    rows: list[Any] = [
        [chunk.start_line, chunk.end_line, utf16_length(chunk.text), chunk.hash[:16]]
        for chunk in chunks
    ]
    assert len(rows) == case["count"]
    recorded = case["rows"]
    if "..." in recorded:
        gap = recorded.index("...")
        rows[gap : gap + len(rows) - len(recorded) + 1] = ["..."]
    assert rows == recorded


def test_lines_mode_weighs_cjk_as_the_later_releases_do() -> None:
    lengths = [len(chunk.text) for chunk in chunk_text(INPUTS["cjk2000"], "lines", 400, 80)]
    assert lengths == [400, 801, 801, 801, 801]


def test_lines_mode_drops_blank_chunks() -> None:
    assert chunk_text(INPUTS["empty"], "lines", 400, 80) == []
    assert chunk_text(INPUTS["blanklines"], "lines", 400, 80) == []


def test_the_scope_without_extra_paths_has_the_fingerprint_known_by_heart() -> None:
    import hashlib

    from clawmark.composition.index_identity import NO_EXTRA_PATHS

    text = (
        '{"extraPaths":[],"multimodal":{"enabled":false,"modalities":[],"maxFileBytes":10485760}}'
    )
    assert hashlib.sha256(text.encode()).hexdigest() == NO_EXTRA_PATHS
