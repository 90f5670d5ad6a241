"""QMD as a backend beside the built-in one: what each finds, and what it costs.

    python bench/qmd.py --work DIR --command qmd

Two workspaces of `recall.py`: the sample of `clawmark demo`, and 1,000 made-up days. Each is
indexed and asked its own questions, by QMD (keywords) and by the built-in backend with keywords
only and with its static vectors. A question is answered if one of the first six hits has a line
that answers it.
Goes out: a table, and `bench/results/qmd.json`."""

from __future__ import annotations

import argparse
import shutil
import statistics
import sys
import time
from pathlib import Path
from typing import Any

from harness import table, write_result
from recall import OWN, Place, made_up, sample

from clawmark import Memory

RESULTS = 6


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for workspaces and indexes; kept"
    )
    parser.add_argument("--command", default="qmd", help="the command qmd")
    given = parser.parse_args()
    work = given.work.resolve() / "qmd"
    ways: dict[str, dict[str, object]] = {
        "qmd": {"memory.backend": "qmd", "memory.qmd.command": given.command},
        "builtin, keywords": {"memorySearch.provider": "none"},
        "builtin, static": {"memorySearch.provider": "static"},
    }
    rows = [
        measure(place, name, overrides, work / "state" / place.kind / name.replace(", ", "-"))
        for place in (*sample(work), *made_up(work))
        for name, overrides in ways.items()
    ]
    print(table([tuple(rows[0]), *(tuple(map(str, row.values())) for row in rows)]))
    command = "python bench/qmd.py --work DIR --command qmd"
    write_result("qmd", command, sys.executable, {"rows": rows})
    return 0


def measure(place: Place, name: str, overrides: dict[str, object], state: Path) -> dict[str, Any]:
    """Index one workspace, and ask its questions."""
    shutil.rmtree(state, ignore_errors=True)
    patient = {"memory.qmd.limits.timeoutMs": 60_000}
    with Memory.open(
        place.folder, state_dir=state, overrides={**overrides, **patient}, background=False
    ) as memory:
        began = time.perf_counter()
        files = memory.sync().added
        indexed = time.perf_counter() - began
        answered, times, replaced = 0, list[float](), 0
        for text, lines in place.questions[:OWN]:
            began = time.perf_counter()
            found = memory.search(text, max_results=RESULTS)
            times.append(time.perf_counter() - began)
            replaced += bool(found.fallback_from)
            answered += any(
                hit.path == path and hit.start_line <= last and hit.end_line >= first
                for hit in found.hits
                for path, first, last in lines
            )
    return {
        "workspace": place.kind,
        "backend": name,
        "files": files,
        "questions": len(times),
        "answered": round(answered / len(times), 3),
        "fallbacks": replaced,
        "index_seconds": round(indexed, 2),
        "search_ms_median": round(statistics.median(times) * 1000, 1),
    }


if __name__ == "__main__":
    raise SystemExit(main())
