"""Measure what the journal costs: appends, look-ups in a long journal, and the first index.

Prints one JSON object and writes it to the results. Times are CPU time, in milliseconds. The
journal may add `LIMIT` to a cold append."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from harness import write_result

from clawmark import Memory
from clawmark.engine.sync.run import MOST_RECORDED
from clawmark.history.journal import Journal
from clawmark.model.provenance import Origin
from clawmark.workspace import Workspace

APPENDS = 300
LIMIT = 10.0
FLUSH = Origin(
    actor="agent",
    kind="flush",
    trust="agent",
    session="agent:main:telegram:direct:4711",
    source="0b6f3c5e-4a0e-4c44-9d2c-0d6a1f7f2a11.jsonl bytes 120331-188712",
)


def now() -> datetime:
    return datetime(2026, 11, 16, 12, tzinfo=UTC)


def cpu_ms(call: Callable[[], object]) -> float:
    started = time.process_time()
    call()
    return (time.process_time() - started) * 1000


def appends(folder: Path) -> dict[str, object]:
    """Append to two workspaces in turn, one with a journal and one without."""
    journal = Journal(str(folder / "state" / "journal.jsonl"), now)
    kinds = {"without": Workspace(str(folder / "a")), "with": Workspace(str(folder / "b"))}
    kinds["with"] = Workspace(str(folder / "b"), journal=lambda: journal)
    times: dict[str, list[float]] = {name: [] for name in kinds}
    for name in ("a", "b"):
        (folder / name / "memory").mkdir(parents=True)
    for number in range(APPENDS):
        for name, workspace in kinds.items():
            text = f"- 12:{number % 60:02} We chose option {number} for billing, for its price\n"
            call = lambda: workspace.append("memory/2026-11-16.md", text, origin=FLUSH)  # noqa: E731, B023
            times[name].append(cpu_ms(call))
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "appends": APPENDS,
        "withoutJournalMs": round(medians["without"], 3),
        "withJournalMs": round(medians["with"], 3),
        "addedMs": round(medians["with"] - medians["without"], 3),
        "ratio": round(medians["with"] / medians["without"], 2),
        "bytesPerWrite": round(os.path.getsize(journal.path) / APPENDS),
    }


def look_ups(folder: Path, records: int) -> dict[str, object]:
    """Look up ten passages of five entries in a journal of many records."""
    journal = Journal(str(folder / "long" / "journal.jsonl"), now)
    for start in range(0, records, 5000):
        journal.add_found(
            [
                (f"memory/{n}.md", f"- Entry number {n} of many\n")
                for n in range(start, start + 5000)
            ]
        )
    passages = [
        "\n".join(f"- Entry number {passage * 991 + n} of many" for n in range(5))
        for passage in range(10)
    ]
    os.unlink(f"{journal.path}.index")
    return {
        "records": records,
        "bytes": os.path.getsize(journal.path),
        "firstMs": round(cpu_ms(lambda: [journal.look_up(text) for text in passages]), 1),
        "tenHitsMs": round(
            statistics.median(
                cpu_ms(lambda: [journal.look_up(text) for text in passages]) for _ in range(9)
            ),
            1,
        ),
        "indexBytes": os.path.getsize(f"{journal.path}.index"),
    }


def first_index(folder: Path, files: int) -> dict[str, object]:
    """Index many files for the first time, with and without the journal."""
    workspace = folder / "ws"
    (workspace / "memory").mkdir(parents=True)
    for number in range(files):
        lines = "".join(f"- Fact {number}.{line} about project {line}\n" for line in range(10))
        (workspace / f"memory/note-{number}.md").write_text(f"# Note {number}\n\n{lines}")
    found: dict[str, object] = {"files": files}
    for name in ("without", "with"):
        settings = {"provider": "none", "background": False, "state_dir": folder / name}
        with Memory.open(workspace, **settings) as memory:  # type: ignore[arg-type]
            if name == "without":
                sync = memory._builtin.parts.sync
                object.__setattr__(
                    memory._builtin,
                    "parts",
                    memory._builtin.parts._replace(sync=sync._replace(on_text=None)),
                )
            found[f"{name}JournalMs"] = round(cpu_ms(memory.sync))
            if name == "with":
                found["records"] = sum(1 for _ in memory.journal.records())
                found["againMs"] = round(cpu_ms(memory.sync), 1)
    return found


def import_ms(folder: Path) -> float:
    """Return the CPU time that importing the journal adds to a process that writes."""
    script = (
        "import time\n"
        "import clawmark.memory, clawmark.workspace.write, clawmark.text.write_check\n"
        "started = time.process_time()\n"
        "import clawmark.composition.history.records, clawmark.workspace.recording\n"
        "print((time.process_time() - started) * 1000)\n"
    )
    command = [sys.executable, "-c", script]
    # An installed package is compiled already.
    compiled = {"PYTHONDONTWRITEBYTECODE": "", "PYTHONPYCACHEPREFIX": str(folder / "compiled")}
    environ = {**os.environ, **compiled}
    runs = [
        subprocess.run(command, env=environ, capture_output=True, check=True).stdout
        for _ in range(10)
    ]
    return round(statistics.median(map(float, runs[1:])), 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--records", type=int, default=100_000)
    parser.add_argument("--files", type=int, default=5_000)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        result: dict[str, Any] = {
            "append": appends(folder),
            "importMs": import_ms(folder),
            "lookUp": look_ups(folder, args.records),
            "firstIndex": [
                first_index(folder / f"{files}", files) for files in (MOST_RECORDED, args.files)
            ],
        }
    added = result["append"]["addedMs"] + result["importMs"]
    body = {"unit": "CPU milliseconds", "limit": LIMIT, "coldAppendAddedMs": added, **result}
    print(json.dumps(body, indent=2))
    write_result("trust-cost", "python bench/trust_cost.py", sys.executable, body)
    if added > LIMIT:
        sys.exit(1)


if __name__ == "__main__":
    main()
