"""Clawmark and other memories on the same notes: what indexing and one search cost.

    python bench/peers.py --work DIR --home PEERS [--files 100] [--peers qmd,openclaw,...]

`PEERS` is a folder into which `install_peers.py` of the shared folder has installed the others;
basic-memory is expected there in `venvs/basic-memory`. The driver of the shared folder runs every
program from its published package, in turns, in new processes, against one embeddings endpoint
on loopback whose vectors are hashed words. So this says what a program costs, not how good a real
model would be.
Goes out: a table, and `bench/results/peers.json`. Rows of programs and sizes that this run does not
measure are kept; each has its date."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

from harness import RESULTS, shared_folder, table, write_result

BENCH = shared_folder() / "bench"
sys.path.insert(0, str(BENCH))

import peers  # noqa: E402
import run_peers  # noqa: E402

PORT = 8177
ORDER = (
    "clawmark",
    "clawmark-static",
    "clawmark-service",
    "qmd",
    "openclaw-fts",
    "openclaw",
    "basic-memory",
    "mem0",
)


NAMES = {
    "qmd (BM25 only)": "QMD, words",
    "openclaw (FTS only)": "OpenClaw, words",
    "openclaw": "OpenClaw, endpoint",
    "mem0 (infer=False)": "mem0, endpoint",
}
"""What the shared driver calls a program, and its name in the result."""


class Clawmark(peers.Peer):  # type: ignore[misc]
    """Clawmark from this environment, by keywords only."""

    name = "Clawmark, words"
    mock = False
    provider = "none"

    def version(self) -> str:
        return "this commit"

    def env(self) -> dict[str, str]:
        home = str(self.state / "home" / ".clawmark")
        # Python keeps its compiled modules, as it does for everyone.
        own = {"CLAWMARK_STATE_DIR": home, "PYTHONDONTWRITEBYTECODE": ""}
        return {**super().env(), **own, "PYTHONPATH": str(peers.WORKERS)}

    def fresh(self) -> None:
        super().fresh()
        settings = self.state / "home" / ".clawmark" / "clawmark.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"memorySearch": self.settings()}), encoding="utf-8")

    def settings(self) -> dict[str, Any]:
        return {"provider": self.provider}

    def command(self, *words: object) -> list[object]:
        return [Path(sys.executable).parent / "clawmark", *words, "--workspace", self.ctx.ws]

    def starts(self) -> dict[str, list[object]]:
        return {"version": self.command("--version")[:2], "status": self.command("status")}

    def full(self) -> list[list[object]]:
        return [self.command("index")]

    def sync(self) -> list[object]:
        return self.command("index")

    def cold(self, query: str) -> list[object]:
        return self.command("search", query, "--max-results", self.ctx.k, "--json")

    def hits(self, out: str) -> list[str]:
        return [hit["path"] for hit in json.loads(out)["results"]]

    def warm(self) -> tuple[list[object], dict[str, Any]]:
        worker = Path(__file__).with_name("peers_warm.py")
        return [sys.executable, worker], self._cfg(workspace=str(self.ctx.ws))

    def db(self) -> list[Path]:
        return [self.state / "home" / ".clawmark" / "memory"]


class ClawmarkStatic(Clawmark):
    name = "Clawmark, static table"
    provider = "static"


class ClawmarkService(Clawmark):
    """With the same endpoint that the others ask."""

    name = "Clawmark, endpoint"
    mock = True

    def settings(self) -> dict[str, Any]:
        remote = {"baseUrl": self.ctx.v1 + "/", "apiKey": "dummy"}
        model = {"model": "text-embedding-3-small", "outputDimensionality": self.ctx.dim}
        return {"provider": "openai", **model, "remote": remote}


class BasicMemory(peers.Peer):  # type: ignore[misc]
    """basic-memory by text search; its vectors need a model that is downloaded."""

    name = "basic-memory, words"
    mock = False

    def version(self) -> str:
        return str(self._dist("basic-memory", "basic_memory"))

    def command(self, *words: object) -> list[object]:
        return [self._bin("basic-memory", "basic-memory"), *words]

    def env(self) -> dict[str, str]:
        own = {"BASIC_MEMORY_SEMANTIC_SEARCH_ENABLED": "false", "PYTHONDONTWRITEBYTECODE": ""}
        return {**super().env(), **own}

    def starts(self) -> dict[str, list[object]]:
        return {"version": self.command("--version"), "status": self.command("status")}

    def full(self) -> list[list[object]]:
        return [self.command("project", "add", "bench", self.ctx.ws)]

    def sync(self) -> list[object]:
        return self.command("reindex", "--search", "--project", "bench")

    def cold(self, query: str) -> list[object]:
        size = ("--page-size", self.ctx.k)
        return self.command("tool", "search-notes", query, "--project", "bench", *size)

    def hits(self, out: str) -> list[str]:
        return [hit["file_path"] for hit in json.loads(out[out.index("{") :])["results"]]

    def warm(self) -> tuple[list[object], dict[str, Any]]:
        raise NotImplementedError


ADDED = {
    "clawmark": Clawmark,
    "clawmark-static": ClawmarkStatic,
    "clawmark-service": ClawmarkService,
    "basic-memory": BasicMemory,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--work", type=Path, required=True, help="folder for notes and indexes")
    parser.add_argument("--home", type=Path, required=True, help="the installed programs")
    parser.add_argument("--peers", default=",".join(ORDER), help="which ones, by commas")
    parser.add_argument("--files", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cold", type=int, default=10, help="searches, each in a new process")
    given = parser.parse_args()
    peers.PEERS.update(ADDED)
    given.work.mkdir(parents=True, exist_ok=True)
    observations = given.work.resolve() / "observations.jsonl"
    observations.unlink(missing_ok=True)
    endpoint = start_endpoint(given.home.resolve())
    try:
        for name in given.peers.split(","):
            observe(given, name, observations)
    finally:
        endpoint.terminate()
        endpoint.wait()
    report(summarise([json.loads(line) for line in observations.read_text().splitlines()]))
    return 0


def report(rows: list[dict[str, Any]]) -> None:
    print(table([tuple(rows[0]), *(tuple(map(str, row.values())) for row in rows)]))
    earlier = RESULTS / "peers.json"
    known = json.loads(earlier.read_text(encoding="utf-8"))["rows"] if earlier.exists() else []
    merged = {(row["files"], row["program"]): row for row in [*known, *rows]}
    ordered = sorted(merged.values(), key=lambda row: (row["files"], row["program"].lower()))
    command = "python bench/peers.py --work DIR --home PEERS --files 100; the same with 1000"
    write_result("peers", command, sys.executable, {"rows": ordered})


def start_endpoint(home: Path) -> subprocess.Popen[bytes]:
    python = home / "venvs" / "bench" / "bin" / "python"
    words = [python, BENCH / "mock_embeddings.py", "--port", str(PORT), "--dim", "384"]
    process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    for _ in range(100):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{PORT}/stats", timeout=5):
                return process
        except OSError:
            time.sleep(0.1)
    sys.exit("The embeddings endpoint did not start.")


def observe(given: argparse.Namespace, name: str, observations: Path) -> None:
    """Let the shared driver measure one program; it writes a JSON line per observation."""
    steps = "start,full,noop,edit,cold" + ("" if name == "basic-memory" else ",warm")
    counts = dict.fromkeys(("start", "full", "noop", "edit", "warm-reps"), given.rounds)
    words = {"home": given.home, "run": given.work / "run", "sizes": given.files, **counts}
    words |= {"peers": name, "steps": steps, "cold": given.cold, "warm-syncs": 0}
    words |= {"mock": f"http://127.0.0.1:{PORT}", "out": observations, "timeout": 1200}
    flags = (word for key, value in words.items() for word in (f"--{key}", str(value)))
    sys.argv = ["run_peers", *flags]
    run_peers.main()


def summarise(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """One row for each program: medians of CPU seconds, and how often the file was found."""
    names = list(dict.fromkeys(one["peer"] for one in found))
    return [row(name, [one for one in found if one["peer"] == name]) for name in names]


def row(name: str, found: list[dict[str, Any]]) -> dict[str, Any]:
    by_step = dict[str, list[dict[str, Any]]]()
    for one in found:
        if not one.get("rc") and not one.get("timed_out"):
            by_step.setdefault(one["step"], []).append(one)
    full, cold, warm = (by_step.get(step, []) for step in ("full", "cold", "warm"))
    latencies = [value for one in warm for value in one["lat_ms"]]
    return {
        "files": found[0]["size"],
        "program": NAMES.get(name, name),
        "date": time.strftime("%Y-%m-%d", time.gmtime(found[0]["at"])),
        "version": full[0]["version"] if full else None,
        "full_index_cpu_s": median(full, "cpu"),
        "full_index_wall_s": median(full, "wall"),
        "unchanged_cpu_s": median(by_step.get("noop", []), "cpu"),
        "one_edit_cpu_s": median(by_step.get("edit", []), "cpu"),
        "cold_search_cpu_s": median(cold, "cpu"),
        "cold_search_wall_s": median(cold, "wall"),
        "warm_search_ms": round(statistics.median(latencies), 1) if latencies else None,
        "peak_memory_mb": scaled(median(full, "tree_kb"), 1 / 1024),
        "disk_mb": scaled(median(full, "db_bytes"), 1e-6),
        "requests": full[0]["mock"]["requests"] if full else None,
        "found_keywords": found_share(warm, cold, "keywords"),
        "found_questions": found_share(warm, cold, "question"),
    }


def median(found: list[dict[str, Any]], key: str) -> float | None:
    values = [one[key] for one in found if one.get(key) is not None]
    return round(statistics.median(values), 3) if values else None


def scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else round(value * factor, 1)


def found_share(warm: list[dict[str, Any]], cold: list[dict[str, Any]], kind: str) -> float | None:
    """The share of 20 queries in an open process, or of the few that were asked in new ones."""
    if warm:
        return median(warm, f"recall_{kind}")
    asked = [one["hit"] for one in cold if one["kind"] == kind and one["hit"] is not None]
    return round(sum(asked) / len(asked), 3) if asked else None


if __name__ == "__main__":
    raise SystemExit(main())
