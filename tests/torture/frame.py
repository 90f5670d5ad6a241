"""What every torture loop is made of: a name, a way to run it small or whole, and an outcome that
can be kept.

A loop is a module of this folder with `run(work, full, seed) -> Outcome`. CI runs each of them
small; `scripts/torture` runs them whole and writes `bench/results/torture-<name>.json`."""

from __future__ import annotations

import json
import platform
import time
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).resolve().parent
MOST_COMPLAINTS = 20


class Outcome(NamedTuple):
    """How often the promise held, how often not, and what was counted on the way."""

    passed: int
    failed: int
    facts: dict[str, object]
    complaints: tuple[str, ...] = ()
    skipped: str = ""
    """Why the loop did not run here, as "strace is not installed"."""


def loops() -> list[str]:
    """The names of all loops."""
    return sorted(
        file.stem for file in HERE.glob("*.py") if "\ndef run(" in file.read_text(encoding="utf-8")
    )


def run_loop(name: str, work: Path, *, full: bool, seed: int = 1) -> Outcome:
    """Run one loop in an empty folder."""
    work.mkdir(parents=True, exist_ok=True)
    outcome: Outcome = import_module(name).run(work, full, seed)
    return outcome


def run_whole(name: str, work: Path, results: Path, seed: int = 1) -> Outcome:
    """Run one loop whole and keep its outcome."""
    began = time.monotonic()
    outcome = run_loop(name, work, full=True, seed=seed)
    if not outcome.skipped:
        kept = {
            "loop": name,
            "command": f"scripts/torture {name}",
            "passed": outcome.passed,
            "failed": outcome.failed,
            "seconds": round(time.monotonic() - began, 1),
            "seed": seed,
            "python": platform.python_version(),
            "facts": outcome.facts,
            "complaints": outcome.complaints[:MOST_COMPLAINTS],
        }
        (results / f"torture-{name.replace('_', '-')}.json").write_text(
            json.dumps(kept, indent=2) + "\n", encoding="utf-8"
        )
    return outcome
