"""What recording the history of a workspace costs, and what an append and a search pay for it.

    python bench/history.py [--files 5000] [--rounds 20]

Goes out: a table, and `bench/results/history.json`. Recording is measured as CPU time inside one
process, with dulwich imported; an append and a search as CPU time of whole processes."""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from harness import clawmark_command, clean_environment, run, write_result

from clawmark.engine.versions.recorder import VersionRecorder
from clawmark.history.history import History
from clawmark.history.journal import Journal
from clawmark.workspace import Workspace

LIMIT_MS = {"one change": 100.0, "append": 10.0, "search": 5.0}
"""The limits for an append and a search are what the history may add; those of the others are what
is acceptable in the background."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = [*recording(Path(folder), options.files, options.rounds)]
        rows += journal(Path(folder), options.rounds)
        rows += commands(Path(folder), options.rounds)
    for row in rows:
        limit = row.get("limit")
        row["verdict"] = "" if limit is None else "ok" if float(row["value"]) <= limit else "MISSED"
    shown = [(str(row["what"]), f"{row['value']:.1f}", str(row["verdict"])) for row in rows]
    print("\n".join(f"{what:<64} {value:>9} {verdict}" for what, value, verdict in shown))
    body = {"files": options.files, "rounds": options.rounds, "rows": rows}
    write_result("history", "python bench/history.py", sys.executable, body)
    return any(row["verdict"] == "MISSED" for row in rows)


def recording(folder: Path, files: int, rounds: int) -> list[dict[str, object]]:
    """Measure the first recording, one change among many files, and nothing to record."""
    root = folder / "workspace"
    for number in range(files):
        file = root / "memory" / f"{number % 10}" / f"note-{number}.md"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"# Note {number}\n\n" + f"- line of note {number}\n" * 20)
    history = History(str(folder / "state" / "history.git"))
    recorder = VersionRecorder(Workspace(str(root)), history.folder, lambda: history)
    first = cpu_ms(lambda: recorder.record("first"))
    recorder.record("again")  # files that had just been written are settled now
    size = history.size()
    one = list[float]()
    for number in range(rounds):
        with open(root / "memory" / "3" / "note-3.md", "a") as file:
            file.write(f"- change {number}\n")
        one.append(cpu_ms(lambda: recorder.record("change")))
    none = [cpu_ms(lambda: recorder.record("nothing")) for _ in range(rounds)]
    growth = (history.size() - size) / rounds / 1024
    return [
        {"what": f"first recording of {files:,} files, CPU ms", "value": first},
        {
            "what": f"recording one change among {files:,} files, CPU ms (median)",
            "value": statistics.median(one),
            "limit": LIMIT_MS["one change"],
        },
        {"what": "nothing to record, CPU ms (median)", "value": statistics.median(none)},
        {"what": "disk for one change, KiB", "value": growth},
        {"what": "disk for the first version, KiB", "value": size / 1024},
    ]


def journal(folder: Path, rounds: int) -> list[dict[str, object]]:
    """Measure what the journal adds to an append within one process."""
    root, state = folder / "journalled", folder / "journal-state"
    root.mkdir()
    kept = Journal(str(state / "journal.jsonl"), lambda: datetime.now(UTC))
    locks = str(state / "locks")
    medians = list[float]()
    for workspace in (
        Workspace(str(root), lock_dir=locks),
        Workspace(str(root), lock_dir=locks, journal=lambda: kept),
    ):
        workspace.append("MEMORY.md", "- the first append imports what it needs")
        taken = [
            cpu_ms(partial(workspace.append, "MEMORY.md", f"- entry {number}"))
            for number in range(rounds * 5)
        ]
        medians.append(statistics.median(taken))
    return [
        {
            "what": "what the journal adds to an append, CPU ms (median)",
            "value": medians[1] - medians[0],
            "limit": LIMIT_MS["append"],
        }
    ]


def commands(folder: Path, rounds: int) -> list[dict[str, object]]:
    """Compare an append and a cold search with the history switched on and off."""
    clawmark, home = clawmark_command(sys.executable), folder / "home"
    environment = clean_environment(home)
    cpu: dict[tuple[str, str], list[float]] = {}
    for setting in ("true", "false"):
        workspace, state = folder / f"agent-{setting}", folder / f"state-{setting}"
        (workspace / "memory").mkdir(parents=True)
        (workspace / "MEMORY.md").write_text("We chose PostgreSQL for billing.\n")
        state.mkdir()
        text = f'{{"memory": {{"history": {{"enabled": {setting}}}}}}}'
        (state / "clawmark.json").write_text(text)
    for number in range(2 * rounds):
        verb = "append" if number < rounds else "search"
        for setting in ("true", "false"):
            state, workspace = folder / f"state-{setting}", folder / f"agent-{setting}"
            flags = ["--workspace", str(workspace), "--state-dir", str(state)]
            if number == rounds:
                run([*clawmark, "index", *flags], environment)
            note = f"The code is {os.urandom(6).hex()} for the door"
            words = ["remember", "--force", note] if verb == "append" else ["search", "billing"]
            done = run([*clawmark, *words, *flags], environment)
            assert done.code == 0, done.err
            cpu.setdefault((verb, setting), []).append(done.cpu * 1000)
    rows = list[dict[str, object]]()
    for verb in ("append", "search"):
        with_it, without = (statistics.median(cpu[verb, one]) for one in ("true", "false"))
        rows.append({"what": f"a process that makes one {verb}, CPU ms", "value": with_it})
        rows.append(
            {
                "what": "what the history adds to it, CPU ms",
                "value": with_it - without,
                "limit": LIMIT_MS[verb],
            }
        )
    return rows


def cpu_ms(call: Callable[[], object]) -> float:
    began = time.process_time()
    call()
    return (time.process_time() - began) * 1000


if __name__ == "__main__":
    sys.exit(main())
