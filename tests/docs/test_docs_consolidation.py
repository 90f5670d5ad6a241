"""The committed example of a consolidation is what the rules make of the sample logs.

With WRITE_EXAMPLES=1 in the environment, the test writes the example."""

from __future__ import annotations

import os
from datetime import UTC, date, datetime
from pathlib import Path

from docblocks import ROOT

from clawmark import Memory
from clawmark.workspace.sample import write_sample

EXAMPLE = ROOT / "docs" / "examples" / "consolidation.diff"
NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_the_example_is_the_consolidation_of_thirty_days_of_the_sample(tmp_path: Path) -> None:
    root = tmp_path / "workspace"
    root.mkdir()
    write_sample(str(root), date(2026, 3, 2))
    with Memory.open(
        root, state_dir=tmp_path / "state", provider="none", clock=lambda: NOW, background=False
    ) as memory:
        made = memory.consolidate(days=30, rules_only=True, dry_run=True).patch
    if os.environ.get("WRITE_EXAMPLES"):
        EXAMPLE.write_text(made, encoding="utf-8")
    assert made == EXAMPLE.read_text(encoding="utf-8")
