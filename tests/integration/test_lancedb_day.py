"""A day of 40 scripted turns through the hooks of memory-lancedb."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("lancedb")
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("day", ["day-1", "day-2"])
def test_a_day_of_40_turns_captures_no_recalled_text_no_duplicate_and_no_secret(
    tmp_path: Path, day: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench"))
    import capture  # type: ignore[import-not-found, unused-ignore]

    script = capture.read_script(day)
    assert len(script.turns) == 40
    outcome = capture.run_day(script, tmp_path, capture.embedder_of("static", str(tmp_path)))
    counts = outcome.counts
    assert (counts["recalled"], counts["duplicates"], counts["secrets"]) == (0, 0, 0)
    for name, least in capture.LIMITS.items():
        assert outcome.figures[name] >= least, (name, outcome.mistakes)
