"""The models that ship, compared with those of an older Clawmark.

    python bench/models.py --work DIR --before PYTHON [--parts exam,speed,cold] [--sets notes,...]

- exam: every data set by keywords, static vectors and default settings, old and new.
- speed: passages of the demo data per CPU second, old and new in turns, on one thread.
- cold: CPU of one search in a new process with a small index, old and new in turns.

`--log FILE` adds the summary of a training. Output: `bench/results/models.json`, written after
every part; figures that are not measured again are kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from typing import Any

from exam import Code, build_set, take
from harness import (
    RESULTS,
    clawmark_command,
    clean_environment,
    code_version,
    must,
    run,
    table,
    write_result,
)
from ranking import DEFAULT, KEYWORDS, STATIC, TIERS

SETS = ("notes", "locomo", "longmemeval", "musique")
MODES = (KEYWORDS, STATIC, TIERS["static"][1], DEFAULT, TIERS["default"][1])
METRICS = ("recall@6", "seen@2000", "mrr")
ROUNDS = 5
EMBED = """
import json, sys, time
try:
    from clawmark.embed.local.transformer import TransformerEmbedder as Local
except ImportError:
    from clawmark.embed.local.granite import GraniteEmbedder as Local
texts = json.loads(sys.stdin.read())
embedder = Local()
embedder.embed_texts(texts[:4])
began = time.process_time()
embedder.embed_texts(texts)
print(len(texts) / (time.process_time() - began))
"""


def passages(work: Path, count: int = 40) -> list[str]:
    """Passages of the notes, cut as Clawmark cuts them."""
    from clawmark.text.chunking.chunks import chunk_text

    folder = build_set(work, "locomo")
    found: list[str] = []
    for path in sorted(folder.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        found += [chunk.text for chunk in chunk_text(text, "markdown", 400, 80, path.name)]
    return found[:count]


def exam(work: Path, codes: list[Code], sets: list[str], body: dict[str, Any], write: Any) -> None:
    rows = body.setdefault("exam", {})
    for name in sets:
        folder = build_set(work, name)
        for mode in MODES:
            for code in codes:
                taken = take(work, folder, mode, code)
                figures = {metric: taken[metric] for metric in METRICS}
                rows.setdefault(name, {}).setdefault(mode.name, {})[code.column] = figures
                write()


def speed(work: Path, codes: list[Code], body: dict[str, Any]) -> None:
    texts = json.dumps(passages(work))
    found: dict[str, list[float]] = {code.column: [] for code in codes}
    for _ in range(ROUNDS):
        for code in codes:
            done = must(run([code.python, "-c", EMBED], stdin=texts), "embedding")
            found[code.column].append(round(float(done.out), 2))
    body["chunks_per_cpu_second"] = {
        column: {"median": statistics.median(each), "rounds": each}
        for column, each in found.items()
    }


def cold(work: Path, codes: list[Code], body: dict[str, Any]) -> None:
    folder = build_set(work, "notes")
    workspace = next(path for path in sorted(folder.iterdir()) if path.is_dir()) / "workspace"
    searches: dict[str, list[str]] = {}
    env = clean_environment(work / "home")
    for mode in (STATIC, DEFAULT):
        for code in codes:
            state = work / "cold" / code.column / mode.name
            state.mkdir(parents=True, exist_ok=True)
            config = state / "config.json"
            config.write_text(json.dumps(mode.settings), encoding="utf-8")
            places = ["--workspace", str(workspace), "--state-dir", str(state)]
            places += ["--config", str(config), "--json"]
            command = clawmark_command(code.python)
            must(run([*command, "index", *places], env), "index")
            search = [*command, "search", "when is the invoice due?", *places]
            searches[f"{mode.name} {code.column}"] = search
    found: dict[str, list[float]] = {name: [] for name in searches}
    for _ in range(ROUNDS):
        for name, search in searches.items():
            found[name].append(round(1000 * must(run(search, env), "search").cpu, 1))
    body["cold_search_cpu_ms"] = {
        name: {"median": statistics.median(each), "rounds": each} for name, each in found.items()
    }


def show(body: dict[str, Any]) -> str:
    rows = [
        [
            name,
            mode,
            *(f"{row.get(column, {}).get('recall@6', '')}" for column in ("before", "now")),
        ]
        for name, modes in body.get("exam", {}).items()
        for mode, row in modes.items()
    ]
    return table([["set", "mode", "before", "now"], *rows])


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--before", default="", help="interpreter of an older Clawmark")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--parts", default="exam,speed,cold")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--log", type=Path, help="the summary of a training, as JSON")
    given = parser.parse_args()
    codes = [Code("now", given.python, code_version(given.python))]
    if given.before:
        codes.insert(0, Code("before", given.before, code_version(given.before)))
    path = RESULTS / "models.json"
    body: dict[str, Any] = {}
    if path.is_file():
        body = json.loads(path.read_text(encoding="utf-8")).get("models", {})
    if given.log:
        body["training"] = json.loads(given.log.read_text(encoding="utf-8"))

    def write() -> None:
        command = "python bench/models.py --work DIR --before PYTHON"
        write_result("models", command, given.python, {"models": body})

    work = given.work.resolve()
    for part in given.parts.split(","):
        if part == "exam":
            exam(work, codes, given.sets.split(","), body, write)
        elif part:
            {"speed": speed, "cold": cold}[part](work, codes, body)
        write()
    print(show(body))
    return 0


if __name__ == "__main__":
    sys.exit(main())
