"""Masks and duplicates are found before a text is written."""

from __future__ import annotations

import pytest

from clawmark.text.secrets.redact import mask
from clawmark.text.write_check import FileText, check_write

MASKED = f"The key is {mask('openai')}."
LOG = FileText("memory/2026-02-24.md", "# 2026-02-24\n\n- Ada prefers tea.\n- Bob lives in Bern\n")


def test_mask_is_a_problem() -> None:
    problem = check_write(MASKED)
    assert problem is not None and problem.reason == "mask"


def test_mask_is_accepted_if_the_replaced_text_has_one() -> None:
    assert check_write(MASKED + " It was renewed.", current=MASKED) is None


@pytest.mark.parametrize("text", ["The key is sk-…a1b2", "password: ****"])
def test_foreign_mask_is_a_problem_only_on_request(text: str) -> None:
    assert check_write(text) is None
    problem = check_write(text, foreign_masks=True)
    assert problem is not None and problem.reason == "mask"


@pytest.mark.parametrize("text", ["ada prefers TEA", "* Ada  prefers tea!", "1. Ada prefers tea"])
def test_duplicate_is_found_in_another_notation(text: str) -> None:
    problem = check_write(text, files=[LOG])
    assert problem is not None and problem.reason == "duplicate"
    assert "memory/2026-02-24.md#L3" in problem.message


def test_text_with_a_new_paragraph_is_not_a_duplicate() -> None:
    assert check_write("Ada prefers tea.\n\nShe dislikes coffee.", files=[LOG]) is None
    assert check_write("Ada prefers tea.\n\nBob lives in Bern.", files=[LOG]) is not None
