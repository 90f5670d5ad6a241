"""Whether the hostile workspace is indexed with the transformer in reasonable time, and what a
one-letter query costs.

    python bench/hostile_index.py --work DIR [--python PYTHON]

Input: the hostile workspace of the shared folder, seeds 1 and 2, indexed from nothing with the
default embedders (the extra `local` must be installed); and a file of a million one-letter lines,
indexed by keywords and the static table and searched for one letter. Each cost is user + system CPU
of the whole command. Output: a table and `bench/results/hostile-index.json`."""

from __future__ import annotations

import argparse
import json
import random
import shutil
import statistics
import string
import sys
from pathlib import Path
from typing import Any

from harness import (
    clawmark_command,
    clean_environment,
    must,
    run,
    settings_file,
    shared_folder,
    table,
    verdict,
    write_result,
)

INDEX_SECONDS = 300.0
QUERY_SECONDS = 0.5
LINES = 1_000_000
ROUNDS = 5


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--work", type=Path, required=True, help="folder for the workspaces and their indexes"
    )
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the environment to measure"
    )
    given = parser.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    rows = [index_hostile(given.python, work, seed) for seed in (1, 2)]
    rows += [search_letters(given.python, work, provider) for provider in ("none", "static")]
    shown = [
        (row["what"], f"{row['cpu_seconds']:.2f}", f"≤ {row['limit']:g}", row["verdict"])
        for row in rows
    ]
    print(table([("what", "CPU seconds", "limit", ""), *shown]))
    write_result(
        "hostile-index", "python bench/hostile_index.py --work DIR", given.python, {"rows": rows}
    )
    return 1 if any(row["verdict"] == "MISSED" for row in rows) else 0


def index_hostile(python: str, work: Path, seed: int) -> dict[str, Any]:
    """Index the hostile workspace of one seed from nothing; nothing may be due afterwards."""
    made, state = work / f"hostile-{seed}", work / f"state-hostile-{seed}"
    maker = [
        sys.executable,
        str(shared_folder() / "hostile" / "make_hostile_workspace.py"),
        str(made),
    ]
    shutil.rmtree(state, ignore_errors=True)
    if made.exists():
        must(run([*maker, "--remove"]), "removing the hostile workspace")
    must(run([*maker, "--seed", str(seed)]), "making the hostile workspace")
    places = ["--workspace", str(made / "workspace"), "--state-dir", str(state)]
    env = clean_environment(work / "home")
    indexed = must(run([*clawmark_command(python), "index", "--json", *places], env), "indexing")
    status = json.loads(
        must(run([*clawmark_command(python), "status", "--json", *places], env), "status").out
    )
    must(run([*maker, "--remove"]), "removing the hostile workspace")
    facts = {
        "embedder": status["embedder"],
        "chunks": status["chunks"],
        "due_vectors": status["dueVectors"],
        "wall_seconds": round(indexed.wall, 1),
    }
    if status["dueVectors"]:
        sys.exit(f"{status['dueVectors']} vectors are still due.")
    return judged(
        f"hostile workspace, seed {seed}, indexed with the transformer",
        indexed.cpu,
        INDEX_SECONDS,
        facts,
    )


def search_letters(python: str, work: Path, provider: str) -> dict[str, Any]:
    """Search for one letter in a million one-letter lines; the median of a few whole commands."""
    workspace = work / "letters"
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    letters = random.Random(1).choices(string.ascii_lowercase, k=LINES)
    (workspace / "memory" / "letters.md").write_text("\n".join(letters) + "\n", encoding="utf-8")
    state = work / f"state-letters-{provider}"
    shutil.rmtree(state, ignore_errors=True)
    places = [
        "--workspace",
        str(workspace),
        "--state-dir",
        str(state),
        *settings_file(work, provider),
    ]
    env, command = clean_environment(work / "home"), clawmark_command(python)
    must(run([*command, "index", *places], env), "indexing")
    searches = [
        must(run([*command, "search", "a", *places], env), "searching").cpu for _ in range(ROUNDS)
    ]
    return judged(
        f"one letter in {LINES:,} one-letter lines, {provider}",
        statistics.median(searches),
        QUERY_SECONDS,
        {},
    )


def judged(what: str, cpu: float, limit: float, facts: dict[str, Any]) -> dict[str, Any]:
    return {
        "what": what,
        "cpu_seconds": round(cpu, 2),
        "limit": limit,
        "verdict": verdict(cpu, limit, False),
        **facts,
    }


if __name__ == "__main__":
    sys.exit(main())
