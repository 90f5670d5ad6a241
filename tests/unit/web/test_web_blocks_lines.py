"""Blocks of a text with unusual line ends have the lines that citations have."""

from __future__ import annotations

import pytest

from clawmark.web.blocks import split_blocks


@pytest.mark.parametrize("end", ["\r", "\r\n", "\n"])
def test_blocks_of_any_line_end_stay_within_the_lines_of_the_text(end: str) -> None:
    text = end.join(["# Title", "", "- one", "- two", "", "A paragraph."])
    last = text.count("\n") + 1
    blocks = split_blocks(text)
    assert blocks and all(1 <= one.start_line <= one.end_line <= last for one in blocks)
