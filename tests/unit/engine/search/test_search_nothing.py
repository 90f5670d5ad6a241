"""An answer without hits says why."""

from __future__ import annotations

import pytest

from clawmark.engine.search.pipeline import _no_chunks
from clawmark.model.values import Freshness


@pytest.mark.parametrize(
    ("due", "message"),
    [
        (1, "Still indexing: 1 file is due."),
        (2, "Still indexing: 2 files are due."),
    ],
)
def test_files_that_are_due_are_counted_in_a_correct_sentence(due: int, message: str) -> None:
    assert _no_chunks(Freshness(due, "", 0.0)).message == message
