"""Every torture loop holds its promise in a small run; `scripts/torture` runs them whole."""

from __future__ import annotations

from pathlib import Path

import pytest
from frame import loops, run_loop


@pytest.mark.parametrize("name", loops())
def test_a_small_run_of_the_loop_finds_nothing(name: str, tmp_path: Path) -> None:
    outcome = run_loop(name, tmp_path / "work", full=False)
    if outcome.skipped:
        pytest.skip(outcome.skipped)
    assert outcome.failed == 0, "\n".join(outcome.complaints)
    assert outcome.passed > 0
