from __future__ import annotations

import pytest

from clawmark.config.schema import Chunking
from clawmark.text.chunking.chunks import chunk_text


def test_the_chunking_key_names_every_setting_that_changes_chunks() -> None:
    assert Chunking().name == "markdown-1:400/80"
    assert Chunking(mode="lines").name != Chunking().name
    assert Chunking(tokens=200).name != Chunking().name
    assert Chunking(overlap=0).name != Chunking().name


@pytest.mark.parametrize("mode", ["markdown", "lines"])
def test_lone_surrogates_are_stored_as_replacement_characters(mode: str) -> None:
    (chunk,) = chunk_text("broken \ud800 text", mode, 400, 80)
    assert chunk.text == "broken \ufffd text"


@pytest.mark.parametrize("mode", ["markdown", "lines"])
def test_an_overlap_as_large_as_the_chunk_terminates(mode: str) -> None:
    text = "\n".join(f"line {number}" for number in range(500))
    assert len(chunk_text(text, mode, 10, 10_000)) < 500
