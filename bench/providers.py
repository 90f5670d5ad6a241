"""What a first index through a remote provider costs in time, beside the time the provider itself
takes.

    python bench/providers.py --work DIR [--chunks 10000] [--delay-ms 50] [--dims 1536,384]
                              [--rounds 5]

Comes in: nothing; the notes are made here, the provider is `tests/servers/embeddings.py` in a
process of its own, which takes `--delay-ms` for every 64 texts of a request. Its rows are as long
as those of real services, and written beforehand: what they cost the server is none of our time.
Words and instant vectors are indexed first, so that what is measured is the provider's part: one
`clawmark index` from its start to its end. The server says how long its requests took; with 4 of
them at once no client can be done sooner than a quarter of that. The least of the rounds counts,
for each size of vectors. Goes out: a table, and `bench/results/providers.json` with every round.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness import (
    ROOT,
    clawmark_command,
    clean_environment,
    must,
    run,
    settings_file,
    table,
    verdict,
    write_result,
)

AT_ONCE = 4
MOST_RATIO = 1.3
TEXTS = 64
"""The request that takes `--delay-ms`; larger and smaller ones take their share."""
USUAL_DIMS = 1536
"""What the default model of the provider gives."""
SECTIONS = 20
KEY = "sk-FAKE-bench"


class Round(NamedTuple):
    """One index of everything."""

    wall: float
    cpu: float
    busy: float
    """The sum of the times of all requests, by the server's clock."""
    stats: dict[str, Any]

    @property
    def ratio(self) -> float:
        return self.wall / (self.busy / AT_ONCE)


def main() -> int:
    parser = argparse.ArgumentParser(
        description="Index through a remote provider, and compare with its own time."
    )
    parser.add_argument(
        "--work", type=Path, required=True, help="a folder for the notes and the indexes"
    )
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument(
        "--delay-ms", type=float, default=50.0, help="what the server takes for 64 texts"
    )
    parser.add_argument("--dims", default="1536,384", help="the sizes of the vectors")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--python", default=sys.executable)
    args = parser.parse_args()
    notes = args.work / f"notes-{args.chunks}"
    write_notes(notes, args.chunks)
    cases = [run_case(args, notes, int(dims)) for dims in args.dims.split(",")]
    chunks, text_wall = chunks_and_text_time(args.python, args.work, notes)
    rows = [
        ["numbers", "index s", "its CPU s", f"server s, {AT_ONCE} at once", "ratio", "at most", ""]
    ]
    for case in cases:
        wall, cpu, busy = (
            case["wall_seconds"],
            case["cpu_seconds"],
            case["server_busy_seconds_at_4"],
        )
        figures = [
            f"{wall:.2f}",
            f"{cpu:.2f}",
            f"{busy:.2f}",
            f"{case['ratio']:.2f}",
            f"{MOST_RATIO}",
        ]
        rows.append([str(case["dims"]), *figures, verdict(case["ratio"], MOST_RATIO, False)])
    print(table(rows))
    print(f"{chunks:,} chunks; words and instant vectors before that: {text_wall:.2f} s")
    words = (
        f"--chunks {args.chunks} --delay-ms {args.delay_ms:g} "
        f"--dims {args.dims} --rounds {args.rounds}"
    )
    body = {
        "chunks": chunks,
        "server_ms_per_64_texts": args.delay_ms,
        "at_most": MOST_RATIO,
        "cases": cases,
        "without_provider_wall_seconds": round(text_wall, 3),
    }
    write_result("providers", f"python bench/providers.py --work DIR {words}", args.python, body)
    return 0 if all(case["ratio"] <= MOST_RATIO for case in cases) else 1


def run_case(args: argparse.Namespace, notes: Path, dims: int) -> dict[str, Any]:
    """All rounds with vectors of one size; the best one's numbers, and what the others took."""
    with serving(args.delay_ms / TEXTS, dims) as url:
        rounds = [measure(args.python, args.work, notes, url, dims) for _ in range(args.rounds)]
    best = min(rounds, key=lambda one: one.ratio)
    return {
        "dims": dims,
        "ratio": round(best.ratio, 3),
        "wall_seconds": round(best.wall, 3),
        "cpu_seconds": round(best.cpu, 3),
        "server_busy_seconds_at_4": round(best.busy / AT_ONCE, 3),
        "all_rounds": {
            "ratio": [round(one.ratio, 3) for one in rounds],
            "wall_seconds": [round(one.wall, 3) for one in rounds],
            "cpu_seconds": [round(one.cpu, 3) for one in rounds],
            "server_busy_seconds_at_4": [round(one.busy / AT_ONCE, 3) for one in rounds],
        },
        "server": best.stats,
    }


def write_notes(folder: Path, chunks: int) -> None:
    """Notes of 20 sections, each as long as a chunk and unlike any other; made once."""
    if folder.exists():
        return
    chance = random.Random(1)
    letters = "bcdfghjklmnprstvwz"
    words = [
        "".join(
            chance.choice(letters) + chance.choice("aeiou") for _ in range(chance.randint(1, 4))
        )
        for _ in range(8000)
    ]
    for number in range(-(-chunks // SECTIONS)):
        sections = []
        for section in range(min(SECTIONS, chunks - number * SECTIONS)):
            text = " ".join(chance.choice(words) for _ in range(160))
            sections.append(f"## Section {number}-{section}\n\n{text}.\n")
        path = folder / "memory" / f"{number // 100:03}" / f"note-{number:05}.md"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"# Note {number}\n\n" + "\n".join(sections), encoding="utf-8")


@contextmanager
def serving(text_ms: float, dims: int) -> Iterator[str]:
    """The server in a process of its own; its base URL."""
    words = [sys.executable, str(ROOT / "tests" / "servers" / "embeddings.py"), "--port", "0"]
    words += ["--dims", str(dims), "--text-ms", str(text_ms), "--key", KEY, "--dense"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield server.stdout.readline().split()[2]
        finally:
            server.terminate()


def measure(python: str, work: Path, notes: Path, url: str, dims: int) -> Round:
    """Index what needs no provider, then the rest, and ask the server what it did."""
    env = {**clean_environment(work / "home"), "OPENAI_API_KEY": KEY}
    state = work / "state"
    shutil.rmtree(state, ignore_errors=True)
    config = work / "openai.json"
    settings: dict[str, Any] = {"provider": "openai", "remote": {"baseUrl": url}}
    if dims != USUAL_DIMS:
        settings["outputDimensionality"] = dims
    config.write_text(json.dumps({"memorySearch": settings}), encoding="utf-8")
    places = ["--workspace", str(notes), "--state-dir", str(state)]
    command = clawmark_command(python)
    must(
        run([*command, "index", *places, *settings_file(work, "static")], env), "indexing the words"
    )
    ask(url, "/reset", b"")
    ran = must(
        run([*command, "index", "--json", *places, "--config", str(config)], env),
        "indexing the vectors",
    )
    report = json.loads(ran.out)
    if report["degraded"] or report["dueVectors"]:
        sys.exit(f"The index is not complete: {report}")
    stats = ask(url, "/stats")
    return Round(wall=ran.wall, cpu=ran.cpu, busy=float(stats["busy_seconds"]), stats=stats)


def chunks_and_text_time(python: str, work: Path, notes: Path) -> tuple[int, float]:
    """How many chunks there are, and how long an index without the provider takes."""
    env = clean_environment(work / "home")
    state = work / "state-words"
    shutil.rmtree(state, ignore_errors=True)
    places = ["--workspace", str(notes), "--state-dir", str(state), *settings_file(work, "static")]
    command = clawmark_command(python)
    ran = must(run([*command, "index", *places], env), "indexing the words")
    status = json.loads(must(run([*command, "status", "--json", *places], env), "status").out)
    return int(status["chunks"]), ran.wall


def ask(url: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """One question to the server's own counters."""
    with urllib.request.urlopen(url.removesuffix("/v1") + path, body, timeout=30) as answer:
        found: dict[str, Any] = json.load(answer)
    return found


if __name__ == "__main__":
    sys.exit(main())
