"""`lines-v5` mode makes the chunks that OpenClaw 2026.9 makes; `record_openclaw_v5.mjs` recorded
them.
"""

from __future__ import annotations

import json
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from clawmark.text.chunking.chunks import chunk_text

DATA = Path(__file__).parent / "data"
TEXTS: dict[str, list[tuple[str, int]]] = json.loads(
    (DATA / "openclaw_v5_inputs.json").read_text("utf-8")
)["texts"]
CASES: list[dict[str, Any]] = json.loads((DATA / "openclaw_v5_chunks.json").read_text("utf-8"))[
    "cases"
]


def written(name: str) -> str:
    return "".join(part * times for part, times in TEXTS[name])


@pytest.mark.parametrize("name", TEXTS)
def test_chunks_are_those_that_openclaw_2026_9_made(name: str) -> None:
    cases = [case for case in CASES if case["text"] == name]
    assert cases
    for case in cases:
        path = "MEMORY.md" if case["perEntry"] else "memory/2026-09-01.md"
        chunks = chunk_text(written(name), "lines-v5", case["tokens"], case["overlap"], path)
        rows = [[chunk.start_line, chunk.end_line, chunk.hash[:16]] for chunk in chunks]
        case_is = (case["tokens"], case["overlap"], path)
        assert (len(rows), rows[:4]) == (case["count"], case["first"]), case_is
        assert (
            sha256(json.dumps(rows, separators=(",", ":")).encode()).hexdigest() == case["all"]
        ), case_is


def test_only_the_curated_files_are_cut_entry_by_entry() -> None:
    text = "- one\n- two\n"
    assert [chunk.text for chunk in chunk_text(text, "lines-v5", 400, 80, "USER.md")] == [
        "- one",
        "- two\n",
    ]
    assert [chunk.text for chunk in chunk_text(text, "lines-v5", 400, 80, "memory/MEMORY.md")] == [
        text
    ]


def test_a_file_full_of_unfinished_annotations_is_read_in_one_pass() -> None:
    text = "<!-- trigger: " * 200_000 + "\n-->" + " " * 500_000 + "x <!-- importance: 3 -->"
    chunks = chunk_text(text, "lines-v5", 400, 80)
    assert chunks[-1].text.endswith("x")
