"""The lines of `clawmark search --batch`."""

from __future__ import annotations

import pytest

from clawmark.cli.batch import read_line
from clawmark.model.errors import ClawmarkError


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (b"plain words\n", (7, "plain words", {})),
        (b'{"id": "q1", "query": "tea", "more": 1}', ("q1", "tea", {})),
        (b'{"query": "tea", "since": "7d", "path": null}', (7, "tea", {"since": "7d"})),
        (b"bad \xff byte", (7, "bad \ufffd byte", {})),
    ],
)
def test_a_line_of_a_batch_is_text_or_an_object(line: bytes, expected: tuple[object, ...]) -> None:
    assert read_line(line, 7) == expected


@pytest.mark.parametrize(
    "line",
    [
        b"{",
        b'{"id": 1}',
        b'{"id": [], "query": "x"}',
        b'{"id": NaN, "query": "x"}',
        b"{" * 9999,
        None,
    ],
)
def test_a_batch_line_without_a_query_is_refused(line: bytes | None) -> None:
    with pytest.raises(ClawmarkError):
        read_line(line, 7)
