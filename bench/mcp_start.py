"""What an MCP host waits for: CPU seconds of `clawmark mcp` until it has answered `initialize`, and
`tools/list` after it.

    python bench/mcp_start.py [--rounds 20] [--python PYTHON]

Each round starts a new server over a small workspace and `python -c pass`, in turns. The CPU of the
server is read from /proc the moment the answer has arrived (Linux only); it goes on loading after
the first answer, so the number is an upper bound. Output: a table and
`bench/results/mcp-start.json`."""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from harness import clawmark_command, clean_environment, must, run, table, verdict, write_result

LIMIT_SECONDS = 0.4
CLIENT = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the environment to measure"
    )
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        costs = measure(given.python, Path(folder), given.rounds)
    bare = statistics.median(costs["pass"])
    rows = [summary(name, cpu, bare) for name, cpu in costs.items()]
    shown = [
        (row["what"], f"{row['median']:.3f}", f"{row['p95']:.3f}", f"{row['times_pass']:.1f}")
        for row in rows
    ]
    print(table([("what", "median CPU s", "p95", "x python -c pass"), *shown]))
    judged = verdict(rows[1]["p95"], LIMIT_SECONDS, False)
    print(f"initialize within {LIMIT_SECONDS} CPU seconds (p95): {judged}")
    body = {"rounds": given.rounds, "limit_seconds": LIMIT_SECONDS, "verdict": judged, "rows": rows}
    write_result("mcp-start", "python bench/mcp_start.py", given.python, body)
    return 1 if judged == "MISSED" else 0


def measure(python: str, folder: Path, rounds: int) -> dict[str, list[float]]:
    """The CPU seconds of each round; the first round warms up and does not count."""
    workspace = folder / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("We chose PostgreSQL for billing.\n", encoding="utf-8")
    places = ["--workspace", str(workspace), "--state-dir", str(folder / "state")]
    env = clean_environment(folder / "home")
    costs: dict[str, list[float]] = {"pass": [], "initialize": [], "tools/list": []}
    for number in range(rounds + 1):
        answered = start([*clawmark_command(python), "mcp", *places], env)
        bare = must(run([python, "-c", "pass"], env), "python -c pass").cpu
        if number:
            for name, cpu in zip(costs, (bare, *answered), strict=True):
                costs[name].append(cpu)
    return costs


def start(command: list[str], env: dict[str, str]) -> tuple[float, float]:
    """Start a server; its CPU seconds when it has answered `initialize`, and when it has answered
    `tools/list`.
    """
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, env=env) as server:
        first = ask(server, {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": CLIENT})
        assert server.stdin is not None
        server.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/initialized"}\n')
        second = ask(server, {"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
        server.stdin.close()
    return first, second


def ask(server: subprocess.Popen[bytes], message: dict[str, Any]) -> float:
    """Send a request and wait for its answer; the CPU seconds of the server so far."""
    assert server.stdin is not None
    assert server.stdout is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()
    answer = server.stdout.readline()
    used = cpu_seconds(server.pid)
    if json.loads(answer).get("id") != message["id"]:
        sys.exit(f"{message['method']} was answered with {answer[:200]!r}")
    return used


def cpu_seconds(pid: int) -> float:
    """The time all threads of a process have run; the scheduler counts it in nanoseconds."""
    return (
        sum(
            int(path.read_text().split()[0])
            for path in Path(f"/proc/{pid}/task").glob("*/schedstat")
        )
        / 1e9
    )


def summary(what: str, cpu: list[float], bare: float) -> dict[str, Any]:
    median = statistics.median(cpu)
    p95 = statistics.quantiles(cpu, n=100, method="inclusive")[94]
    return {
        "what": what,
        "median": round(median, 4),
        "p95": round(p95, 4),
        "times_pass": round(median / bare, 1),
    }


if __name__ == "__main__":
    sys.exit(main())
